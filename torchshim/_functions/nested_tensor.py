"""Nested tensors of layout jagged: values and offsets that act as one tensor.

A batch of tensors that differ in one dimension is kept as one tensor of values, where
they lie one after the other along that dimension, and the offsets where each begins.
What is done with it is recorded as operators on the values (`composed.py`); where each
element belongs is found on the host, once for each tensor of offsets (`lengths_of` and
the plans below). Functions and methods come to `HANDLERS`, as the functions themselves
followed by their arguments; what is not there is refused.
https://docs.pytorch.org/docs/2.13/nested.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.layout import contiguous_format, preserve_format
from torchshim._core.ragged import SymInt, reserve_first
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._functions.composed import (
    FACTS,
    knows_facts,
    meta_with,
    planned,
)
from torchshim._functions.creation import placed, zeros
from torchshim._functions.nested_nodes import Nested, viewed
from torchshim._tensor import Tensor

HANDLERS: dict[str, Callable[..., Any]] = {}
JAGGED = LAYOUTS["jagged"]


def refuse(name: str) -> NoReturn:
    """Raises for what nested tensors do not support."""
    what = name if " " in name else f"{name}()"
    raise NotImplementedError(
        f"{what} is not supported for nested tensors with the jagged layout"
    )


class NestedTensor(Nested):
    """A batch of tensors that differ in the length of one dimension.

    `values` has them one after the other along the dimension before `_ragged_idx`;
    `offsets` says where each begins, `lengths` how long each is where there are holes.
    """

    __slots__ = ()
    __module__ = "torchshim.nested._internal.nested_tensor"

    _offsets: Any
    _lengths: Any
    _ragged_idx: int
    # The least and greatest length, where known.
    _metadata_cache: dict[str, Any]
    layout: Any = JAGGED
    is_nested = True

    def __new__(cls, values: Any, offsets: Any, **options: Any) -> Any:
        lengths = options.get("lengths")
        if offsets is None:
            raise AssertionError("offsets must not be None")
        if offsets.ndim != 1:
            raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
        if isinstance(values, NestedTensor):
            raise AssertionError("values must not be a NestedTensor")
        if values.device != offsets.device:
            raise AssertionError(
                "values and offsets must be on the same device, but got "
                f"values.device={values.device} and offsets.device={offsets.device}"
            )
        if lengths is not None and offsets.shape[0] - 1 != lengths.shape[0]:
            raise AssertionError(
                "offsets and lengths batch sizes must match: "
                f"offsets.shape[0] - 1 = {offsets.shape[0] - 1}, lengths.shape[0] = "
                f"{lengths.shape[0]}"
            )
        cache = {k: _as_length(v) for k, v in _given(options, "_metadata_cache")}
        made = njt(values, offsets, lengths, options.get("_ragged_idx", 1), cache)
        return made.requires_grad_() if options.get("requires_grad") else made

    def __init__(self, values: Any, offsets: Any, **options: Any) -> None:
        pass

    def _refused(self) -> NoReturn:
        refuse("this operation")

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        owner = getattr(func, "__self__", None)
        if isinstance(owner, property):
            return func(*args)
        name = getattr(func, "__name__", "")
        handler = HANDLERS.get(name)
        if handler is None:
            refuse(name)
        return handler(func, *args, **(kwargs or {}))

    # Parts ----------------------------------------------------------------------------

    def values(self) -> Any:
        """The values of all tensors of the batch, as a view."""
        return viewed(self._v, "NestedGetValues")

    def offsets(self) -> Any:
        """Where each tensor of the batch begins; the last one is where they end."""
        return self._offsets

    def lengths(self) -> Any:
        """How long each tensor of the batch is, where there are holes between them."""
        return self._lengths

    @property
    def _values(self) -> Any:
        return self._v

    @property
    def _size(self) -> tuple[Any, ...]:
        return tuple(self._tmeta.shape)

    @property
    def _strides(self) -> tuple[Any, ...]:
        strides = self._v.stride()
        at = self._ragged_idx
        return self._tmeta.shape[at] * strides[at - 1], *strides

    def _extreme(self, name: str, of: Callable[..., Any]) -> int:
        if name not in self._metadata_cache:
            self._metadata_cache[name] = int(of(lengths_of(self)))
        return self._metadata_cache[name]

    def _get_max_seqlen(self) -> int:
        return self._extreme("max_seqlen", np.max)

    def _get_min_seqlen(self) -> int:
        return self._extreme("min_seqlen", np.min)

    @property
    def _max_seqlen(self) -> int:
        return self._get_max_seqlen()

    @property
    def _min_seqlen(self) -> int:
        return self._get_min_seqlen()

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._metadata_cache.get("max_seqlen")

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._metadata_cache.get("min_seqlen")

    @property
    def _max_seqlen_tensor(self) -> Any:
        found = self._maybe_max_seqlen
        return None if found is None else zeros(found, 0)

    @property
    def _min_seqlen_tensor(self) -> Any:
        found = self._maybe_min_seqlen
        return None if found is None else zeros(found, 0)

    # Of all tensors -------------------------------------------------------------------

    def numel(self) -> int:
        """The number of elements, those in holes left out."""
        if self._lengths is None:
            return self._v.numel()
        fixed = [n for n in self._tmeta.shape[1:] if not isinstance(n, SymInt)]
        return int(lengths_of(self).sum()) * int(np.prod(fixed, dtype=int))

    nelement = numel

    @property
    def nbytes(self) -> int:
        return self.numel() * self.element_size()

    def stride(self, dim: int | None = None) -> Any:
        """As `Tensor.stride`; that of the batch is a multiple of the ragged size."""
        return self._strides if dim is None else self._strides[dim]

    def storage_offset(self) -> int:
        """As `Tensor.storage_offset`, of the values."""
        return self._v.storage_offset()

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether there are no holes and the values are contiguous."""
        if self._lengths is not None:
            return False
        if memory_format is preserve_format:
            return True
        return self._v.is_contiguous(memory_format=memory_format)

    def __bool__(self) -> bool:
        count = self.numel()
        if count != 1:
            many = "more than one value" if count else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(self._v)

    is_nonzero = __bool__

    def is_same_size(self, other: Any) -> bool:
        """Whether both have one ragged structure and the same other dimensions."""
        return self._size == tuple(other.shape)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        grad = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        if self.grad_fn is not None:
            grad = f", grad_fn={self.grad_fn}"
        return (
            f"NestedTensor(size={self._size}, offsets={self._offsets}{grad}, "
            f"contiguous={self.is_contiguous()})"
        )

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if spec else repr(self)

    # What tensors that are made of others have ----------------------------------------

    def _like(self, values: Any, **changes: Any) -> Any:
        return njt(
            values,
            changes.get("offsets", self._offsets),
            changes.get("lengths", self._lengths),
            changes.get("ragged_idx", self._ragged_idx),
            self._metadata_cache,
        )

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        return self._like(move(self._v))

    def _values_of(self, gradient: Any) -> Any:
        if isinstance(gradient, NestedTensor):
            return gradient._v
        raise RuntimeError(
            f"expected a nested gradient for a nested tensor of shape {self._size}, "
            f"but got one of shape {list(gradient.shape)}"
        )

    @property
    def data(self) -> Any:
        """The same values without history."""
        return self._like(self._v.detach())

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, NestedTensor):
            raise RuntimeError("the data of a nested tensor has to be a nested tensor")
        with untracked():
            self._v.data = value._v
        self._offsets, self._lengths = value._offsets, value._lengths
        self._ragged_idx, self._metadata_cache = (
            value._ragged_idx,
            value._metadata_cache,
        )
        _measure(self, self._v)

    def __reduce_ex__(self, proto: Any) -> Any:
        parts = {
            "values": self._v.detach(),
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": {
                k: zeros(v, 0) for k, v in self._metadata_cache.items()
            },
            "requires_grad": self.requires_grad,
        }
        return _rebuild_njt, (parts,)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # PyTorch's pickles have the parts twice.
        known = "_values _offsets _lengths _ragged_idx _metadata_cache".split()
        for name, value in state.items():
            if name not in known and not name.startswith("_dynamo"):
                setattr(self, name, value)


