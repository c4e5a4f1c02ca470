"""Pairs of values: each kind has a class that says whether and how two differ.

Programs derive their own from these, as torchvision's tests do.
"""

from __future__ import annotations

import abc
import cmath
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._core.promotion import promote_types
from torchshim._functions.construct import as_tensor
from torchshim._functions.sparse_tensor import is_sparse
from torchshim._tensor import Tensor, host_value
from torchshim.testing._differences import (
    EXACT,
    UNSIGNED,
    Identifier,
    close,
    default_tolerances,
    scalars_differ,
    tensors_differ,
)

Id = tuple[Any, ...]


class ErrorMeta(Exception):
    """The error of a pair, before the caller's own text is put in."""

    def __init__(self, type: type[Exception], msg: str, *, id: Id = ()) -> None:
        super().__init__(
            "If you are a user and see this message during normal operation please "
            "file an issue at https://github.com/pytorch/pytorch/issues. If you are a "
            "developer and working on the comparison functions, please `raise "
            "ErrorMeta.to_error()` for user facing errors."
        )
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The exception that users get; `msg` replaces its text or makes it of that."""
        text = self.msg
        if self.id:
            where = "".join(str([item]) for item in self.id)
            text += f"\n\nThe failure occurred for item {where}"
        if callable(msg):
            text = msg(text)
        elif msg:
            text = msg
        return self.type(text)


class UnsupportedInputs(Exception):
    """Raised by the constructor of a pair that does not compare such values."""


def get_tolerances(
    *inputs: Any, rtol: float | None, atol: float | None, id: Id = ()
) -> tuple[float, float]:
    """(rtol, atol) as given, or for tensors or dtypes."""
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    raise ErrorMeta(
        ValueError,
        "Both 'rtol' and 'atol' must be either specified or omitted, but got "
        f"no {'rtol' if rtol is None else 'atol'}.",
        id=id,
    )


# -- texts -----------------------------------------------------------------------------


def make_scalar_mismatch_msg(
    actual: Any,
    expected: Any,
    *,
    rtol: float,
    atol: float,
    identifier: Identifier = None,
) -> str:
    """What is said of two numbers that are not close."""
    return scalars_differ(actual, expected, (rtol, atol), identifier)


def make_tensor_mismatch_msg(
    actual: Any,
    expected: Any,
    matches: Any,
    *,
    rtol: float,
    atol: float,
    identifier: Identifier = None,
) -> str:
    """What is said of two tensors, whose elements match in places."""
    a, b, alike = (host_value(t.detach()) for t in (actual, expected, matches))
    with np.errstate(all="ignore"):
        return tensors_differ(a, b, alike, actual.dtype, (rtol, atol), identifier)


# What is said of a layout, and the methods that give its indices.
_SPARSE = {
    "sparse_coo": ("COO", "_indices"),
    "sparse_csr": ("CSR", "crow_indices", "col_indices"),
    "sparse_csc": ("CSC", "ccol_indices", "row_indices"),
    "sparse_bsr": ("BSR", "crow_indices", "col_indices"),
    "sparse_bsc": ("BSC", "ccol_indices", "row_indices"),
}


# -- pairs -----------------------------------------------------------------------------


class Pair(abc.ABC):
    """Two leaves to compare; its constructor refuses those that it does not know."""

    def __init__(
        self, actual: Any, expected: Any, *, id: Id = (), **unknown_parameters: Any
    ) -> None:
        self.actual = actual
        self.expected = expected
        self.id = id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: Any) -> None:
        if not all(isinstance(each, cls) for each in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: Id = ()) -> NoReturn:
        # A constructor fails before it has an `id`, and gives that.
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    @abc.abstractmethod
    def compare(self) -> None:
        """Raises `ErrorMeta` where the two differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or names with values, that the text shows besides."""
        return []

    def __repr__(self) -> str:
        shown = [(name, getattr(self, name)) for name in ("id", "actual", "expected")]
        for extra in self.extra_repr():
            if isinstance(extra, str):
                extra = extra, getattr(self, extra)
            shown.append(extra)
        lines = [f"    {name}={value!s}," for name, value in shown]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class ObjectPair(Pair):
    """Objects, by `==`."""

    def compare(self) -> None:
        """Raises `ErrorMeta` where they are not equal, or cannot be compared."""
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(
                ValueError,
                f"{self.actual} == {self.expected} failed with:\n{error}.",
                id=self.id,
            ) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Values one of which is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Raises `ErrorMeta` unless both are None."""
        if self.actual is not self.expected:
            self._fail(
                AssertionError, f"None mismatch: {self.actual} is not {self.expected}"
            )


