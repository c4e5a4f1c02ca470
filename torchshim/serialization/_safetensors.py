"""Files in the safetensors format, through the library of that name."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchshim
from torchshim._core.device import device
from torchshim._core.dtypes import array_dtype
from torchshim._functions.storage import held_by
from torchshim._tensor import host_value

_DTYPES = {
    "BOOL": "bool",
    **{f"U{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"I{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"F{n}": f"float{n}" for n in (16, 32, 64)},
    "BF16": "bfloat16",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}


def adapt(module: Any) -> None:
    """Makes `safetensors.torch` read values, not memory (in all its versions)."""

    def _to_ndarray(tensor: Any) -> tuple[np.ndarray, Any]:
        array = np.ascontiguousarray(host_value(tensor.detach()))
        return array.reshape(-1).view(np.uint8), tensor

    def _tobytes(tensor: Any, name: str) -> bytes:
        if not tensor.is_contiguous():
            raise ValueError(f"the tensor `{name}` is not contiguous")
        return _to_ndarray(tensor)[0].tobytes()

    for function in (_to_ndarray, _tobytes):
        if hasattr(module, function.__name__):
            setattr(module, function.__name__, function)


def load_safetensors(path: str, map_location: Any) -> dict[str, Any]:
    """The tensors of a file, by name; RuntimeError where the library is missing."""
    where = "cpu"
    if isinstance(map_location, (str, bytes, device)):
        where = str(map_location)
    elif map_location is not None:
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use "
            "a device string or torch.device instead."
        )
    try:
        import safetensors
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from error
    with open(path, "rb") as file:
        found = safetensors.deserialize(file.read())
    place = torchshim.empty(0, device=where).device
    return {name: _tensor(entry, place) for name, entry in found}


def _tensor(entry: dict[str, Any], place: Any) -> Any:
    name = _DTYPES.get(entry["dtype"])
    if name is None:
        raise NotImplementedError(f"safetensors of dtype {entry['dtype']}")
    kind = array_dtype(getattr(torchshim, name))
    flat = np.frombuffer(bytes(entry["data"]), kind)
    return held_by(flat.reshape(entry["shape"]), place)