knows_facts(NestedTensor)


def _rebuild_njt(constructor_kwargs: dict[str, Any]) -> Any:
    """A nested tensor out of its parts, as files and pickles have it."""
    return NestedTensor(**constructor_kwargs)


_rebuild_njt.__module__ = "torchshim.nested._internal.nested_tensor"


def _given(options: dict[str, Any], name: str) -> Any:
    return (options.get(name) or {}).items()


def _as_length(value: Any) -> int:
    """A length, which PyTorch keeps as that of an empty tensor."""
    return value.shape[0] if isinstance(value, Tensor) else value


def ragged_size(tensor: Any) -> SymInt:
    """The size that stands for the lengths that a tensor of offsets has."""
    if tensor._ragged is None:
        tensor._ragged = SymInt()
    return tensor._ragged


def njt(
    values: Any,
    offsets: Any,
    lengths: Any = None,
    ragged_idx: int = 1,
    cache: dict[str, Any] | None = None,
) -> Any:
    """A nested tensor of these parts, unchecked."""
    made = object.__new__(NestedTensor)
    made._offsets, made._lengths = offsets, lengths
    made._ragged_idx = ragged_idx
    made._metadata_cache = {} if cache is None else cache
    return _measure(made, values)


def _measure(tensor: Any, values: Any) -> Any:
    offsets, lengths, at = tensor._offsets, tensor._lengths, tensor._ragged_idx
    ragged = ragged_size(offsets if lengths is None else lengths)
    shape = values._tmeta.shape
    size: Any = offsets.shape[0] - 1, *shape[: at - 1], ragged, *shape[at:]
    tensor._tmeta = meta_with(size, values)
    tensor._v = values
    return tensor


