"""Implementations of flash attention by name, as programs register and choose them.

XLA computes attention here whatever is chosen; what is registered is called when it is
activated, as in PyTorch.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger(__name__)


class FlashAttentionHandle(Protocol):
    """What an implementation gives; `remove` takes it away."""

    def remove(self) -> None: ...


_Register = Callable[..., FlashAttentionHandle | None]
_active: list[tuple[str, FlashAttentionHandle]] = []


def _from_package(impl: str, module: str) -> _Register:
    """An implementation of PyTorch's that calls CUDA kernels."""

    def register(module_path: str = module) -> FlashAttentionHandle | None:
        importlib.import_module(module_path)
        raise NotImplementedError(
            f"{impl} attention calls CUDA kernels on PyTorch's tensors; XLA computes "
            "attention here"
        )

    return register


_implementations: dict[str, _Register] = {
    "FA3": _from_package("FA3", "flash_attn_interface"),
    "FA4": _from_package("FA4", "flash_attn.cute.interface"),
}


def register_flash_attention_impl(impl: str, *, register_fn: _Register) -> None:
    """Registers an implementation: `register_fn` is called when it is activated."""
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Activates an implementation in place of the one before.

    ValueError for one that is not known; ModuleNotFoundError where its package is
    missing.
    """
    restore_flash_attention_impl(_raise_warn=False)
    register = _implementations.get(impl)
    if register is None:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    handle = register()
    if handle is not None:
        _active[:] = [(impl, handle)]


def list_flash_attention_impls() -> list[str]:
    """The names of the implementations.

    >>> list_flash_attention_impls()
    ['FA3', 'FA4']
    """
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the active implementation, if any.

    >>> current_flash_attention_impl()
    """
    return _active[0][0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Takes the active implementation away; says so where there is none."""
    if _active:
        _, handle = _active.pop()
        handle.remove()
    elif _raise_warn:
        _log.warning(
            "Trying to restore default FA2 impl when no custom impl was activated"
        )
