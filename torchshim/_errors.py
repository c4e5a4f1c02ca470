"""The kinds of errors that PyTorch has of its own, and warnings given once."""

from __future__ import annotations

import sys
from typing import Any

from torchshim import _warnings as warnings

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no room left."""


class AcceleratorError(RuntimeError):
    """A device failed."""


for _kind in (OutOfMemoryError, AcceleratorError):
    _kind.__module__ = "torch"


TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
    "behavior.\nConsider using tensor.detach() first. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/autograd/generated/python_variable_methods.cpp:822"
    ".)"
)
# `torch.set_warn_always`
warn_always = [False]
_warned: set[str] = set()


def triggered(text: str, where: str) -> str:
    """What PyTorch's C++ warns of: it says where it does."""
    return f"{text} (Triggered internally at /__w/pytorch/pytorch/{where}.)"


# "torch" is the name of our package where programs find it under that.
_OURS = (__name__.partition(".")[0], "torch", "jax")
_LAYERS = tuple(f"{ours}.nn.modules." for ours in _OURS)


def called_by_us() -> bool:
    """Whether what calls the function that asks is a module of this package."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return name.partition(".")[0] in _OURS[:2]


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the line that led here: the user's, or that of a layer.

    As in PyTorch, what a function says of a layer's call is told once for all the lines
    of the user that call the layer. What a layer's module says itself is the user's.
    """
    level, frame = 2, sys._getframe(1)
    own = frame.f_globals.get("__name__", "")
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in _OURS:
            break
        if name.startswith(_LAYERS) and name != own:
            break
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


def warn_once(
    text: str, *, key: str | None = None, category: type[Warning] = UserWarning
) -> None:
    """Warns the first time only, unless all warnings are wanted each time.

    `key`: what stands for texts that differ.
    """
    if (key or text) not in _warned or warn_always[0]:
        _warned.add(key or text)
        warn(text, category)


def check_tensors(name: str, tensors: Any) -> None:
    """Refuses to group no tensors, as PyTorch's foreach functions do."""
    if not tensors:
        raise RuntimeError(
            f"Expected !{name}.empty() to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to "
            "PyTorch.)"
        )


class Unsupported(NotImplementedError):
    """What PyTorch has and torchshim does not; test cases are skipped by it."""


def unsupported(name: str, reason: str) -> Any:
    """A class that can be imported and named, and refuses to be made or called."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise Unsupported(f"torch.{name} is not supported: {reason}")

    module, _, short = f"torch.{name}".rpartition(".")
    return type(short, (), {"__init__": refuse, "__module__": module})


def refused(module: str, names: str, reason: str) -> dict[str, Any]:
    """Classes as of `unsupported` for these names of a module."""
    prefix = f"{module}.".partition(".")[2]
    return {name: unsupported(f"{prefix}{name}", reason) for name in names.split()}
