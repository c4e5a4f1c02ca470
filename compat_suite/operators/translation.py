"""torchshim's functions and arguments for PyTorch's.

A function is found under its public name. Those that the database writes itself
(lambdas that call `torch.…`) are run with torchshim in the place of torch.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import types
from collections.abc import Callable
from typing import Any

import torch

import torchshim
from compat_suite.operators.forms import WIDER
from compat_suite.operators.values import (
    SEED,
    Missing,
    attribute,
    function_named,
    to_numpy,
)


def seeded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the database's `wrapper_set_seed` does, for torchshim."""
    torchshim.manual_seed(SEED)
    return function(*args, **kwargs)


class _Torch:
    """torchshim as the database's lambdas see it: what is missing says so."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}".removeprefix(".")
        found = attribute(path)
        return _Torch(path) if isinstance(found, types.ModuleType) else found


def rebound(function: types.FunctionType) -> Callable[..., Any]:
    """A function of the database with torchshim for torch."""
    names = function.__globals__ | {"torch": _Torch(), "wrapper_set_seed": seeded}
    closure = function.__closure__ and tuple(
        types.CellType(translate(cell.cell_contents)) for cell in function.__closure__
    )
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def function(found: Callable[..., Any], name: str) -> Callable[..., Any]:
    """torchshim's function for one of an entry's."""
    if isinstance(found, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return attribute(f"ops.{found}")
    if _is_of_database(found):
        return rebound(found)
    return function_named(name)


def method(found: Callable[..., Any]) -> Callable[..., Any]:
    """torchshim's method of `Tensor` for one of PyTorch's."""
    if _is_of_database(found) or isinstance(found, functools.partial):
        return translate(found)
    return attribute(f"Tensor.{found.__name__}")


def _is_of_database(found: Any) -> bool:
    return isinstance(found, types.FunctionType) and str(found.__module__).startswith(
        "torch.testing"
    )


# Arguments --------------------------------------------------------------------------


class Translator:
    """Arguments of one call: what is one tensor, or lies in one memory, does here."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._memories: dict[Any, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            made = self._made.get(id(value))
            if made is None:
                made = self._made[id(value)] = self._tensor(value)
            return made
        if isinstance(value, torch.Size):
            return torchshim.Size(value)
        if type(value) in (list, tuple):
            return type(value)(map(self, value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*map(self, (value.start, value.stop, value.step)))
        return translate(value)

    def _tensor(self, value: torch.Tensor) -> Any:
        if not can_share(value):
            return tensor(value)
        place = value.untyped_storage().data_ptr(), value.dtype
        memory = self._memories.get(place)
        if memory is None:
            if is_whole(value):
                made = self._memories[place] = tensor(value)
                return made
            memory = self._memories[place] = tensor(flat_memory(value))
        at = tuple(value.shape), value.stride(), value.storage_offset()
        return memory.as_strided(*at)


def can_share(value: torch.Tensor) -> bool:
    """Whether a tensor is one that may lie in the memory of another argument."""
    bits = value.requires_grad or value.is_conj() or value.is_neg()
    return value.layout is torch.strided and value.numel() > 0 and not bits


def is_whole(value: torch.Tensor) -> bool:
    """Whether a tensor is its memory, in order."""
    size = value.numel() * value.element_size()
    return value.is_contiguous() and value.untyped_storage().nbytes() == size


def flat_memory(value: torch.Tensor) -> torch.Tensor:
    """The memory that a tensor lies in."""
    size = value.untyped_storage().nbytes() // value.element_size()
    return value.as_strided((size,), (1,), 0)


#: Where the functions of PyTorch's private modules are public, and their prefixes.
_PLACES = {
    "torch._C._nn": "nn.functional",
    "torch._C._linalg": "linalg linalg_",
    "torch._C._special": "special special_",
    "torch._C._fft": "fft fft_",
}


def translate(value: Any) -> Any:
    """torchshim's object for one of PyTorch's that is not a tensor."""
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return attribute(str(value))
    if isinstance(value, torch.device):
        return torchshim.device(str(value))
    if isinstance(value, torch.Generator):
        made = torchshim.Generator()
        made.manual_seed(value.initial_seed())
        return made
    if isinstance(value, torch.nn.Module):
        return module(value)
    home = type(value).__module__
    if dataclasses.is_dataclass(value) and home.startswith("torch.nn."):
        names = [f.name for f in dataclasses.fields(value)]
        fields = {n: translate(getattr(value, n)) for n in names}
        return attribute(f"nn.{type(value).__name__}")(**fields)
    if _is_of_database(value):
        return rebound(value)
    if isinstance(value, functools.partial):
        return functools.partial(
            translate(value.func), *map(translate, value.args), **value.keywords
        )
    kinds = types.FunctionType | types.BuiltinFunctionType | type
    origin = str(getattr(value, "__module__", None))
    if isinstance(value, kinds) and origin.startswith("torch"):
        place, _, prefix = _PLACES.get(origin, origin).partition(" ")
        return attribute(f"{place}.{value.__name__.removeprefix(prefix)}")
    return value


def module(value: torch.nn.Module) -> Any:
    """torchshim's module with the same state, by way of a file."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torchshim.load(file, weights_only=False)


def tensor(value: torch.Tensor) -> Any:
    """A torchshim tensor with the same values, strides and `requires_grad`."""
    if value.layout is torch.sparse_coo:
        return torchshim.sparse_coo_tensor(
            tensor(value.detach()._indices()),
            tensor(value.detach()._values()),
            tuple(value.shape),
            requires_grad=value.requires_grad,
            is_coalesced=value.is_coalesced(),
        )
    if value.layout is not torch.strided:
        raise Missing(f"tensors of layout {value.layout}")
    dtype = attribute(str(value.dtype))
    if value.ndim > 64:  # more than NumPy's arrays can have
        return torchshim.zeros(tuple(value.shape), dtype=dtype)
    plain = value.detach().resolve_conj().resolve_neg()
    if is_whole(plain):
        made = torchshim.tensor(to_numpy(plain), dtype=dtype)
    else:
        memory = to_numpy(flat_memory(plain))
        made = torchshim.tensor(memory, dtype=dtype).as_strided(
            tuple(plain.shape), plain.stride(), plain.storage_offset()
        )
    return made.detach().requires_grad_(value.requires_grad)


# Precision --------------------------------------------------------------------------

_WIDER = {getattr(torch, k): getattr(torch, v) for k, v in WIDER.items()}


def widened(value: Any) -> Any:
    """Arguments with their floating point tensors in the next wider dtype."""
    if isinstance(value, torch.Tensor):
        wider = _WIDER.get(value.dtype)
        if wider is None:
            return value
        made = value.detach().to(wider)
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return _WIDER.get(value, value)
    if type(value) in (list, tuple):
        return type(value)(map(widened, value))
    if isinstance(value, dict):
        return {k: widened(v) for k, v in value.items()}
    return value
