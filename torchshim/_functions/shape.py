"""Views and shapes whose arguments decide what operator they are."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from torchshim._attributes import fact
from torchshim._core import dtypes
from torchshim._core.meta import broadcast_shape
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._errors import triggered, warn, warn_once
from torchshim._functions._arguments import (
    all_tensors,
    check_retyped,
    kind_of,
    size_of,
    wrong,
)
from torchshim._functions._family import described
from torchshim._functions.creation import placed
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor, from_array, host_value

_INT64 = 2**63


# -- other dtypes, other shapes ----------------------------------------------------


@public(namespaces=(), method=True)
def view(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or read as another dtype.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.view.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2, 3, 4]).view(2, -1)
    tensor([[1, 2],
            [3, 4]])
    """
    if dtype is None:
        if not size:
            raise TypeError("view() takes sizes or a dtype")
        kind = size[0].__class__
        if kind is dtypes.dtype or kind is type:
            dtype = dtypes.as_dtype(*size)
    if dtype is not None:
        check_retyped(self, dtype)
        return fns.view_dtype(self, dtype, self._tmeta.dtype)
    together = len(size) == 1 and isinstance(size[0], (tuple, list))
    return fns.view(self, size[0] if together else size)


@public(namespaces=(), method=True)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor.

    RuntimeError where the memory cannot be seen like that, see `view`.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.view_as.html

    >>> import torchshim as torch
    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return fns.view(self, other._tmeta.shape)


@public(namespaces=(), method=True)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.reshape_as.html

    >>> import torchshim as torch
    >>> torch.arange(4).reshape(2, 2).t().reshape_as(torch.zeros(4))
    tensor([0, 2, 1, 3])
    """
    return fns.reshape(self, other._tmeta.shape)


@public(namespaces=(), method=True)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.expand_as.html

    >>> import torchshim as torch
    >>> torch.tensor([[1], [2]]).expand_as(torch.zeros(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return fns.expand(self, other._tmeta.shape)


@public(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Neighbouring dimensions made one; the tensor itself where that is one already.

    https://docs.pytorch.org/docs/2.13/generated/torch.flatten.html

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2], [3, 4]]).flatten()
    tensor([1, 2, 3, 4])
    """
    ndim = len(input._tmeta.shape)
    if ndim and wrap_dim(start_dim, ndim) == wrap_dim(end_dim, ndim):
        return input
    return fns.flatten(input, start_dim, end_dim)


@public(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension, without copying where the memory allows it.

    https://docs.pytorch.org/docs/2.13/generated/torch.ravel.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.ravel().data_ptr() == x.data_ptr(), x.t().ravel()
    (True, tensor([1, 3, 2, 4]))
    """
    return fns.view(contiguous_copy(input), (-1,))


def contiguous_copy(input: Tensor) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    return input if input._tmeta.contiguous else fns.clone_contiguous(input)


# -- turning -----------------------------------------------------------------------

_SHAPE = "aten/src/ATen/native/TensorShape.cpp"
_T_DEPRECATED = triggered(
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
    "deprecated and it will throw an error in a future release. Consider `x.mT` to "
    "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` "
    "to reverse the dimensions of a tensor.",
    "aten/src/ATen/native/TensorShape.cpp:4314",
)
_IDENTITY = (
    "Tensor.{} is deprecated on 0-D tensors. This function is the identity in these "
    "cases."
)


def conjugated(x: Tensor) -> Tensor:
    return x.conj()


def numpy_t(self: Tensor) -> Tensor:
    """The dimensions in reverse order: a matrix transposed.

    Deprecated, with a warning, for tensors of other than two dimensions.

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2, 3]]).T.shape
    torch.Size([3, 1])
    """
    ndim = len(self._tmeta.shape)
    if ndim != 2:
        if ndim == 0:
            warn_once(triggered(_IDENTITY.format("T"), f"{_SHAPE}:4321"))
        else:
            warn_once(_T_DEPRECATED)
    return fns.permute(self, tuple(range(ndim - 1, -1, -1)))


def _resized(self: Tensor, sizes: tuple[int, ...]) -> Tensor:
    size, count = self.size(), self.numel()
    wanted = functools.reduce(operator.mul, sizes, 1)
    if wanted != count:
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({wanted} elements in "
            f"total), but the given tensor has a size of {'x'.join(map(str, size))} "
            f"({count} elements). autograd's resize can only change the shape of a "
            "given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(sizes)


@public(namespaces=(), method=True)
def resize(self: Tensor, *sizes: int) -> Tensor:
    """Deprecated: `reshape`.

    RuntimeError unless the number of elements stays the same.

    >>> import torchshim as torch
    >>> torch.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize is deprecated")
    return _resized(self, sizes)


