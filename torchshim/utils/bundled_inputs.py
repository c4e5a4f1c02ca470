"""Inputs kept within scripted modules: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "InflatableArg augment_many_model_functions_with_bundled_inputs "
        "augment_model_with_bundled_inputs bundle_inputs bundle_large_tensor "
        "bundle_randn",
        "there is no TorchScript",
    )
)
