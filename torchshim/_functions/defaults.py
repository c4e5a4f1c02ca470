"""Setters of defaults that the running recordings must hear of."""

from __future__ import annotations

import importlib
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core import device, dtypes, record


def set_default_dtype(d: Any, /) -> None:
    """Sets the dtype of tensors made from Python floats, for all threads.

    >>> import torchshim as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(1.0)
    tensor(1.)
    >>> torch.set_default_dtype(torch.float32)
    """
    dtypes.set_default_dtype(d)
    record.refresh_modes()


# The dtypes that have a legacy tensor type, by its name.
_TENSOR_TYPES = {
    f"{dtypes.NAMES[name].scalar_name}Tensor": dtypes.NAMES[name]
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64"),
    )
}


# Where `torch.Tensor(2)` is made, for all threads, and whether its setter has warned.
_of_types = [device.device("cpu")]
_warned: list[bool] = []


def set_default_tensor_type(t: Any, /) -> None:
    """Sets the default dtype by a legacy tensor type such as ``torch.DoubleTensor``.

    Takes the type's name or the type itself. Raises TypeError for a type that is
    not of floating point or not available. See
    https://docs.pytorch.org/docs/2.13/generated/torch.set_default_tensor_type.html.

    >>> import torchshim as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.set_default_tensor_type("torch.DoubleTensor")
    ...     torch.set_default_tensor_type(torch.FloatTensor)
    """
    if isinstance(t, str):
        kind, dtype = _named_tensor_type(t)
    else:
        kind, dtype = _tensor_type(t)
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please "
            "use torch.set_default_dtype() and torch.set_default_device() as "
            "alternatives. (Triggered internally at "
            "/__w/pytorch/pytorch/torch/csrc/tensor/python_tensor.cpp:434.)",
            UserWarning,
            stacklevel=2,
        )
    if kind == "cuda" and not device.device_count("cuda"):
        raise TypeError(
            f"type torch.cuda.{dtype.scalar_name}Tensor not available. Torch not "
            "compiled with CUDA enabled."
        )
    _of_types[0] = device.device(kind)
    if kind == "cuda":
        device.set_default_device("cuda")
    set_default_dtype(dtype)


def default_type_device() -> device.device:
    """Where `torch.Tensor(2)` is made; default devices are not for old constructors."""
    return device.resolve(_of_types[0])


def _tensor_type(t: Any) -> tuple[str, Any]:
    """(device type, dtype) of a legacy tensor type object."""
    dtype = getattr(t, "dtype", None)
    if not isinstance(t, type) or getattr(dtype, "tensor_name", None) is None:
        raise TypeError(
            "invalid type object: only floating-point types are supported as the "
            "default type"
        )
    if getattr(t, "is_sparse", False):
        raise TypeError("only dense types are supported as the default type")
    return ("cuda" if getattr(t, "is_cuda", False) else "cpu"), dtype


def _named_tensor_type(text: str) -> tuple[str, Any]:
    package, _, name = text.rpartition(".")
    dtype = _TENSOR_TYPES.get(name)
    if dtype is not None:
        if package == "torch":
            return "cpu", dtype
        if package == "torch.cuda":
            return "cuda", dtype
        if package in ("torch.sparse", "torch.cuda.sparse"):
            raise TypeError("only dense types are supported as the default type")
    if text == "torch.Tensor":
        return _tensor_type(None)
    if package == "torch" or package.startswith("torch."):
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    return _tensor_type(getattr(importlib.import_module(package or text), name))
