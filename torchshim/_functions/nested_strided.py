"""Nested tensors of layout strided, PyTorch's older kind: tensors of any sizes in one.

The elements of all of them lie in one buffer; sizes, strides and where each begins are
known on the host (`Arrangement`). What is done with one is recorded as operators on the
buffer (`composed.py`). Functions and methods come to `HANDLERS`; what PyTorch does not
have for them either is refused.
https://docs.pytorch.org/docs/2.13/nested.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from torchshim._core.device import device, linked
from torchshim._core.layout import contiguous_format
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._errors import triggered, warn_once
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._functions._arguments import device_of
from torchshim._functions.composed import FACTS, knows_facts, meta_with
from torchshim._functions.creation import placed
from torchshim._functions.joining import cat
from torchshim._functions.nested_nodes import Nested, named, viewed
from torchshim._printing import join_suffixes

HANDLERS: dict[str, Callable[..., Any]] = {}
_CPU = device("cpu")

_PROTOTYPE = triggered(
    "The PyTorch API of nested tensors is in prototype stage and will change in the "
    "near future. We recommend specifying layout=torch.jagged when constructing a "
    "nested tensor, as this layout receives active development, has better operator "
    "coverage, and works with torch.compile.",
    "aten/src/ATen/NestedTensorImpl.cpp:177",
)
_NO_SIZES = "Internal error: NestedTensorImpl doesn't support {}. Please file an issue."


def refuse(name: str) -> NoReturn:
    """Raises for what nested tensors of this layout do not support."""
    what = name if " " in name else f"{name}()"
    raise NotImplementedError(
        f"{what} is not supported for nested tensors with the strided layout: use "
        "layout=torch.jagged"
    )


class Arrangement:
    """The sizes, strides and beginnings of the tensors that lie in one buffer."""

    def __init__(
        self, sizes: Any, strides: Any = None, begins: Any = None, ndim: int = 0
    ) -> None:
        self.sizes = np.asarray(sizes, np.int64)
        if self.sizes.ndim != 2:
            self.sizes = self.sizes.reshape(len(sizes), self.sizes.size and -1)
        self.ndim = self.sizes.shape[1] if len(sizes) else ndim
        counts = self.sizes.prod(1)
        dense = _contiguous(self.sizes)
        starts = np.cumsum(counts) - counts
        self.strides = dense if strides is None else np.asarray(strides, np.int64)
        self.begins = starts if begins is None else np.asarray(begins, np.int64)
        self.counts = counts
        self.contiguous = bool(
            (self.strides == dense).all() and (self.begins == starts).all()
        )
        #: Index tensors that follow from this alone, by their name and device.
        self.plans: dict[Any, Any] = {}

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The size of each tensor."""
        return [tuple(row) for row in self.sizes.tolist()]

    def common(self, dim: int) -> int:
        """The length that all tensors have in a dimension; -1 if they differ."""
        column = self.sizes[:, dim]
        same = len(column) and (column == column[0]).all()
        return int(column[0]) if same else -1

    def planned(self, name: Any, device: Any, make: Callable[[], Any]) -> Any:
        """An index array, as a tensor on a device that is made once."""
        key = name, device
        if key not in self.plans:
            self.plans[key] = placed(make(), device)
        return self.plans[key]

    def places(self, i: int) -> np.ndarray:
        """Where in the buffer each element of one tensor is."""
        found = np.array(self.begins[i])
        for length, stride in zip(self.sizes[i], self.strides[i], strict=True):
            found = found[..., None] + np.arange(length) * stride
        return found


def _contiguous(sizes: np.ndarray) -> np.ndarray:
    """The strides of tensors whose elements lie in row-major order."""
    strides = np.ones_like(sizes)
    for dim in range(sizes.shape[1] - 2, -1, -1):
        strides[:, dim] = strides[:, dim + 1] * sizes[:, dim + 1]
    return strides


