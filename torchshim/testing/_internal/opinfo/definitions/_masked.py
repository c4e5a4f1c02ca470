"""Samples of masked reductions: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "_generate_masked_op_mask sample_inputs_masked_reduction",
        "there are no samples of masked operators",
    )
)