class BooleanPair(Pair):
    """Booleans, by identity."""

    def __init__(
        self, actual: Any, expected: Any, *, id: Id, **other_parameters: Any
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        # As in PyTorch, errors do not tell the item.
        super().__init__(actual, expected, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return bool, np.bool_

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Id
    ) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: Id) -> bool:
        if isinstance(bool_like, (bool, np.bool_)):
            return bool(bool_like)
        raise ErrorMeta(
            TypeError, f"Unknown boolean type {type(bool_like)}.", id=id
        )  # of a class that supports more types

    def compare(self) -> None:
        """Raises `ErrorMeta` where they differ."""
        if self.actual is not self.expected:
            text = f"Booleans mismatch: {self.actual} is not {self.expected}"
            self._fail(AssertionError, text)


class NumberPair(Pair):
    """Numbers of Python and NumPy, within tolerances."""

    _TYPE_TO_DTYPE: ClassVar[dict[type, Any]] = {
        int: dtypes.int64,
        float: dtypes.float64,
        complex: dtypes.complex128,
    }
    _NUMBER_TYPES: ClassVar[tuple[type, ...]] = tuple(_TYPE_TO_DTYPE)

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: Id = (),
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_dtype: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        table = self._TYPE_TO_DTYPE
        kinds = [table.get(type(each), dtypes.int64) for each in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*kinds, rtol=rtol, atol=atol, id=id)
        self.equal_nan = equal_nan
        self.check_dtype = check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, np.number)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: Id) -> Any:
        if isinstance(number_like, np.number):
            return number_like.item()
        if isinstance(number_like, self._NUMBER_TYPES):
            return number_like
        raise ErrorMeta(
            TypeError, f"Unknown number type {type(number_like)}.", id=id
        )  # of a class that supports more types

    def compare(self) -> None:
        """Raises `ErrorMeta` where they are not close."""
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(
                AssertionError,
                f"The (d)types do not match: {type(actual)} != {type(expected)}.",
            )
        if actual == expected:
            return
        if self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return
        difference = abs(actual - expected)
        allowed = self.atol + self.rtol * abs(expected)
        if cmath.isfinite(difference) and difference <= allowed:
            return
        text = scalars_differ(actual, expected, (self.rtol, self.atol))
        self._fail(AssertionError, text)

    def extra_repr(self) -> Sequence[str]:
        """The tolerances."""
        return "rtol", "atol", "equal_nan", "check_dtype"