class StridedNested(Nested):
    """A batch of tensors of any sizes, with their elements in one buffer."""

    __slots__ = ()
    __module__ = "torch"

    _arrangement: Arrangement
    is_nested = True

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

    # Sizes ----------------------------------------------------------------------------

    @property
    def shape(self) -> Any:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def size(self, dim: int | None = None) -> Any:
        """The length of a dimension that all tensors have in common."""
        if dim is None:
            raise RuntimeError(_NO_SIZES.format("sizes"))
        at = wrapped(self, dim)
        found = len(self._arrangement.sizes)
        if at:
            found = self._arrangement.common(at - 1)
        if found < 0:
            raise RuntimeError(
                f"Given dimension {at} is irregular and does not have a size."
            )
        return found

    def dim(self) -> int:
        """The number of dimensions, the batch's own among them."""
        return self._arrangement.ndim + 1

    ndimension = dim

    @property
    def ndim(self) -> int:
        return self.dim()

    def numel(self) -> int:
        """The number of elements of all tensors."""
        return int(self._arrangement.counts.sum())

    nelement = numel

    @property
    def nbytes(self) -> int:
        return self.numel() * self.element_size()

    def stride(self, dim: int | None = None) -> Any:
        """Refused: each tensor has strides of its own."""
        raise RuntimeError(_NO_SIZES.format("strides"))

    def __len__(self) -> int:
        raise RuntimeError(_NO_SIZES.format("sizes"))

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def storage_offset(self) -> int:
        """As `Tensor.storage_offset`, of the buffer."""
        return self._v.storage_offset()

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the tensors are contiguous, one after the other."""
        return self._arrangement.contiguous

    def is_same_size(self, other: Any) -> bool:
        """Whether the tensors of both have the same sizes."""
        words = ["nested" if is_strided(t) else "not nested" for t in (self, other)]
        if "not nested" in words:
            raise RuntimeError(
                "Expected both self and other to be nested tensors. Self is "
                f"{words[0]}. While Other is {words[1]}."
            )
        return same_sizes(self, other)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            many = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return bool(self._v)

    is_nonzero = __bool__

    def values(self) -> Any:
        """The buffer, as a view."""
        return viewed(self._v, "Values")

    def _nested_tensor_size(self) -> Any:
        """The sizes of all tensors, as the rows of a matrix."""
        return placed(self._arrangement.sizes, _CPU)

    def _nested_tensor_strides(self) -> Any:
        """The strides of all tensors, as the rows of a matrix."""
        return placed(self._arrangement.strides, _CPU)

    def _nested_tensor_storage_offsets(self) -> Any:
        """Where in the buffer the tensors begin."""
        return placed(self._arrangement.begins, _CPU)

    # Text -----------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with untracked():
            parts = [part.detach() for part in parts_of(self, self._v.detach())]
        if self.requires_grad:
            parts = [part.requires_grad_() for part in parts]
        indented = ("\n".join(f"  {x}" for x in str(p).split("\n")) for p in parts)
        text = "nested_tensor([\n" + ",\n".join(indented) + "\n]"
        suffixes = []
        if self.device.type != "cpu":
            suffixes.append(f"device='{self.device}'")
        if self.grad_fn is not None:
            suffixes.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            suffixes.append("requires_grad=True")
        return join_suffixes(text, suffixes, len("nested_tensor("), new_line=False)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if spec else repr(self)

    # What tensors that are made of others have ----------------------------------------

    def _like(self, values: Any, **changes: Any) -> Any:
        return strided(values, changes.get("arrangement", self._arrangement))

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        return self._like(move(self._v))

    def _values_of(self, gradient: Any) -> Any:
        if not isinstance(gradient, StridedNested) or not same_sizes(self, gradient):
            raise RuntimeError(
                "Mismatch in shape: grad_output[0] is not a nested tensor of the same "
                "sizes as output[0]"
            )
        return contiguous(gradient)._v

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """As `Tensor.requires_grad_`, of the buffer."""
        super().requires_grad_(requires_grad)
        return self

    @property
    def data(self) -> Any:
        """The same elements without history."""
        return self._like(self._v.detach())

    def __reduce_ex__(self, proto: Any) -> Any:
        sizes = self._nested_tensor_size(), self._nested_tensor_strides()
        begins = self._nested_tensor_storage_offsets()
        buffer = self._v.detach().requires_grad_(self.requires_grad)
        return _rebuild_nested_tensor, (buffer, *sizes, begins)


StridedNested.__name__ = StridedNested.__qualname__ = "Tensor"
knows_facts(StridedNested)


def strided(buffer: Any, arrangement: Arrangement) -> Any:
    """A nested tensor of the elements of a buffer, unchecked."""
    warn_once(_PROTOTYPE)
    made = object.__new__(StridedNested)
    made._arrangement = arrangement
    common = [arrangement.common(d) for d in range(arrangement.sizes.shape[1])]
    made._tmeta = meta_with((len(arrangement.sizes), *common), buffer)
    made._v = buffer
    return made


def is_strided(value: Any) -> bool:
    """Whether a value is a nested tensor of layout strided."""
    return isinstance(value, StridedNested)


def _rebuild_nested_tensor(
    buffer: Any, sizes: Any, strides: Any, storage_offsets: Any
) -> Any:
    """A nested tensor out of its parts, as files and pickles have it."""
    parts = [part.numpy() for part in (sizes, strides, storage_offsets)]
    return strided(viewed(buffer, "NestedViewFromBuffer"), Arrangement(*parts))


_rebuild_nested_tensor.__module__ = "torchshim._utils"


# Parts --------------------------------------------------------------------------------


def parts_of(tensor: Any, buffer: Any = None) -> list[Any]:
    """The tensors of the batch, as views of the buffer."""
    laid, buffer = tensor._arrangement, tensor._v if buffer is None else buffer
    if not len(laid.sizes):
        return []
    if laid.contiguous and int(laid.counts.sum()) == buffer.shape[0]:
        pieces = buffer.split(laid.counts.tolist())
        return [p.view(size) for p, size in zip(pieces, laid.shapes, strict=True)]
    rows = zip(laid.shapes, laid.strides.tolist(), laid.begins.tolist(), strict=True)
    first = buffer.storage_offset()
    return [buffer.as_strided(s, tuple(t), b + first) for s, t, b in rows]


def check_contiguous(
    tensor: Any, what: str = "NestedTensor must be contiguous to get buffer."
) -> None:
    """RuntimeError with these words unless a tensor is contiguous.

    Here most functions would have no need of that.
    """
    if not tensor._arrangement.contiguous:
        raise RuntimeError(what)


def contiguous(tensor: Any) -> Any:
    """The tensor itself if it is contiguous, else a copy that is."""
    laid = tensor._arrangement
    if laid.contiguous and laid.counts.sum() == tensor._v.shape[0]:
        return tensor
    places = laid.planned("all", tensor.device, lambda: _all_places(laid))
    buffer = named(fns.index_select(tensor._v, 0, places), "Clone")
    return strided(buffer, Arrangement(laid.sizes, ndim=laid.ndim))


def _all_places(laid: Arrangement) -> np.ndarray:
    found = [laid.places(i).reshape(-1) for i in range(len(laid.sizes))]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def same_sizes(a: Any, b: Any) -> bool:
    """Whether the tensors of two batches have the same sizes."""
    if not is_strided(b):
        return False
    mine, other = a._arrangement.sizes, b._arrangement.sizes
    return mine.shape == other.shape and bool((mine == other).all())


def of_list(tensors: Sequence[Any], dtype: Any = None, device: Any = None) -> Any:
    """A nested tensor with the history of a list of tensors."""
    if device is not None:
        device = device_of("nested_tensor", device, linked)
    if not tensors:
        empty = placed(np.zeros(0, np.float32), _CPU)
        return strided(empty.to(dtype=dtype, device=device), Arrangement([]))
    first = tensors[0]
    for at, each in enumerate(tensors):
        if each.is_nested:
            raise RuntimeError(
                "We do not accept nested tensors as input to nested tensors"
            )
        if each.dim() != first.dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {each.dim()} for Tensor at index {at} and dimension "
                f"{first.dim()} for Tensor at index {at - 1}."
            )
    kind = first.dtype if dtype is None else dtype
    place = first.device if device is None else device
    flat = [t.reshape(-1).to(dtype=kind, device=place) for t in tensors]
    sizes = [tuple(t.shape) for t in tensors]
    arrangement = Arrangement(np.array(sizes, np.int64).reshape(len(sizes), -1))
    return strided(named(cat(flat), "NestedTensorFromTensorList"), arrangement)


def padded_places(tensor: Any, size: tuple[int, ...]) -> Any:
    """Which element of the buffer each of a padded tensor is; beyond it for none."""
    laid, count = tensor._arrangement, tensor._v.shape[0]

    def make() -> np.ndarray:
        found = np.full((len(laid.sizes), *size), count, np.int64)
        for i, shape in enumerate(laid.shapes):
            found[(i, *(slice(n) for n in shape))] = laid.places(i)
        return found

    return laid.planned(("padded", size, count), tensor.device, make)


def to_padded(tensor: Any, padding: Any, size: tuple[int, ...] | None = None) -> Any:
    """One tensor with all of the batch, padded to the greatest length."""
    if size is None:
        size = greatest(tensor)
    return fns.nested_to_padded(tensor._v, padded_places(tensor, size), padding)


def greatest(tensor: Any) -> tuple[int, ...]:
    """The greatest length in each dimension."""
    return tuple(tensor._arrangement.sizes.max(0, initial=0).tolist())


def from_padded(padded: Any, arrangement: Arrangement, node: str = "") -> Any:
    """A nested tensor of the leading elements of each row of a padded tensor."""
    shape = tuple(padded.shape)

    def make() -> np.ndarray:
        at = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
        found = [
            at[(i, *(slice(n) for n in size))].reshape(-1)
            for i, size in enumerate(arrangement.shapes)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    places = arrangement.planned(("from", shape), padded.device, make)
    flat = padded.reshape(1, -1)
    values = fns.nested_from_padded(flat, places)
    return strided(named(values, node) if node else values, arrangement)


def wrapped(tensor: Any, dim: int, more: int = 0) -> int:
    """A dimension as a number that is not negative; IndexError beyond the last."""
    ndim = tensor.dim() + more
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    return dim % ndim


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
            return getattr(StridedNested, name)(*args, **kwargs)

    handles(name)(fact)


for _name in (*FACTS, "retain_grad", "requires_grad_"):
    _fact(_name)


def columns(laid: Arrangement, *parts: Any) -> np.ndarray:
    """Sizes or strides put together of columns, for tensors with other dimensions."""
    rows = len(laid.sizes)
    made = [np.broadcast_to(np.asarray(p).reshape(-1, 1), (rows, 1)) for p in parts]
    return np.concatenate(made, 1) if made else np.zeros((rows, 0), np.int64)
