"""What is known of a value without running anything: shape, dtype, strides, device.

A `Meta` is immutable and interned, so that two equal metas are one object and a
recording's key can hold it by identity.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, overload

from torchshim._core.device import device as Device
from torchshim._core.dtypes import dtype as DType
from torchshim._core.dtypes import type_name
from torchshim._core.ragged import SymInt


def _size_item(at: int, item: Any) -> int:
    """An item of a shape as an integer; TypeError for what is none."""
    if isinstance(item, SymInt):
        return item  # type: ignore[return-value]
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {at} is "
            f"'{type_name(type(item))}')"
        ) from None


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that prints as PyTorch's and counts elements.

    https://docs.pytorch.org/docs/2.13/size.html

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()
    __module__ = "torchshim"

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Size:
        items = tuple(sizes)
        for item in items:
            if item.__class__ is not int:
                items = tuple(_size_item(i, each) for i, each in enumerate(items))
                break
        return tuple.__new__(cls, items)

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError("unsupported format string passed to torch.Size.__format__")
        return str(self)

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            # Python's texts, which would not name the class as it says it is called.
            kind = type(other).__name__
            if isinstance(other, (list, str, bytes)):
                raise TypeError(
                    f'can only concatenate {kind} (not "torch.Size") to {kind}'
                )
            raise TypeError(
                f"unsupported operand type(s) for +: '{kind}' and 'torch.Size'"
            )
        return Size(tuple(other) + tuple(self))

    def __mul__(self, other: int) -> Size:  # type: ignore[override]
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: Any, /) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if isinstance(index, slice) else item

    def __reduce__(self):
        return Size, (tuple(self),)


def contiguous_strides(shape: Iterable[int]) -> tuple[int, ...]:
    """Strides (in elements) of a row-major array, as PyTorch counts them."""
    strides: list[int] = []
    step = 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    return 0 in shape or fills(zip(reversed(strides), reversed(shape), strict=True))


def fills(dimensions: Iterable[tuple[int, int]]) -> bool:
    """Whether dimensions (stride, size), the innermost first, leave no gaps."""
    step = 1
    for stride, size in dimensions:
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


class Meta:
    """Shape, dtype, device, strides, offset and autograd role of one value."""

    __slots__ = (
        "_contiguous",
        "_plain",
        "batch",
        "device",
        "dtype",
        "inference",
        "leaf",
        "levels",
        "offset",
        "requires_grad",
        "shape",
        "strides",
    )

    shape: Size
    dtype: DType
    device: Device
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool
    leaf: bool
    # Made in inference mode: never part of recorded history.
    inference: bool
    # (level, size) of each `vmap` that maps over this value. Its array has a dimension
    # for each, before those of `shape`, by rising level.
    batch: tuple[tuple[int, int], ...]
    # Under `grad` and its like: which levels differentiate this value, bit 0 standing
    # for autograd itself. 0: no transform does, `requires_grad` says it all.
    levels: int
    # Found out once.
    _contiguous: bool | None
    _plain: Meta | None

    @property
    def numel(self) -> int:
        return self.shape.numel()

    @property
    def contiguous(self) -> bool:
        found = self._contiguous
        if found is None:
            found = self._contiguous = is_contiguous(self.shape, self.strides)
        return found

    @property
    def plain(self) -> Meta:
        """That of the same value without a history."""
        found = self._plain
        if found is None:
            found = self._plain = self.replace(requires_grad=False, leaf=True)
        return found

    @property
    def aval(self) -> tuple[tuple[int, ...], DType]:
        return self.shape, self.dtype

    @property
    def array_shape(self) -> tuple[int, ...]:
        """The shape of the array that holds the value."""
        if not self.batch:
            return tuple(self.shape)
        return (*(size for _, size in self.batch), *self.shape)

    def replace(self, **changes: object) -> Meta:
        fields: dict[str, object] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "device": self.device,
            "strides": self.strides,
            "offset": self.offset,
            "requires_grad": self.requires_grad,
            "leaf": self.leaf,
            "inference": self.inference,
            "batch": self.batch,
            "levels": self.levels,
        }
        fields.update(changes)
        return meta_of(**fields)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"Meta({tuple(self.shape)}, {self.dtype}, grad={self.requires_grad})"


_INTERNED: dict[tuple[object, ...], Meta] = {}
_INTERNED_BOUND = 50_000


def meta_of(
    shape: Iterable[int],
    dtype: DType,
    device: Device,
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    requires_grad: bool = False,
    leaf: bool = True,
    inference: bool = False,
    batch: tuple[tuple[int, int], ...] = (),
    levels: int = 0,
) -> Meta:
    """The one `Meta` with these fields."""
    shape = tuple(shape)
    if strides is None:
        strides = contiguous_strides(shape)
    if not requires_grad:
        levels = 0
    role = requires_grad, leaf, inference, batch, levels
    key = (shape, dtype, device, strides, offset, role)
    meta = _INTERNED.get(key)
    if meta is None:
        if len(_INTERNED) >= _INTERNED_BOUND:
            _INTERNED.clear()  # only identity is lost: later keys simply miss once
        meta = Meta()
        meta.shape = Size(shape)
        meta.dtype = dtype
        meta.device = device
        meta.strides = strides
        meta.offset = offset
        meta.requires_grad = requires_grad
        meta.leaf = leaf
        meta.inference = inference
        meta.batch = batch
        meta.levels = levels
        meta._contiguous = meta._plain = None
        _INTERNED[key] = meta
    return meta


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of element-wise operands; PyTorch's error if there is none."""
    common: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(common), len(shape))
        a = (1,) * (ndim - len(common)) + tuple(common)
        b = (1,) * (ndim - len(shape)) + tuple(shape)
        for dim in reversed(range(ndim)):  # the last that differs is named
            if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({a[dim]}) must match the size of tensor b "
                    f"({b[dim]}) at non-singleton dimension {dim}"
                )
        common = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return common


