"""Indexing functions whose arguments decide what operator they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._core import dtypes
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._errors import triggered
from torchshim._functions._arguments import kind_of
from torchshim._functions.assignment import put_with
from torchshim._functions.backward import warn_once
from torchshim._functions.indexing import is_mask
from torchshim._ops._common import broadcast_shapes
from torchshim._ops.view_geometry import size_at, wrap_dim
from torchshim._refusal import refuse
from torchshim._tensor import Tensor, host_value

_OLD_REDUCE = triggered(
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be "
    "removed in a future PyTorch release. Use torch.scatter_reduce instead for more "
    "reduction options.",
    "aten/src/ATen/native/TensorAdvancedIndexing.cpp:225",
)
_BETA = triggered(
    "index_reduce() is in beta and the API may change at any time.",
    "aten/src/ATen/native/TensorAdvancedIndexing.cpp:1523",
)


def _scatter(
    form: str,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    reduce: str | None,
    **out: Tensor,
) -> Tensor:
    is_tensor = isinstance(src, TensorBase)
    if reduce is None:
        name = "scatter_set" if is_tensor else "scatter_value"
        return getattr(fns, name + form)(input, dim, index, src, **out)
    if is_tensor:
        warn_once(_OLD_REDUCE)
    name = "scatter_combine" if is_tensor else "scatter_combine_value"
    return getattr(fns, name + form)(input, dim, index, src, reduce, **out)


def _source(src: Any, value: Any) -> Any:
    if src is None and value is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if value is not None and src is not None:
        raise TypeError("scatter() takes a tensor or a number")
    return value if src is None else src


@public(method=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the input with values written where the indices say.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.scatter_.html

    >>> import torchshim as torch
    >>> torch.scatter(torch.tensor([1, 2, 3]), 0, torch.tensor([2, 0]), 9)
    tensor([9, 2, 9])
    """
    keywords = {} if out is None else {"out": out}
    return _scatter("", input, dim, index, _source(src, value), reduce, **keywords)


@public(namespaces=(), method=True)
def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """`scatter` in place.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.scatter_.html

    >>> import torchshim as torch
    >>> x = torch.zeros(2, 3)
    >>> x.scatter_(1, torch.tensor([[0], [2]]), 1.0)
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    return _scatter("_", self, dim, index, _source(src, value), reduce)


def _index_list(input: Tensor, indices: Any) -> list[Any]:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            "index_put(): argument 'indices' (position 1) must be tuple of Tensors, "
            f"not {kind_of(indices)}"
        )
    found: list[Any] = []
    for i, item in enumerate(indices):
        if not isinstance(item, TensorBase):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{type(item).__name__}"
            )
        dtype = item._tmeta.dtype
        if dtype not in (dtypes.int64, dtypes.int32) and not is_mask(item):
            raise IndexError(
                "tensors used as indices must be long, int, byte or bool tensors"
            )
        found.append(item)
    if len(found) > input.dim():
        raise IndexError(
            f"too many indices for tensor of dimension {input.dim()} (got {len(found)})"
        )
    return found


@public(method=True)
@autocast_whole("index_put")
def index_put(
    input: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy of the input with `input[indices]` replaced by values, or added to.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.index_put_.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1, 2, 3])
    >>> torch.index_put(x, (torch.tensor([0, 0]),), torch.tensor(5), True)
    tensor([11,  2,  3])
    """
    return put_with(input, _index_list(input, indices), values, accumulate, "")


@public(namespaces=("torch",), method=True)
def index_put_(
    input: Tensor, indices: Any, values: Tensor, accumulate: bool = False
) -> Tensor:
    """`index_put` in place.

    With `accumulate` an index that comes twice adds twice.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.index_put_.html

    >>> import torchshim as torch
    >>> x, at = torch.zeros(3), (torch.tensor([2, 2]),)
    >>> x.index_put_(at, torch.tensor(1.0), accumulate=True)
    tensor([0., 0., 2.])
    """
    return put_with(input, _index_list(input, indices), values, accumulate, "_")