@public(namespaces=(), method=True)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Deprecated: `reshape_as`.

    RuntimeError unless both have as many elements.

    >>> import torchshim as torch
    >>> torch.arange(4).resize_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    warn("non-inplace resize_as is deprecated")
    return _resized(self, tuple(tensor.size()))


def matrix_t(self: Tensor) -> Tensor:
    """The last two dimensions swapped.

    RuntimeError for one dimension.

    >>> import torchshim as torch
    >>> torch.zeros(5, 2, 3).mT.shape
    torch.Size([5, 3, 2])
    """
    ndim = len(self._tmeta.shape)
    if ndim == 1:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got 1-D "
            "tensor."
        )
    if ndim == 0:
        warn_once(triggered(_IDENTITY.format("mT"), f"{_SHAPE}:4373"))
        return self
    return fns.transpose(self, -2, -1)


def matrix_h(self: Tensor) -> Tensor:
    """A matrix transposed and conjugated.

    RuntimeError for one dimension, or more than two.

    >>> import torchshim as torch
    >>> torch.tensor([[1j, 2]]).H
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    ndim = len(self._tmeta.shape)
    if ndim == 0:
        text = "Tensor.H is deprecated on 0-D tensors. Consider using x.conj()."
        warn_once(triggered(text, f"{_SHAPE}:4335"))
        return conjugated(self)
    if ndim != 2:
        more = (
            "" if ndim < 2 else (" For batches of matrices, consider using tensor.mH")
        )
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{ndim}-D tensor.{more}"
        )
    return conjugated(fns.transpose(self, -2, -1))


def _adjoint(self: Tensor, name: str) -> Tensor:
    ndim = len(self._tmeta.shape)
    if ndim == 1:
        only = "tensor." + name.removeprefix("Tensor.")
        raise RuntimeError(
            f"{only} is only supported on matrices or batches of matrices. Got "
            "1-D tensor."
        )
    if ndim == 0:
        text = f"{name} is deprecated on 0-D tensors. Consider using x.conj()."
        warn_once(triggered(text, f"{_SHAPE}:{4382 if name == 'Tensor.mH' else 4390}"))
        return conjugated(self)
    return conjugated(fns.transpose(self, -2, -1))


@public(method=True)
def adjoint(input: Tensor) -> Tensor:
    """Matrices (the last two dimensions) transposed and conjugated.

    A view; RuntimeError for one dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.adjoint.html

    >>> import torchshim as torch
    >>> torch.tensor([[1j, 2]]).adjoint()
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return _adjoint(input, "adjoint()")


