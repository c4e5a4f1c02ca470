"""Dividing a graph between devices: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "Partitioner",
        "programs run on one device",
    )
)
