"""What `TestCase.assertEqual` takes for equal: looser than `assert_close`."""

from __future__ import annotations

import enum
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import torchshim as torch
from torchshim.testing._comparison import (
    Options,
    Pair,
    compare,
    compare_booleans,
    compare_numbers,
    tensor_pair,
)

_ARRAYS = (torch.Tensor, np.ndarray)
_BOOLEANS = (bool, np.bool_)
_NUMBERS = (int, float, complex, np.number)
# Numbers are as exact as the default dtype is.
_DTYPE_OF = {int: torch.int64, float: torch.float32, complex: torch.complex64}


@dataclass(frozen=True)
class Relaxed(Options):
    """Numbers equal tensors of one element, arrays equal tensors, objects by `==`.

    `least` is the (relative, absolute) tolerance that a test case allows everywhere.
    """

    least: tuple[float, float] = (0.0, 0.0)

    def tolerances(self, id: tuple[Any, ...], *of: Any) -> tuple[float, float]:
        rtol, atol = super().tolerances(id, *of)
        return max(rtol, self.least[0]), max(atol, self.least[1])

    def pair(self, actual: Any, expected: Any, id: tuple[Any, ...]) -> Pair:
        both = (actual, expected)
        if all(isinstance(x, torch.TypedStorage) for x in both):
            actual, expected = (torch.tensor(x, dtype=x.dtype) for x in both)
            both = (actual, expected)
        if actual is None or expected is None:
            return super().pair(actual, expected, id)
        alike = (*_BOOLEANS, *_NUMBERS, *_ARRAYS)
        if _either(both, _BOOLEANS, alike):
            a, b = (bool(self._single(x, "a boolean", id)) for x in both)
            return lambda: compare_booleans(a, b, self, id)
        if _either(both, _NUMBERS, (*_NUMBERS, *_ARRAYS)):
            return self._numbers(both, id)
        if all(isinstance(x, _ARRAYS) for x in both):
            x, y = (torch.as_tensor(value) for value in both)
            return tensor_pair(x, y, self, id)
        return lambda: self._objects(actual, expected, id)

    def _numbers(self, both: tuple[Any, Any], id: tuple[Any, ...]) -> Pair:
        def number(value: Any) -> Any:
            if isinstance(value, enum.Enum):
                return int(value)  # type: ignore[call-overload]
            found = self._single(value, "a number", id)
            return int(found) if isinstance(found, bool) else found

        a, b = map(number, both)
        kinds = [_DTYPE_OF[type(x)] for x in (a, b)]
        tolerances = self.tolerances(id, *kinds)
        anyway = replace(self, check_dtype=False)
        return lambda: compare_numbers(a, b, tolerances, anyway, id)

    def _single(self, value: Any, what: str, id: tuple[Any, ...]) -> Any:
        if not isinstance(value, (*_ARRAYS, np.generic)):
            return value
        if isinstance(value, _ARRAYS):
            count = value.size if isinstance(value, np.ndarray) else value.numel()
            if count > 1:
                text = (
                    f"Only single element tensor-likes can be compared against {what}. "
                )
                self.fail(id, f"{text}Got {count} elements instead.", ValueError)
        return value.item()

    def _objects(self, actual: Any, expected: Any, id: tuple[Any, ...]) -> None:
        kind = "Object"
        for name, of in (("String", (str, bytes)), ("Set", set), ("Type", type)):
            if isinstance(actual, of) and isinstance(expected, of):
                kind = name
                break
        try:
            unittest.TestCase().assertEqual(actual, expected)
        except AssertionError as error:
            self.fail(id, f"{kind} comparison failed: {error}")


def _either(
    both: tuple[Any, Any], first: tuple[type, ...], other: tuple[type, ...]
) -> bool:
    a, b = both
    return (isinstance(a, first) and isinstance(b, other)) or (
        isinstance(b, first) and isinstance(a, other)
    )


def has_torch_dtype(dtype: Any) -> bool:
    """Whether a tensor can hold an array of this dtype of NumPy."""
    return np.dtype(dtype).kind in "biufc" and np.dtype(dtype).itemsize <= 16


def assert_equal(x: Any, y: Any, options: Relaxed) -> None:
    """Raises AssertionError where two values are not equal."""
    __tracebackhide__ = True
    if any(isinstance(v, np.ndarray) and not has_torch_dtype(v.dtype) for v in (x, y)):
        x, y = (v.tolist() if isinstance(v, _ARRAYS) else list(v) for v in (x, y))
    elif isinstance(x, torch.Tensor) and isinstance(y, Sequence):
        y = torch.as_tensor(y, dtype=x.dtype, device=x.device)
    elif isinstance(x, Sequence) and isinstance(y, torch.Tensor):
        x = torch.as_tensor(x, dtype=y.dtype, device=y.device)
    nn = torch.nn
    sequences = (Sequence, nn.Sequential, nn.ModuleList, nn.ParameterList)
    subset = torch.utils.data.Subset
    mappings = (Mapping, nn.ModuleDict, nn.ParameterDict)
    compare(x, y, replace(options, sequences=(*sequences, subset), mappings=mappings))
