"""Small questions about the library, its files and its numbers."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core.device import current_accelerator
from torchshim._core.device import device as Device
from torchshim._core.ragged import SymInt

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "_nnpack_available",
    "compiled_with_cxx11_abi",
    "get_device_module",
    "get_file_path",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "is_vulkan_available",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]

has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True


def compiled_with_cxx11_abi() -> bool:
    """Whether PyTorch was built with the C++11 ABI, as 2.13 always is."""
    return True


def is_vulkan_available() -> bool:
    """Whether tensors can be on Vulkan: no."""
    return False


def _nnpack_available() -> bool:
    """Whether NNPACK computes convolutions: no."""
    return False


def get_file_path(*path_components: str) -> str:
    """The path of a file of the package, which is installed as torchshim."""
    root = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(root, *path_components[1:])


def get_device_module(device: Any = None) -> Any:
    """The module of a device's type, such as `torch.cuda`.

    RuntimeError for what is no device, and for a type without a module.
    """
    if device is None:
        found = current_accelerator()
        name = "cpu" if found is None else found.type
    elif isinstance(device, Device):
        name = device.type
    elif isinstance(device, str):
        name = Device(device).type
    else:
        raise RuntimeError(
            f"Invalid value of device '{device}', expect torch.device, str, or None"
        )
    try:
        return importlib.import_module(f"torchshim.{name}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{name}' does not have a corresponding module registered as "
            f"'torch.{name}'."
        ) from None


_DEPRECATED = {
    "has_cuda": ("torch.backends.cuda.is_built()", "cuda", "is_built"),
    "has_cudnn": ("torch.backends.cudnn.is_available()", "cudnn", "is_available"),
    "has_mkldnn": ("torch.backends.mkldnn.is_available()", "mkldnn", "is_available"),
    "has_mps": ("torch.backends.mps.is_built()", "mps", "is_built"),
}


def deprecated_question(name: str, missing: str) -> bool:
    """`torch.has_cuda` and the like, with their warning; AttributeError for others."""
    if name not in _DEPRECATED:
        raise AttributeError(f"{missing} {name!r}")
    instead, module, function = _DEPRECATED[name]
    warnings.warn(f"'{name}' is deprecated, please use '{instead}'", stacklevel=3)
    found = importlib.import_module(f"torchshim.backends.{module}")
    return getattr(found, function)()


# Symbolic numbers: only ragged sizes are none of Python's (`_core/ragged.py`).


class SymFloat:
    """A float that is not known yet: there is none."""


class SymBool:
    """A bool that is not known yet: there is none."""


for _kind in (SymFloat, SymBool):
    _kind.__module__ = "torch"


def sym_int(a: Any) -> int:
    """The integer, as Python's `int` gives it."""
    return int(a)


def sym_float(a: Any) -> float:
    """The float, as Python's `float` gives it."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Python's `not`."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`, for two values of one type."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def _mixed(a: Any, b: Any, chosen: Any) -> Any:
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


def sym_max(a: Any, b: Any) -> Any:
    """The greater one, a float if either is."""
    return _mixed(a, b, max(a, b))


def sym_min(a: Any, b: Any) -> Any:
    """The lesser one, a float if either is."""
    return _mixed(a, b, min(a, b))


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """The sum of several numbers."""
    return sum(args)
