"""What checkpoints call things: PyTorch's names for our objects, and back.

A file names classes and functions by module and name. It must say `torch.…` whatever
torchshim was imported as, and be readable whether or not `torch` can be imported.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torchshim
from torchshim._core.dtypes import DTYPES, dtype
from torchshim._core.layout import NAMES, layout
from torchshim._core.random import Generator
from torchshim._functions import (
    nested_strided,
    nested_tensor,
    quantized,
    rebuilding,
    sparse_convert,
)
from torchshim._tensor import Tensor
from torchshim.nn import parameter

SHIM = __name__.partition(".")[0]
_KINDS = (type, FunctionType, BuiltinFunctionType)


class StorageType:
    """The class of a storage as files name it; it says the dtype of the elements."""

    __module__ = "torch.serialization"

    def __init__(self, name: str) -> None:
        self._dtype = STORAGE_DTYPES[name]
        self._name = name

    @property
    def dtype(self) -> dtype:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


# Dtypes younger than these have no class; their storages are counted in bytes.
STORAGE_DTYPES: dict[str, dtype] = {
    f"{d.scalar_name}Storage": d
    for d in DTYPES
    if d.name.startswith(("q", "complex"))
    or d.name in "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
    or d.name == "bool"
    if d.name != "complex32"
}
UNTYPED = "UntypedStorage"


@functools.cache
def storage_type(name: str) -> Any:
    """What stands for `torch.FloatStorage` and its like; KeyError for other names."""
    return torchshim.UntypedStorage if name == UNTYPED else StorageType(name)


def storage_type_of(kind: dtype) -> Any:
    """The class under which storages of a dtype are written."""
    name = f"{kind.scalar_name}Storage"
    return storage_type(name if name in STORAGE_DTYPES else UNTYPED)


def _get_layout(name: str) -> layout:
    return _LAYOUTS[name]


_get_layout.__module__ = "torch.serialization"
_LAYOUTS = {str(v): v for v in NAMES.values() if isinstance(v, layout)}


def _refused(what: str) -> Any:
    def rebuild(*args: Any) -> Any:
        raise NotImplementedError(f"loading {what} is not supported")

    return rebuild


class DimRange:
    """A note of PyTorch's compiler about a dimension: its nested tensors have such."""

    dim: int
    min: int | None
    max: int | None

    def __setstate__(self, state: tuple[int, int | None, int | None]) -> None:
        self.dim, self.min, self.max = state