def matrix_mh(self: Tensor) -> Tensor:
    """Matrices (the last two dimensions) transposed and conjugated.

    RuntimeError for one dimension.

    >>> import torchshim as torch
    >>> torch.tensor([[1j, 2]]).mH
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return _adjoint(self, "Tensor.mH")


Tensor.T = fact("T", numpy_t)
Tensor.mT = fact("mT", matrix_t)
Tensor.H = fact("H", matrix_h)
Tensor.mH = fact("mH", matrix_mh)


# -- repeating, joining ------------------------------------------------------------


@public(method=True)
def repeat_interleave(
    input: Tensor,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Every element (or slice) repeated, all equally often or each as `repeats` says.

    https://docs.pytorch.org/docs/2.13/generated/torch.repeat_interleave.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _counted(input, output_size)
    if isinstance(repeats, Tensor):
        return _repeat_each(input, repeats, dim, output_size)
    if isinstance(repeats, (int, np.integer)) and repeats.__class__ is not bool:
        repeats = int(repeats)
    if repeats.__class__ is not int:
        raise TypeError(
            "repeat_interleave(): argument 'repeats' must be Tensor or int, not "
            f"{kind_of(repeats)}"
        )
    shape = input._tmeta.shape
    if dim is not None:
        # A dimension is inserted behind it, which a tensor without any has not.
        wrap_dim(wrap_dim(dim, len(shape)) + (not shape), len(shape))
    if output_size is not None:
        n = math.prod(shape) if dim is None else shape[wrap_dim(dim, len(shape))]
        if n * repeats != output_size:
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {n * repeats} but "
                f"got {output_size}"
            )
    return fns.repeat_each(input, repeats, dim)


def _counted(repeats: Tensor, output_size: int | None) -> Tensor:
    """For each i the number i, `repeats[i]` times; the counts are read on the host."""
    meta = repeats._tmeta
    if meta.batch:
        return _counted_each(repeats, output_size)
    if meta.dtype not in (dtypes.int32, dtypes.int64):
        name = meta.dtype.tensor_name[6:-6]
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{name}'"
        )
    if len(meta.shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    counts = host_value(repeats).reshape(-1)
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and int(counts.sum()) != output_size:
        raise RuntimeError("allocated size does not match required size")
    places = np.repeat(np.arange(counts.size, dtype=counts.dtype), counts)
    return placed(places, meta.device)


def _counted_each(repeats: Tensor, output_size: int | None) -> Tensor:
    """As `_counted`, for each example of the innermost `vmap`: of one length all."""
    level, size = repeats._tmeta.batch[-1]
    if not size:
        raise RuntimeError(
            "Batching rule not implemented for aten::repeat_interleave.Tensor. The "
            "fallback path does not support vmap over dims of size 0."
        )
    rows = fns._vmap_leave(repeats, 0, level)
    counted = [_counted(rows[i], output_size) for i in range(size)]
    return fns._vmap_enter(fns.stack(counted), 0, level)


def _repeat_each(
    input: Tensor, repeats: Tensor, dim: int | None, output_size: int | None
) -> Tensor:
    if len(repeats._tmeta.shape) > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if dim is None:
        input, dim = flatten(input), 0
    dim = wrap_dim(dim, len(input._tmeta.shape))
    n = input.size(dim)
    count = repeats._tmeta.shape.numel()
    if count == 1:
        repeats = fns.expand(fns.reshape(repeats, (1,)), (n,))
    elif count != n:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {count} and input.size({dim}) = {n}"
        )
    return fns.index_select(input, dim, _counted(repeats, output_size))


def _listed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several tensors given one by one or as one sequence."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


@public
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the tensors along its diagonal, zeros elsewhere.

    https://docs.pytorch.org/docs/2.13/generated/torch.block_diag.html

    >>> import torchshim as torch
    >>> torch.block_diag(torch.tensor([[1]]), torch.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    if not tensors:
        return fns.block_diag_of((_empty_row(),))
    return fns.block_diag_of(tensors)


def _empty_row() -> Tensor:
    return from_array(np.zeros((1, 0), dtypes.get_default_dtype().np))


@public
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to one shape.

    https://docs.pytorch.org/docs/2.13/generated/torch.broadcast_tensors.html

    >>> import torchshim as torch
    >>> a, b = torch.broadcast_tensors(torch.tensor([1, 2]), torch.tensor([[3], [4]]))
    >>> b
    tensor([[3, 3],
            [4, 4]])
    """
    shape = broadcast_shape([tuple(t._tmeta.shape) for t in all_tensors(tensors)])
    return tuple(
        t if tuple(t._tmeta.shape) == shape else fns.expand(t, shape) for t in tensors
    )


