"""Reading the arguments of ``Module.to``."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._tensor import Tensor

_FORMS = """expected one of:
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, \
bool copy = False, *, torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
"""
_MISSING = object()


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The ``(device, dtype, non_blocking, memory_format)`` that the call asks for.

    The three forms are those of ``Module.to``: a device with or without a dtype,
    a dtype, or a tensor to be like. Anything else is a TypeError.

    >>> import torchshim as torch
    >>> parse_to(torch.float64)
    (None, torch.float64, False, None)
    """
    if len(args) > 4:
        raise TypeError(
            f"to() takes from 0 to 4 positional arguments but {len(args)} were given"
        )
    for names in (
        ("device", "dtype", "non_blocking", "copy"),
        ("dtype", "non_blocking", "copy"),
        ("tensor", "non_blocking", "copy"),
    ):
        bound = _bind(names, args, kwargs)
        if bound is not None:
            break
    else:
        raise TypeError(_no_such_form(args, kwargs))
    if "copy" in bound:
        raise RuntimeError(".to() does not accept copy argument")
    device, dtype = bound.get("device"), bound.get("dtype")
    if "tensor" in bound:
        device, dtype = _like(bound["tensor"])
    elif device is not None and not isinstance(device, torchshim.device):
        device = torchshim.device(
            device.decode() if isinstance(device, bytes) else device
        )
    dtype = _python_dtypes().get(dtype, dtype)
    return device, dtype, bound.get("non_blocking", False), bound.get("memory_format")


def _python_dtypes() -> dict[Any, Any]:
    return {
        bool: torchshim.bool,
        int: torchshim.int64,
        float: torchshim.float64,
        complex: torchshim.complex128,
    }


def _like(tensor: Any) -> tuple[Any, Any]:
    if isinstance(tensor, Tensor):
        return tensor.device, tensor.dtype
    # A Python number stands for a 0-dim tensor of its own dtype.
    return torchshim.device("cpu"), _python_dtypes()[type(tensor)]


def _bind(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments by name, or None where this form does not take them."""
    if len(args) > len(names):
        return None
    bound = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in bound or name not in (*names, "memory_format"):
            return None
        bound[name] = value
    required = names[0] if names[0] != "device" else None
    if required is not None and required not in bound:
        return None
    if all(_fits(name, value, names) for name, value in bound.items()):
        return bound
    return None


def _fits(name: str, value: Any, names: tuple[str, ...]) -> bool:
    if name in ("non_blocking", "copy"):
        return isinstance(value, bool)
    if name == "tensor":
        return isinstance(value, Tensor) or type(value) in (bool, float, complex)
    if name == "memory_format":
        return value is None or isinstance(value, torchshim.memory_format)
    if name == "dtype":
        # Optional only where a device may stand before it.
        if value is None:
            return names[0] == "device"
        return isinstance(value, torchshim.dtype) or value in (
            bool,
            int,
            float,
            complex,
        )
    return (
        value is None
        or isinstance(value, (str, bytes, torchshim.device))
        or type(value) is int
    )


def _no_such_form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    got = [_type_word(value) for value in args]
    got += [f"{name}={_type_word(value)}" for name, value in kwargs.items()]
    # PyTorch ends a list of keywords only with a comma.
    text = ", ".join(got) + (", " if kwargs and not args else "")
    return f"to() received an invalid combination of arguments - got ({text}), but " + (
        _FORMS
    )


def _type_word(value: Any) -> str:
    if isinstance(value, Tensor):
        return type(value).__name__
    for word in ("dtype", "device", "memory_format"):
        if isinstance(value, getattr(torchshim, word)):
            return f"torch.{word}"
    return type(value).__name__
