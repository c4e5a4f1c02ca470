"""`torch.testing._internal.common_jit`: TorchScript is not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "JitCommonTestCase check_against_reference",
        "there are no graphs of TorchScript to compare with",
    )
)
