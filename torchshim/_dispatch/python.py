"""Dispatching in Python: needs PyTorch's dispatcher."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "enable_python_dispatcher no_python_dispatcher suspend_functionalization",
        "there are no dispatch keys",
    )
)
