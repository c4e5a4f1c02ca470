"""Forward mode: tensors with a tangent, which every operator carries along.

https://docs.pytorch.org/docs/2.13/autograd.html#forward-mode-automatic-differentiation
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torchshim._arguments import type_name
from torchshim._core.record import local
from torchshim._functions.func_forward import (
    current_dual_level,
    enter_dual_level,
    exit_dual_level,
    paired,
    parted,
)
from torchshim._tensor import Tensor
from torchshim.autograd._contextlib import _DecoratorContextManager

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` gives."""

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor, on the same memory, with a tangent.

    Raises RuntimeError outside of a level, ValueError for dtypes without derivatives.
    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.forward_ad.make_dual.html

    >>> import torchshim as torch
    >>> with dual_level():
    ...     dual = make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(dual**2)
    tensor(9., tangent=6.0)
    """
    current = current_dual_level()
    if level is None:
        level = -1 if current is None else 0
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first."
        )
    if current is None:
        raise RuntimeError(
            "Trying to access a forward AD level with an invalid index. This index was "
            "either not created or is already deleted."
        )
    if level:  # there is one, 0
        raise RuntimeError("Invalid level given to _make_dual")
    return paired(tensor, tangent, current)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a dual tensor; the tangent of others is None."""
    current = current_dual_level()
    if current is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "_unpack_dual(): argument 'dual' (position 1) must be Tensor, not "
            f"{type_name(tensor)}"
        )
    primal, tangent = parted(tensor, current)
    if level and tangent is not None:  # there is one, 0
        raise RuntimeError("Invalid level given to _fw_primal")
    return UnpackedDualTensor(primal, tangent if local.rec.forward else None)


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return -1 if current_dual_level() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class dual_level(_DecoratorContextManager):
    """Forward mode is possible inside: `with dual_level(): ...`.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.forward_ad.dual_level.html
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *raised: object) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are followed."""
    return local.rec.forward


class _set_fwd_grad_enabled(_DecoratorContextManager):
    """Switches forward mode on or off, at once and until the end of a `with`."""

    def __init__(self, mode: bool) -> None:
        if mode.__class__ is not bool:
            raise TypeError(f"enabled must be a bool (got {type_name(mode)})")
        self.prev = local.rec.forward
        local.rec.forward = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: Any) -> None:
        local.rec.forward = self.prev