class TensorLikePair(Pair):
    """Tensors, and what `torch.as_tensor` takes: attributes, then values."""

    def __init__(
        self,
        actual: Any,
        expected: Any,
        *,
        id: Id = (),
        allow_subclasses: bool = True,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool = False,
        check_device: bool = True,
        check_dtype: bool = True,
        check_layout: bool = True,
        check_stride: bool = False,
        **other_parameters: Any,
    ) -> None:
        actual, expected = self._process_inputs(
            actual, expected, id=id, allow_subclasses=allow_subclasses
        )
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(
            actual, expected, rtol=rtol, atol=atol, id=id
        )
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Id, allow_subclasses: bool
    ) -> tuple[Any, Any]:
        # Each sparse layout has a class of its own here.
        a, b = (Tensor if is_sparse(x) else type(x) for x in (actual, expected))
        if not (isinstance(actual, b) or isinstance(expected, a)):
            self._inputs_not_supported()
        if not allow_subclasses and a is not b:
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, tensor_like: Any) -> Any:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        with contextlib.suppress(Exception):
            return as_tensor(tensor_like)
        self._inputs_not_supported()

    def compare(self) -> None:
        """Raises `ErrorMeta` where attributes differ, or values are not close."""
        actual, expected = self.actual, self.expected
        self._compare_attributes(actual, expected)
        if actual.is_meta or expected.is_meta:
            return  # There are no values.
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual: Any, expected: Any) -> None:
        def same(name: str, a: Any, b: Any) -> None:
            if a != b:
                text = f"The values for attribute '{name}' do not match: {a} != {b}."
                self._fail(AssertionError, text)

        same("shape", actual.shape, expected.shape)
        if actual.layout != expected.layout:
            if self.check_layout:
                same("layout", actual.layout, expected.layout)
        elif self.check_stride and actual.layout == strided:
            same("stride()", actual.stride(), expected.stride())
        if self.check_device:
            same("device", actual.device, expected.device)
        if self.check_dtype:
            same("dtype", actual.dtype, expected.dtype)

    def _equalize_attributes(self, actual: Any, expected: Any) -> tuple[Any, Any]:
        """The two with one device, dtype and layout."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            wide = [
                dtypes.int64 if t.dtype in UNSIGNED else t.dtype
                for t in (actual, expected)
            ]
            dtype = promote_types(*wide)
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout != expected.layout:
            actual, expected = (
                t if t.layout == strided else t.to_dense() for t in (actual, expected)
            )
        return actual, expected

    def _compare_values(self, actual: Any, expected: Any) -> None:
        options = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        layout = actual.layout.name
        if layout == "jagged":
            pair = actual._v, expected._v
            self._compare_regular_values_close(*pair, **options)
        elif hasattr(actual, "_masked_mask") and hasattr(expected, "_masked_mask"):
            pair = actual.to_tensor(0), expected.to_tensor(0)
            self._compare_regular_values_close(*pair, **options)
        elif layout in _SPARSE:
            self._compare_sparse_values(_SPARSE[layout], actual, expected, options)
        elif actual.is_quantized:
            pair = actual.dequantize(), expected.dequantize()
            self._compare_regular_values_close(
                *pair, **options, identifier=lambda name: f"Quantized {name.lower()}"
            )
        else:
            self._compare_regular_values_close(actual, expected, **options)

    def _compare_sparse_values(
        self, parts: Sequence[str], actual: Any, expected: Any, options: dict[str, Any]
    ) -> None:
        """Indices are the same, values close."""
        name, *methods = parts

        def same(what: str, a: int, b: int) -> None:
            if a != b:
                text = f"The number of {what} in sparse {name} tensors does not match: "
                self._fail(AssertionError, f"{text}{a} != {b}")

        if name == "COO":
            dims = actual.sparse_dim(), expected.sparse_dim()
            same("sparse dimensions", *dims)
        same("specified values", actual._nnz(), expected._nnz())
        for method in methods:
            self._compare_regular_values_equal(
                *(getattr(t, method)() for t in (actual, expected)),
                identifier=f"Sparse {name} {method.lstrip('_')}",
            )
        self._compare_regular_values_close(
            *(t._v for t in (actual, expected)),
            **options,
            identifier=f"Sparse {name} values",
        )

    def _compare_regular_values_equal(
        self,
        actual: Any,
        expected: Any,
        *,
        equal_nan: bool = False,
        identifier: Identifier = None,
    ) -> None:
        self._compare_regular_values_close(
            *(actual, expected),
            rtol=0.0,
            atol=0.0,
            equal_nan=equal_nan,
            identifier=identifier,
        )

    def _compare_regular_values_close(
        self,
        actual: Any,
        expected: Any,
        *,
        rtol: float,
        atol: float,
        equal_nan: bool,
        identifier: Identifier = None,
    ) -> None:
        a, b = (host_value(t.detach()) for t in (actual, expected))
        dtype, tolerances = actual.dtype, (rtol, atol)
        # Numbers of one byte are compared bit by bit.
        if dtype.is_floating_point and dtype.itemsize == 1 and tolerances != EXACT:
            self._fail(
                AssertionError,
                f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison "
                "of low dimensional floats. Please use rtol=0.0 and atol=0.0.",
            )
        with np.errstate(all="ignore"):
            matches = close(a, b, tolerances, equal_nan)
            if matches.all():
                return
            if not actual.shape:
                a, b = actual.item(), expected.item()
                text = scalars_differ(a, b, tolerances, identifier)
            else:
                text = tensors_differ(a, b, matches, dtype, tolerances, identifier)
        self._fail(AssertionError, text)

    def extra_repr(self) -> Sequence[str]:
        """The tolerances, and what else is compared."""
        return (
            *("rtol", "atol", "equal_nan"),
            *("check_device", "check_dtype", "check_layout", "check_stride"),
        )