@public(method=True)
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None
) -> Tensor:
    """`gather` whose index broadcasts with the input.

    https://docs.pytorch.org/docs/2.13/generated/torch.take_along_dim.html

    >>> import torchshim as torch
    >>> torch.take_along_dim(torch.tensor([[3, 1], [2, 4]]), torch.tensor([[1]]), 1)
    tensor([[1],
            [4]])
    """
    if dim is None:
        source, index, dim = fns.view(input, (-1,)), fns.view(indices, (-1,)), 0
    else:
        have, want = input._tmeta.shape, indices._tmeta.shape
        if len(have) != len(want):
            raise RuntimeError(
                "torch.take_along_dim(): input and indices should have the same number "
                f"of dimensions, but got {len(have)} dimensions for input, and "
                f"{len(want)} dimensions for indices"
            )
        if indices._tmeta.dtype is not dtypes.int64:
            raise RuntimeError(
                "torch.take_along_dim(): dtype of indices should be Long but got "
                f"{indices._tmeta.dtype.tensor_name[6:-6]}"
            )
        size_at(have, dim)  # a tensor without dimensions has none to take along
        dim = wrap_dim(dim, len(have))
        one = (1,)
        ours = tuple(have[:dim]) + one + tuple(have[dim + 1 :])
        theirs = tuple(want[:dim]) + one + tuple(want[dim + 1 :])
        common = broadcast_shapes(ours, theirs)
        sizes = (*common[:dim], want[dim], *common[dim + 1 :])
        index = indices if tuple(want) == sizes else fns.expand(indices, sizes)
        sizes = (*common[:dim], have[dim], *common[dim + 1 :])
        source = input if tuple(have) == sizes else fns.expand(input, sizes)
        if index._tmeta.shape.numel():
            index = fns.remainder(index, have[dim])
    return fns.gather(source, dim, index, out=out)


@public(method=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Slices of `source` reduced into a copy of the input at the indices.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.index_reduce_.html

    >>> import torchshim as torch
    >>> x, i = torch.tensor([1.0, 2.0]), torch.tensor([1, 1])
    >>> x.index_reduce(0, i, torch.tensor([3.0, 4.0]), "prod")
    tensor([ 1., 24.])
    """
    warn_once(_BETA)
    return fns.index_reduce_values(
        input, dim, index, source, reduce, include_self=include_self, out=out
    )


@public(namespaces=(), method=True)
def index_reduce_(
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """`index_reduce` in place.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.index_reduce_.html

    >>> import torchshim as torch
    >>> x, i = torch.tensor([1.0, 2.0]), torch.tensor([1, 1])
    >>> x.index_reduce_(0, i, torch.tensor([3.0, 5.0]), "amax", include_self=False)
    tensor([1., 5.])
    """
    warn_once(_BETA)
    return fns.index_reduce_values_(
        self, dim, index, source, reduce, include_self=include_self
    )


@public(namespaces=("nn.functional",))
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """For every class number a row with a one at its place.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.one_hot.html

    >>> import torchshim as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if num_classes.__class__ is not int:
        refuse("nn.functional", "one_hot", (input, num_classes), {})
    meta = input._tmeta
    if meta.dtype is not dtypes.int64:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor."
        )
    if not meta.shape.numel():
        if num_classes <= 0:
            raise RuntimeError(
                "Can not infer total number of classes from empty tensor."
            )
        return fns.one_hot_classes(input, num_classes)
    if num_classes == -1:
        if meta.batch:
            raise RuntimeError(
                "When vmap-ing torch.nn.functional.one_hot, please provide an explicit "
                "positive num_classes argument."
            )
        host = host_value(input)
        if host.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        num_classes = int(host.max()) + 1
    elif num_classes < 1:
        host = host_value(input)
        if host.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        raise RuntimeError("Class values must be smaller than num_classes.")
    return fns.one_hot_classes(input, num_classes)


@public
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of this shape, of positions in the flat tensor.

    Positions beyond the end wrap around. Raises TypeError for indices that are not
    integers, ValueError for negative sizes.

    https://docs.pytorch.org/docs/2.13/generated/torch.unravel_index.html

    >>> import torchshim as torch
    >>> torch.unravel_index(torch.tensor([5, 1]), (3, 4))
    (tensor([1, 0]), tensor([1, 1]))
    """
    kind = indices.dtype
    if kind.is_complex or kind.is_floating_point or kind is dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(
            f"expected 'shape' to be int or sequence of ints, but got {type(shape)}"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {type(size)}"
            )
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    coordinates = []
    indices = indices.to(dtypes.int64)
    step = 1
    for size in reversed(sizes):
        along = fns.floor_divide(indices, step)
        coordinates.append(fns.remainder(along, size))
        step *= size
    return tuple(reversed(coordinates))
