"""What `TestCase.assertEqual` takes for equal: looser than `assert_close`."""

from __future__ import annotations

import enum
import unittest
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import torchshim as torch
from torchshim.testing._comparison import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    Pair,
    TensorLikePair,
    not_close_error_metas,
)

_ARRAYS = (torch.Tensor, np.ndarray)
_BOOLEANS = (bool, np.bool_)
_NUMBERS = (int, float, complex, np.number)


class UnittestPair(Pair):
    """Objects that `unittest` compares: those of the class, or classes, `CLS`."""

    CLS: Any
    TYPE_NAME: str | None = None

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        self._check_inputs_isinstance(actual, expected, cls=self.CLS)
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Raises `ErrorMeta` where they are not equal."""
        try:
            unittest.TestCase().assertEqual(self.actual, self.expected)
        except AssertionError as error:
            of = self.CLS if isinstance(self.CLS, type) else self.CLS[0]
            kind = self.TYPE_NAME or of.__name__
            text = f"{kind.title()} comparison failed: {error}"
            self._fail(AssertionError, text)


class StringPair(UnittestPair):
    """Strings, of characters or bytes."""

    CLS = (str, bytes)
    TYPE_NAME = "string"


class SetPair(UnittestPair):
    """Sets."""

    CLS = set


class TypePair(UnittestPair):
    """Classes."""

    CLS = type


class ObjectPair(UnittestPair):
    """Whatever else there is."""

    CLS = object


def _single(value: Any, what: str, id: tuple[Any, ...]) -> Any:
    """The one element of an array or a tensor; other values as they are."""
    if isinstance(value, _ARRAYS):
        count = value.size if isinstance(value, np.ndarray) else value.numel()
        if count > 1:
            text = f"Only single element tensor-likes can be compared against {what}. "
            raise ErrorMeta(ValueError, f"{text}Got {count} elements instead.", id=id)
    return value.item() if isinstance(value, (*_ARRAYS, np.generic)) else value


class RelaxedBooleanPair(BooleanPair):
    """Booleans, one of which may be a number, or an array of one element."""

    _supported_number_types = (*_NUMBERS, *_ARRAYS)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Any) -> Any:
        alike = (*_BOOLEANS, *self._supported_number_types)
        if not _either((actual, expected), _BOOLEANS, alike):
            self._inputs_not_supported()
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: Any) -> bool:
        return bool(_single(bool_like, "a boolean", id))


class RelaxedNumberPair(NumberPair):
    """Numbers of any type, one of which may be an array of one element.

    They are as exact as the default dtype is; `rtol_override` and `atol_override` are
    what a test case allows everywhere.
    """

    _TYPE_TO_DTYPE: ClassVar[dict[type, Any]] = {
        int: torch.int64,
        float: torch.float32,
        complex: torch.complex64,
    }

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        rtol_override: float = 0.0,
        atol_override: float = 0.0,
        check_dtype: Any = None,
        **other_parameters: Any,
    ) -> None:
        super().__init__(actual, expected, check_dtype=False, **other_parameters)
        self.rtol = max(self.rtol, rtol_override)
        self.atol = max(self.atol, atol_override)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Any) -> Any:
        if not _either((actual, expected), _NUMBERS, (*_NUMBERS, *_ARRAYS)):
            self._inputs_not_supported()
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: Any) -> Any:
        if isinstance(number_like, enum.Enum):
            return int(number_like)  # type: ignore[call-overload]
        found = _single(number_like, "a number", id)
        return int(found) if isinstance(found, bool) else found


class TensorOrArrayPair(TensorLikePair):
    """Tensors and arrays."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        rtol_override: float = 0.0,
        atol_override: float = 0.0,
        **other_parameters: Any,
    ) -> None:
        super().__init__(actual, expected, **other_parameters)
        self.rtol = max(self.rtol, rtol_override)
        self.atol = max(self.atol, atol_override)

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Any, allow_subclasses: bool
    ) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=_ARRAYS)
        return self._to_tensor(actual), self._to_tensor(expected)


class TypedStoragePair(TensorOrArrayPair):
    """Storages with a dtype, as the tensors of their elements."""

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Any, allow_subclasses: bool
    ) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=torch.TypedStorage)
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, tensor_like: Any) -> Any:
        return torch.tensor(tensor_like, dtype=tensor_like.dtype)


_PAIRS = (
    NonePair,
    RelaxedBooleanPair,
    RelaxedNumberPair,
    TensorOrArrayPair,
    TypedStoragePair,
    StringPair,
    SetPair,
    TypePair,
    ObjectPair,
)


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


def assert_equal(x: Any, y: Any, msg: Any, **options: Any) -> None:
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
    found = not_close_error_metas(
        x,
        y,
        pair_types=_PAIRS,
        sequence_types=(*sequences, subset),
        mapping_types=mappings,
        **options,
    )
    if found:
        raise found[0].to_error(msg)
