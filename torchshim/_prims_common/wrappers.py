"""Wrappers of reference functions, which are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "_maybe_remove_out_wrapper elementwise_type_promotion_wrapper out_wrapper",
        "there are no reference functions to wrap",
    )
)