def elementwise_strides(
    shape: tuple[int, ...], operands: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[int, ...]:
    """Strides of an element-wise result: the operands' memory order, made dense.

    PyTorch's TensorIterator sorts the dimensions by the operands' strides and lays
    the result out in that order (aten/src/ATen/TensorIterator.cpp).
    """
    ndim = len(shape)
    if ndim < 2:
        return contiguous_strides(shape)
    aligned: list[tuple[int, ...]] = []
    plain = True
    for size, strides in operands:
        if not size:
            continue
        pad = ndim - len(size)
        if pad or tuple(size) != tuple(shape) or not is_contiguous(size, strides):
            plain = False
        aligned.append(
            (0,) * pad
            + tuple(
                0 if s == 1 and full != 1 else st
                for s, st, full in zip(size, strides, shape[pad:], strict=True)
            )
        )
    if plain or not aligned:
        return contiguous_strides(shape)

    def ordered(a: int, b: int) -> int:
        """1: a lies inside b, -1: outside, 0: undecided."""
        for strides in aligned:
            sa, sb = strides[a], strides[b]
            if sa == 0 or sb == 0:
                continue
            if sa < sb:
                return -1
            if sa > sb:
                return 1
            if shape[a] > shape[b]:
                return 1
        return 0

    # Insertion sort with an undecided comparison, innermost dimension first.
    order = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = ordered(order[j], order[at])
            if verdict > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif verdict < 0:
                break
    result = [0] * ndim
    step = 1
    for dim in order:
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def indexed_strides(
    shape: tuple[int, ...],
    source: tuple[tuple[int, ...], tuple[int, ...]],
    indices: Iterable[tuple[tuple[int, ...], tuple[int, ...]] | None],
) -> tuple[int, ...]:
    """Strides of `source[indices]` for index tensors, of sizes and strides each.

    As of an element-wise result: the dimensions that are taken as a whole have the
    source's strides, those of the indices the strides of these.
    """
    taken = {d: index for d, index in enumerate(indices) if index is not None}
    rest = [d for d in range(len(source[0])) if d not in taken]
    n = len(shape) - len(rest)
    if not taken:
        return elementwise_strides(shape, [source])
    first, last = min(taken), max(taken)
    before = first if last - first == len(taken) - 1 else 0
    kept = [source[1][d] for d in rest]
    operands = [(shape, (*kept[:before], *(0,) * n, *kept[before:]))]
    common, after = shape[before : before + n], len(rest) - before
    for size, strides in taken.values():
        steps = [0] * (n - len(size)) + [
            0 if s == 1 and full != 1 else step
            for s, step, full in zip(
                size, strides, common[n - len(size) :], strict=True
            )
        ]
        # As if each were reshaped to all dimensions of the result.
        outer, inner = (common[0] * steps[0], steps[-1]) if n else (1, 1)
        operands.append(
            (
                ((1,) * before + common + (1,) * after),
                ((outer,) * before + tuple(steps) + (inner,) * after),
            )
        )
    return elementwise_strides(shape, operands)
