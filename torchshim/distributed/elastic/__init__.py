"""What programs use that `torchrun` starts; see `run`."""
