"""Samples of operators for sparse tensors: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "validate_sample_input_sparse",
        "there are no samples of sparse tensors",
    )
)
