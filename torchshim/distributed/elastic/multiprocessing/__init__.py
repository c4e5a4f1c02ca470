"""The processes of `torchrun`: one, see `errors`."""
