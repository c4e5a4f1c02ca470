"""Looking for the part of a graph where backends differ: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "FxNetMinimizerBadModuleError FxNetMinimizerResultMismatchError "
        "FxNetMinimizerRunFuncError _MinimizerBase _MinimizerSettingBase",
        "there are no backends to compare",
    )
)
