"""Checking a graph's types of tensors: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "GraphTypeChecker Refine broadcast_types",
        "types of tensors with their sizes are not inferred",
    )
)
