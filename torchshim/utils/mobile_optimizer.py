"""Scripted modules for mobile phones: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "LintCode MobileOptimizerType generate_mobile_module_lints optimize_for_mobile",
        "there is no TorchScript",
    )
)
