"""Equations between sizes of tensors: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "Equality",
        "types of tensors with their sizes are not inferred",
    )
)
