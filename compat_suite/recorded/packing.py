"""The file of samples: nests of values as JSON, and the numbers of all tensors.

Nothing in the file is executed: it names functions, and those are looked up among the
operators of torchshim. Arrays that occur several times stand there once.
"""

from __future__ import annotations

import builtins
import io
import json
import operator
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import torchshim
from compat_suite.operators.values import (
    Known,
    Missing,
    attribute,
    distinct,
    function_named,
    tensors,
)

#: Where functions may be looked up, and which may not.
_OPERATORS = re.compile(
    r"(torch\.)?(ops\.\w+\.\w+(\.\w+)?|((Tensor|nn\.functional|linalg|fft|special|"
    r"masked|sparse|signal\.windows|functional|_VF|_C\._\w+)\.)?\w+)(\.__get__)?"
)
_REFUSED = re.compile(
    r"load|save|from_file|compile|\bhub\b|jit|import|set_default|"
    r"__(class|init\w*|new|reduce\w*|getattribute|subclasshook|setattr|dict)__"
)


class Untold(Exception):
    """A value that the file has no form for."""


@dataclass
class Pack:
    """Arrays by dtype, each one after the other, and what is told of tensors."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    tensors: list[Any] = field(default_factory=list)
    _parts: dict[str, list[np.ndarray]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _places: dict[tuple[str, bytes], int] = field(default_factory=dict)
    _rows: dict[str, int] = field(default_factory=dict)

    # Writing ------------------------------------------------------------------------

    def row(self, dtype: str, array: np.ndarray, layout: list[Any]) -> int:
        """The number of a tensor: dtype, elements in memory, and how they lie there."""
        memory = array.flatten()  # a copy: tensors may be written to later
        kind, raw = memory.dtype.str, memory.tobytes()
        start = self._places.get((kind, raw))
        if start is None:
            start = self._sizes.get(kind, 0)
            self._places[kind, raw] = start
            self._parts.setdefault(kind, []).append(memory)
            self._sizes[kind] = start + memory.size
        row = [dtype, kind, start, memory.size, *layout]
        number = self._rows.setdefault(json.dumps(row), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(row)
        return number

    def adopt(self, other: Pack, told: Any) -> Any:
        """What another file tells, with its tensors put into this one."""
        if isinstance(told, list):
            return [self.adopt(other, item) for item in told]
        if not isinstance(told, dict):
            return told
        made = {k: self.adopt(other, v) for k, v in told.items()}
        if told.get("$") == "tensor":
            dtype, memory, layout = other.memory(told["row"])
            made["row"] = self.row(dtype, memory, layout)
        return made

    def write(self, path: Path, told: Any) -> None:
        """Writes the file; the same content gives the same bytes."""
        content = json.dumps({"tensors": self.tensors, "told": told}, allow_nan=True)
        made = {
            kind: _planes(np.concatenate(parts)) for kind, parts in self._parts.items()
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
            for name, array in [
                *made.items(),
                ("json", np.frombuffer(content.encode(), np.uint8)),
            ]:
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                # Without the time of writing.
                info = zipfile.ZipInfo(f"{name}.npy")
                file.writestr(info, member.getvalue(), zipfile.ZIP_DEFLATED)

    # Reading ------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path) -> tuple[Pack, Any]:
        """The tensors of a file, and what else it tells."""
        with np.load(path, allow_pickle=False) as file:
            content = json.loads(file["json"].tobytes())
            arrays = {
                kind: _joined(file[kind], np.dtype(kind))
                for kind in file.files
                if kind != "json"
            }
        return cls(arrays, content["tensors"]), content["told"]

    def memory(self, number: int) -> tuple[str, np.ndarray, list[Any]]:
        """dtype, elements in memory, and how they lie there."""
        dtype, kind, start, size, *layout = self.tensors[number]
        return dtype, self.arrays[kind][start : start + size], layout

    def known(self, told: dict[str, Any]) -> Known:
        """A tensor to compare with."""
        dtype, memory, (shape, *_) = self.memory(told["row"])
        error = told.get("error", 0.0)
        return Known(f"torch.{dtype}", memory.reshape(shape), error)

    def tensor(
        self, number: int, requires_grad: bool, memory: Any = None
    ) -> torchshim.Tensor:
        """A tensor to call an operator with; in the memory of another, if given."""
        _, _, (shape, *strided) = self.memory(number)
        if strided:
            strides, offset = strided
            plain = self.flat(number) if memory is None else memory
            made = plain.as_strided(tuple(shape), tuple(strides), offset)
            if memory is not None:
                return made
        else:
            made = self.flat(number).reshape(shape)
        return made.detach().requires_grad_(requires_grad)

    def flat(self, number: int) -> torchshim.Tensor:
        """The memory that a tensor lies in."""
        dtype, memory, _ = self.memory(number)
        return torchshim.tensor(memory, dtype=_constant(dtype))


def _planes(array: np.ndarray) -> np.ndarray:
    """All first bytes, then all second bytes …: that can be compressed better."""
    width = array.dtype.itemsize
    return np.ascontiguousarray(array.view(np.uint8).reshape(-1, width).T)


def _joined(planes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(planes.T).view(dtype).ravel()


class Reading:
    """The values of one case: a tensor that is named twice is one tensor."""

    def __init__(self, pack: Pack, expected: bool = False) -> None:
        self._pack = pack
        self._expected = expected
        self._made: dict[int, Any] = {}
        self._memories: dict[int, Any] = {}

    def __call__(self, told: Any, given: list[Any] | None = None) -> Any:
        """A value; `given` are the tensors that a program refers to."""
        if isinstance(told, list):
            return [self(item, given) for item in told]
        if not isinstance(told, dict):
            return told
        kind = told["$"]
        if kind == "tensor":
            return self._tensor(told)
        if kind == "given" and given is not None:
            return given[told["v"]]
        if kind == "dict":
            return {k: self(v, given) for k, v in told["v"]}
        value = [self(item, given) for item in told.get("v", [])]
        if kind == "tuple" and "names" in told:
            return _named(tuple(told["names"]))(*value)
        return _MAKERS[kind](value)

    def _tensor(self, told: dict[str, Any]) -> Any:
        if self._expected:
            return self._pack.known(told)
        which = told["is"]
        if which not in self._made:
            grad = told.get("grad", False)
            memory = self._memory(told) if "memory" in told else None
            self._made[which] = self._pack.tensor(told["row"], grad, memory)
        return self._made[which]

    def _memory(self, told: dict[str, Any]) -> Any:
        first = told["memory"]
        if first not in self._memories:
            whole = self._made.get(first)
            self._memories[first] = (
                self._pack.flat(told["row"]) if whole is None else whole
            )
        return self._memories[first]


def _named(names: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    kind = type("Fields", (tuple,), {"__match_args__": names})
    return lambda *items: kind(items)


def _constant(name: str) -> Any:
    found = attribute(name)
    if isinstance(found, torchshim.dtype | torchshim.layout | torchshim.memory_format):
        return found
    raise Untold(f"{name} is no dtype")


def _generator(value: list[Any]) -> torchshim.Generator:
    return torchshim.Generator().manual_seed(value[0])


def _exception(value: list[Any]) -> Exception:
    name, text = value
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = type(name, (Exception,), {})
    made = Exception.__new__(kind)
    made.args = (text,)
    return made


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "size": torchshim.Size,
    "complex": lambda v: complex(*v),
    "slice": lambda v: slice(*v),
    "...": lambda v: Ellipsis,
    "constant": lambda v: _constant(v[0]),
    "device": lambda v: torchshim.device(v[0]),
    "generator": _generator,
    "exception": _exception,
}


# Functions --------------------------------------------------------------------------


def function(told: Any, reading: Reading) -> Callable[..., Any]:
    """A function by its name, or of the calls that it makes."""
    if isinstance(told, str):
        if told.startswith("operator."):
            return getattr(operator, told.removeprefix("operator."))
        if not _OPERATORS.fullmatch(told) or _REFUSED.search(told):
            raise Missing(told)
        return function_named(told)

    def run(*args: Any, **kwargs: Any) -> Any:
        given = distinct(tensors([args, kwargs]))
        for name, call_args, call_kwargs in told["calls"]:
            made = reading([call_args, call_kwargs], given)
            result = function(name, reading)(*made[0], **made[1])
            given += tensors(result)
        return reading(told["result"], given)

    return run
