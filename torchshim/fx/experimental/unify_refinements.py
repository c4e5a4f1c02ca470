"""Solving equations between sizes of tensors: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "infer_symbolic_types infer_symbolic_types_single_pass unify_eq",
        "types of tensors with their sizes are not inferred",
    )
)
