"""The transforms, by their place in PyTorch."""

from __future__ import annotations

from typing import Any

from torchshim._functions.func_forward import hessian, jacfwd, jvp, linearize
from torchshim._functions.func_reverse import argument_place, jacrev, vjp
from torchshim.func import functionalize

__all__ = ["functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args: Any, argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments at these places.

    RuntimeError for places that are none, out of range, or named twice.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}"
        )
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if isinstance(argnums, tuple) and not argnums:
        raise RuntimeError("argnums must be non-empty")
    places = [argument_place(n, len(args)) for n in chosen]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(places)}")
    if isinstance(argnums, int) and not as_tuple:
        return args[places[0]]
    return tuple(args[n] for n in places)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple as it is, anything else as the one element of one."""
    return value if isinstance(value, tuple) else (value,)
