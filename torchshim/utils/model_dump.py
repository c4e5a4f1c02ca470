"""Pages about scripted modules: they are not here."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "get_info_and_burn_skeleton get_inline_skeleton get_model_info main",
        "there is no TorchScript",
    )
)