def view_of(
    values: Any,
    offsets: Any,
    lengths: Any = None,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A nested tensor on the memory of `values`, with their history."""
    reserve_first()
    given = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    cache = {name: value for name, value in given.items() if value is not None}
    if isinstance(values, NestedTensor):
        raise AssertionError("values must not be a NestedTensor")
    options = {"lengths": lengths, "_ragged_idx": ragged_idx, "_metadata_cache": cache}
    return NestedTensor(viewed(values, "NestedViewFromJagged"), offsets, **options)


def is_jagged(value: Any) -> bool:
    """Whether a value is a nested tensor of layout jagged."""
    return isinstance(value, NestedTensor)


def handles(*names: str) -> Callable[[Any], Any]:
    """Makes a function the one that these functions and methods come to."""

    def register(function: Any) -> Any:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


def _fact(name: str) -> None:
    def fact(func: Any, *args: Any, **kwargs: Any) -> Any:
        with disabled(SUBCLASSES_DISABLED):
            return getattr(NestedTensor, name)(*args, **kwargs)

    handles(name)(fact)


for _name in (*FACTS, "retain_grad", "requires_grad_"):
    _fact(_name)


# Where the elements belong ------------------------------------------------------------


def bounds_of(tensor: Any) -> tuple[list[int], list[int]]:
    """Where each tensor of the batch begins, and how long it is, as numbers."""
    if tensor._lengths is None:

        def make(offsets: np.ndarray) -> Any:
            return offsets[:-1].tolist(), np.diff(offsets).tolist()

        return planned("bounds", make, tensor._offsets)

    def both(offsets: np.ndarray, lengths: np.ndarray) -> Any:
        return offsets[:-1].tolist(), lengths.tolist()

    return planned("bounds", both, tensor._offsets, tensor._lengths)


def lengths_of(tensor: Any) -> np.ndarray:
    """The lengths of the tensors of the batch, as numbers."""
    return np.array(bounds_of(tensor)[1], np.int64)


def padded_places(tensor: Any, length: int) -> Any:
    """Which row of the values each row of a padded tensor is; their number for none."""
    device, count = tensor.device, tensor._v.shape[tensor._ragged_idx - 1]

    def make(offsets: np.ndarray) -> Any:
        at = offsets[:-1, None] + np.arange(length)
        return placed(np.where(at < offsets[1:, None], at, count), device)

    return planned(("padded", length, count), make, tensor._offsets)


def jagged_places(offsets: Any, length: int, total: int) -> Any:
    """Which row each of the values is, of a padded tensor whose rows are `length`.

    With length 1, all values of a tensor of the batch are its one row.
    """
    device = offsets.device

    def make(host: np.ndarray) -> Any:
        at = np.arange(total)
        row = np.clip(np.searchsorted(host, at, "right") - 1, 0, len(host) - 2)
        column = at - host[row] if length != 1 else 0
        return placed(row * length + column, device)

    return planned(("jagged", length, total), make, offsets)


def to_padded(tensor: Any, padding: Any, length: int) -> Any:
    """A tensor with one row of `length` for each of the batch, padded at its end."""
    if tensor._lengths is not None:
        raise RuntimeError(
            "to_padded_tensor(): not supported for nested tensors with holes"
        )
    at = tensor._ragged_idx
    values = tensor._v if at == 1 else tensor._v.transpose(at - 1, 0)
    padded = fns.nested_to_padded(values, padded_places(tensor, length), padding)
    return padded if at == 1 else padded.transpose(at, 1)


def from_padded(padded: Any, like: Any) -> Any:
    """A nested tensor of the structure of another, out of a padded tensor."""
    at, total = like._ragged_idx, like._v.shape[like._ragged_idx - 1]
    if at > 1:
        padded = padded.transpose(at, 1)
    check_total(like)
    places = jagged_places(like._offsets, padded.shape[1], total)
    values = fns.nested_from_padded(padded, places)
    return like._like(values if at == 1 else values.transpose(at - 1, 0))


def check_total(tensor: Any) -> None:
    """Raises where there are values beyond the last offset."""

    def make(offsets: np.ndarray) -> int:
        return int(offsets[-1])

    total = tensor._v.shape[tensor._ragged_idx - 1]
    if planned("total", make, tensor._offsets) != total:
        raise RuntimeError(
            "_padded_dense_to_jagged_forward(): final offset should match total_L value"
        )


def padded_length(tensor: Any) -> int:
    """The longest length, if known, or a bound of it, as PyTorch pads."""
    known = tensor._maybe_max_seqlen
    return tensor._v.shape[tensor._ragged_idx - 1] if known is None else known


def fits(tensor: Any, size: Sequence[Any]) -> bool:
    """Whether a size has the batch and the ragged dimension of a tensor."""
    end = tensor._ragged_idx + 1
    mine, other = tensor._size[:end], tuple(size[:end])
    return len(mine) == len(other) and all(
        a == b or b == -1 for a, b in zip(mine, other, strict=True)
    )


# Dimensions ---------------------------------------------------------------------------


def wrapped(ndim: int, dim: int) -> int:
    """A dimension as a number that is not negative; IndexError beyond the last."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    return dim % ndim


def inner(dim: int, ragged_idx: int) -> int:
    """Which dimension of the values a dimension is; the batch is part of the ragged."""
    return ragged_idx - 1 if dim == 0 else dim - 1


def inner_dim(
    tensor: Any, dim: int, name: str, *, ragged: bool = False, more: int = 0
) -> int:
    """As `inner`; RuntimeError for the batch and, unless allowed, the ragged one."""
    found = wrapped(len(tensor._size) + more, dim)
    if found == tensor._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if found == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return inner(found, tensor._ragged_idx)


def strict(tensor: Any, form: str, name: str = "self") -> None:
    """Raises for tensors with holes or with the ragged dimension elsewhere.

    `form` is what PyTorch calls the function, with the kinds of its arguments.
    """
    if tensor._lengths is not None or tensor._ragged_idx != 1:
        raise ValueError(
            f"NestedTensor {form}: expected {name} to be a contiguous jagged layout "
            "NestedTensor"
        )