def _rebuild_device_tensor_from_numpy(
    data: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    made = torchshim.from_numpy(data).to(dtype=dtype, device=device)
    return made.requires_grad_(requires_grad)


def _rebuild_device_tensor_from_cpu_tensor(
    data: Tensor, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    return data.detach().to(dtype=dtype, device=device).requires_grad_(requires_grad)


#: The functions that tensors are made by, all of them in `torch._utils`.
REBUILD: dict[str, Any] = {
    "_rebuild_parameter": parameter._rebuild_parameter,
    "_rebuild_parameter_with_state": parameter._rebuild_parameter_with_state,
    "_rebuild_tensor": rebuilding._rebuild_tensor,
    "_rebuild_tensor_v2": rebuilding._rebuild_tensor_v2,
    "_rebuild_tensor_v3": rebuilding._rebuild_tensor_v3,
    "_rebuild_qtensor": quantized._rebuild_qtensor,
    "_rebuild_sparse_tensor": sparse_convert._rebuild_sparse_tensor,
    "_rebuild_meta_tensor_no_storage": rebuilding._rebuild_meta_tensor_no_storage,
    "_rebuild_nested_tensor": nested_strided._rebuild_nested_tensor,
    "_rebuild_wrapper_subclass": _refused("wrapper subclasses"),
    "_rebuild_device_tensor_from_numpy": _rebuild_device_tensor_from_numpy,
    "_rebuild_device_tensor_from_cpu_tensor": _rebuild_device_tensor_from_cpu_tensor,
}

NESTED = "torch.nested._internal.nested_tensor"
# What PyTorch keeps in modules that are no part of its API.
_PRIVATE: dict[tuple[str, str], Any] = {
    **{("torch._utils", name): func for name, func in REBUILD.items()},
    ("torch._tensor", "_rebuild_from_type_v2"): rebuilding._rebuild_from_type_v2,
    ("torch._C", "Generator"): Generator,
    # What functions in C++, and methods of tensors, are attributes of.
    ("torch._C", "_VariableFunctionsClass"): torchshim,
    ("torch._C", "TensorBase"): Tensor,
    (NESTED, "NestedTensor"): nested_tensor.NestedTensor,
    ("torch._dynamo.decorators", "_DimRange"): DimRange,
    (NESTED, "_rebuild_njt"): nested_tensor._rebuild_njt,
}
_PRIVATE_NAMES = {
    id(value): key
    for key, value in _PRIVATE.items()
    if value is not torchshim and value is not Tensor
}
# Modules of PyTorch's whose names are public elsewhere.
_MOVED = {
    "torch._C": "torch",
    "torch._tensor": "torch",
    "torch.tensor": "torch",
    "torch._C._nn": "torch.nn.functional",
}


def find(module: str, name: str) -> Any:
    """Our object for one of PyTorch's names.

    Raises ModuleNotFoundError and AttributeError with PyTorch's names.

    >>> find("torch.nn.modules.linear", "Linear")
    <class 'torchshim.nn.modules.linear.Linear'>
    """
    found = _PRIVATE.get((module, name))
    if found is not None:
        return found
    ours = SHIM + _MOVED.get(module, module).removeprefix("torch")
    try:
        found = importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name is None or not ours.startswith(error.name):
            raise
        text = f"No module named {module!r}"
        raise ModuleNotFoundError(text, name=module) from None
    if module == "torch._C._nn" and not hasattr(found, name):
        found = importlib.import_module(SHIM + "._C._nn")
    for part in name.split("."):
        if not hasattr(found, part):
            raise AttributeError(
                f"Can't get attribute {name!r} on <module {module!r}>: torchshim has "
                "no such name"
            )
        found = getattr(found, part)
    return found


def torch_name(obj: Any, name: str | None = None) -> tuple[str, str] | None:
    """PyTorch's module and name for one of our objects; None for others'.

    >>> import torchshim as torch
    >>> torch_name(torch.nn.Linear)
    ('torch.nn.modules.linear', 'Linear')
    """
    found = _PRIVATE_NAMES.get(id(obj))
    if found is not None:
        return found
    if isinstance(obj, StorageType):
        return "torch", obj._name
    module = getattr(obj, "__module__", None)
    if not isinstance(module, str):
        return None
    if name is None:
        name = str(obj.__qualname__)
    if module == "torch" or module.startswith("torch."):
        module = SHIM + module.removeprefix("torch")
    elif module != SHIM and not module.startswith(SHIM + "."):
        return None
    if any(part.startswith("_") for part in module.split(".")):
        return _public_name(obj, name)
    if module == f"{SHIM}.return_types":
        importlib.import_module(module)  # its classes are made without it
    if _lookup(module, name) is not obj:
        return _public_name(obj, name)
    return "torch" + module.removeprefix(SHIM), name


def _lookup(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _public_name(obj: Any, name: str) -> tuple[str, str] | None:
    # PyTorch defines things in the deepest of the modules that offer them; modules that
    # only use them do not count.
    holders = [
        module
        for module in list(sys.modules)
        if module.partition(".")[0] == SHIM
        and not any(part.startswith("_") for part in module.split("."))
        and name.partition(".")[0] in getattr(sys.modules[module], "__all__", (name,))
        and _lookup(module, name) is obj
    ]
    if not holders:
        return None
    deepest = max(holders, key=lambda module: (module.count("."), module))
    return "torch" + deepest.removeprefix(SHIM), name


def is_global(obj: Any) -> bool:
    """Whether files hold an object by its name."""
    return isinstance(obj, (*_KINDS, StorageType))
