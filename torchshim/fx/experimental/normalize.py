"""Calls in one form by schemas: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "NormalizeArgs NormalizeOperators",
        "there are no schemas of TorchScript",
    )
)