@public
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid, as views of the given vectors.

    https://docs.pytorch.org/docs/2.13/generated/torch.meshgrid.html

    >>> import torchshim as torch
    >>> x, y = torch.tensor([1, 2]), torch.tensor([3, 4])
    >>> torch.meshgrid(x, y, indexing="ij")[0]
    tensor([[1, 1],
            [2, 2]])
    """
    vectors = all_tensors(_listed(tensors))
    if not (indexing is None or isinstance(indexing, str)):
        raise TypeError(wrong("meshgrid", "indexing", 0, "str", indexing))
    if indexing is None:
        text = (
            "torch.meshgrid: in an upcoming release, it will be required to pass the "
            "indexing argument."
        )
        warn_once(triggered(text, f"{_SHAPE}:4215"))
        indexing = "ij"
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(t._tmeta.dtype is not vectors[0]._tmeta.dtype for t in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if any(t._tmeta.device != vectors[0]._tmeta.device for t in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
            f"{indexing}"
        )
    shape: list[int] = []
    for t in vectors:
        if len(t._tmeta.shape) > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{t!s}"
            )
        shape.append(t._tmeta.shape.numel())
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[:2] = 1, 0
        shape[:2] = shape[1], shape[0]
    grids = []
    for axis, t in zip(axes, vectors, strict=True):
        line = [1] * len(vectors)
        line[axis] = -1
        grids.append(fns.expand(fns.view(t, line), shape))
    return tuple(grids)


def _at_least(name: str, change: Any) -> Any:
    def function(*tensors: Any) -> Any:
        """One tensor gives one; several, or a sequence of them, a tuple.

        >>> import torchshim as torch
        >>> torch.atleast_1d(torch.tensor(5))
        tensor([5])
        >>> [each.shape for each in torch.atleast_3d(torch.zeros(2), torch.zeros(2, 4))]
        [torch.Size([1, 2, 1]), torch.Size([2, 4, 1])]
        """
        if len(tensors) == 1 and isinstance(tensors[0], TensorBase):
            return change(tensors[0])
        given = _listed(tensors)
        for i, each in enumerate(given):
            if isinstance(each, TensorBase):
                continue
            kind = kind_of(each)
            if tensors == (each,):
                wrong_type = (
                    "      didn't match because some of the arguments have invalid "
                    f"types: (!{kind}!)\n"
                )
                raise TypeError(
                    f"{name}() received an invalid combination of arguments - got "
                    f"({kind}), but expected one of:\n * (Tensor input)\n{wrong_type}"
                    f" * (tuple of Tensors tensors)\n{wrong_type}"
                )
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {kind}"
            )
        return tuple(change(t) for t in given)

    line = f"Tensors with at least {name[-2]} dimensions."
    described(function, name, line, f"torch.{name}")
    return public(function)


def _one(t: Tensor) -> Tensor:
    return t if t._tmeta.shape else fns.reshape(t, (1,))


def _two(t: Tensor) -> Tensor:
    ndim = len(t._tmeta.shape)
    if ndim == 0:
        return fns.reshape(t, (1, 1))
    return fns.unsqueeze(t, 0) if ndim == 1 else t


def _three(t: Tensor) -> Tensor:
    ndim = len(t._tmeta.shape)
    if ndim == 0:
        return fns.reshape(t, (1, 1, 1))
    if ndim == 1:
        return fns.unsqueeze(fns.unsqueeze(t, 0), -1)
    return fns.unsqueeze(t, -1) if ndim == 2 else t


atleast_1d = _at_least("atleast_1d", _one)
atleast_2d = _at_least("atleast_2d", _two)
atleast_3d = _at_least("atleast_3d", _three)


@public(namespaces=(), method=True)
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over the dimensions that broadcasting from `size` adds or repeats.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sum_to_size.html

    >>> import torchshim as torch
    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    target = size_of("sum_to_size", size)
    shape = self._tmeta.shape
    lead = len(shape) - len(target)
    fits = lead >= 0 and all(
        n in (1, m) for n, m in zip(target, shape[lead:], strict=True)
    )
    if not fits:
        raise RuntimeError(
            f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}."
        )
    if not target:
        return fns.sum(self)
    repeated = (n == 1 != m for n, m in zip(target, shape[lead:], strict=True))
    dims = (*range(lead), *(d for d, r in enumerate(repeated, lead) if r))
    made = fns.sum(self, dims, True) if dims else self
    return fns.view(made, target) if lead else made
