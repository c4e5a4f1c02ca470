"""What fake tensors give, beside real ones: there are none."""

from torchshim._errors import refused
from torchshim._subclasses.fake_tensor import (
    MetadataMismatchError as MetadataMismatchError,
)

globals().update(
    refused(
        __name__,
        "CrossRefFakeMode is_sdpa_error output_alias_each_other "
        "outputs_alias_inputs outputs_are_inputs",
        "tensors on the device meta take the place of fake ones",
    )
)
