"""Choices about how modules convert and load parameters: `torch.__future__`."""

from __future__ import annotations

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
    """Whether conversions and `load_state_dict` swap parameters with new ones."""
    return _swap[0]


_overwrite = [False]
_swap = [False]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions replace parameters by new ones; else their data changes.

    https://docs.pytorch.org/docs/2.13/future_mod.html
    """
    _overwrite[0] = value


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and `load_state_dict` swap parameters with new ones.

    `torch.utils.swap_tensors` does it, so that a parameter stays the same object even
    where its memory cannot be replaced; what a state dict holds then goes through
    `Tensor.module_load`.

    https://docs.pytorch.org/docs/2.13/future_mod.html
    """
    _swap[0] = value
