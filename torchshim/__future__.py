"""Choices about how `nn.Module.to` converts parameters: `torch.__future__`."""

from __future__ import annotations

from torchshim._errors import Unsupported

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions replace parameters by new ones; else their data changes."""
    return _overwrite[0]


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions swap parameters with new ones: no, they change their data."""
    return False


_overwrite = [False]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions replace parameters by new ones; else their data changes.

    https://docs.pytorch.org/docs/2.13/future_mod.html
    """
    _overwrite[0] = value


def set_swap_module_params_on_conversion(value: bool) -> None:
    """NotImplementedError for True."""
    if value:
        raise Unsupported(
            "torch.__future__.set_swap_module_params_on_conversion(True): tensors "
            "cannot be swapped"
        )
