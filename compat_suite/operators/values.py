"""Values of PyTorch and of torchshim, told by what they are: this needs no torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import torchshim
from torchshim._tensor import host_value

#: What `wrapper_set_seed` of PyTorch's operator database uses.
SEED = 42


class Missing(AttributeError):
    """torchshim does not have what the database asks for."""


@dataclass(frozen=True, eq=False)
class Known:
    """A tensor that PyTorch gave once, as a file tells of it."""

    dtype: str  # as PyTorch writes it, `torch.float32`
    array: np.ndarray
    #: How far from the exact values PyTorch's are, where that is worth telling.
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.array.shape


def attribute(path: str) -> Any:
    """`torchshim.<path>`; raises `Missing`."""
    found: Any = torchshim
    for part in path.removeprefix("torch.").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Missing(f"torch.{path.removeprefix('torch.')}") from None
    return found


def function_named(name: str) -> Any:
    """torchshim's function for the name of an entry."""
    if name.startswith("__"):
        name = f"Tensor.{name}"
    for path in (name, f"Tensor.{name}"):
        with contextlib.suppress(Missing):
            result = attribute(path)
            if callable(result):
                return result
    return attribute(name)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of one of the libraries, or of a file."""
    real = sys.modules.get("torch", torchshim)
    return isinstance(value, (torchshim.Tensor, Known, real.Tensor))


def to_numpy(value: Any) -> np.ndarray:
    """The values of a tensor, the small floats as float32."""
    if isinstance(value, Known):
        return value.array
    if isinstance(value, torchshim.Tensor):
        array = np.asarray(host_value(value))
        return array.astype(np.float32) if array.dtype.kind == "V" else array
    plain = value.detach().resolve_conj().resolve_neg()
    if str(plain.layout) != "torch.strided":
        plain = plain.to_dense()
    if "bfloat16" in str(plain.dtype) or "float8" in str(plain.dtype):
        plain = plain.float()
    elif str(plain.dtype) == "torch.complex32":
        plain = plain.cfloat()
    return plain.numpy()


def dtype_name(tensor: Any) -> str:
    """A tensor's dtype, as `float32`."""
    return str(tensor.dtype).removeprefix("torch.")


def short(value: Any) -> str:
    """A value as a sample's text shows it."""
    if is_tensor(value):
        text = f"{dtype_name(value)}{list(value.shape)}"
        if str(value.layout) != "torch.strided":
            return f"{text} {value.layout}"
        return text if value.is_contiguous() else f"{text} strides {value.stride()}"
    if type(value) in (list, tuple):
        return f"[{', '.join(map(short, value))}]"
    return repr(value)


def call_text(args: Any, kwargs: dict[str, Any]) -> str:
    """Arguments as they are called, in short."""
    parts = [short(a) for a in args]
    return f"({', '.join(parts + [f'{k}={short(v)}' for k, v in kwargs.items()])})"


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def tensors(value: Any) -> list[Any]:
    """The tensors in a nest of lists, tuples and dicts."""
    return [t for t in _flat(value) if is_tensor(t)]


def distinct(found: list[Any]) -> list[Any]:
    """The tensors, each once."""
    return list({id(t): t for t in found}.values())
