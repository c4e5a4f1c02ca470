"""Choices about how `nn.Module.to` converts parameters: `torch.__future__`."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions replace parameters by new ones: no, their data changes."""
    return False


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions swap parameters with new ones: no, they change their data."""
    return False


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.__future__.{name}(True): nn.Module.to changes the data of parameters"
    )


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """NotImplementedError for True."""
    if value:
        _refuse("set_overwrite_module_params_on_conversion")


def set_swap_module_params_on_conversion(value: bool) -> None:
    """NotImplementedError for True."""
    if value:
        _refuse("set_swap_module_params_on_conversion")
