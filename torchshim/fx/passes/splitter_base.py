"""Splitting for backends: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "FxNetAccNodesFinder FxNetSplitterInternalError SplitResult "
        "_SplitterBase _SplitterSettingBase",
        "CapabilityBasedPartitioner takes its place",
    )
)
