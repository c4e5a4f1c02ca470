"""The forms of functions that PyTorch's own layers call: `native_*`, and older norms.

They give what backward needs beside the result. https://github.com/pytorch/pytorch,
aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._errors import Unsupported
from torchshim._functions._arguments import only_bools, warn_once
from torchshim._functions.creation import empty_like, ones_like
from torchshim._functions.indexing import SKIP, index_dtype, is_mask, take_tensors
from torchshim._functions.linalg import OTHER_NORM
from torchshim._functions.memory import write_into
from torchshim._functions.nn_layers import embedding_bag as _embedding_bag
from torchshim._functions.nn_normalization import normalized_batch, update_running
from torchshim._functions.random_fill import bernoulli_
from torchshim._ops.view_geometry import wrap_dim
from torchshim._out import check_outs
from torchshim._tensor import Tensor


def _statistics(
    input: Any, given: Any, dims: tuple[int, ...], eps: float, keep: bool
) -> tuple[Any, Any]:
    """Means and inverse standard deviations; in float32 if a parameter is so."""
    wide = input.detach()
    if input.dtype.itemsize == 2:
        wide = wide.float()
    inverse = fns.rsqrt(wide.var(dims, correction=0, keepdim=keep) + eps)
    dtype = _dtype_of_statistics(input, given)
    return wide.mean(dims, keep).to(dtype), inverse.to(dtype)


def _dtype_of_statistics(input: Any, given: Any) -> dtypes.dtype:
    mixed = any(g is not None and g.dtype is dtypes.float32 for g in given)
    return dtypes.float32 if mixed and input.dtype.itemsize == 2 else input.dtype


_OTHER_TYPE = "expected scalar type {want.scalar_name} but found {have.scalar_name}"


@public
def native_layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, with the means and the inverse standard deviations.

    Those have size 1 in the dimensions that are normalized.

    >>> import torchshim as torch
    >>> x = torch.tensor([[1.0, 3.0], [5.0, 9.0]])
    >>> out, mean, rstd = torch.native_layer_norm(x, [2], None, None, 0.0)
    >>> mean, rstd
    (tensor([[2.],
            [7.]]), tensor([[1.0000],
            [0.5000]]))
    """
    out = fns.layer_norm(input, tuple(normalized_shape), weight, bias, eps)
    dims = tuple(range(-len(normalized_shape), 0))
    return out, *_statistics(input, (weight, bias), dims, eps, True)


@public
def native_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> Any:
    """`batch_norm`, with the batch's means and inverse standard deviations.

    Both are empty unless `training`.

    >>> import torchshim as torch
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    only_bools(training)
    result = normalized_batch(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    given = (weight, bias, running_mean, running_var)
    if training:
        dims = (0, *range(2, input.ndim))
        means = _statistics(input, given, dims, eps, False)
    else:
        dtype = _dtype_of_statistics(input, given)
        means = input.new_empty(0, dtype=dtype), input.new_empty(0, dtype=dtype)
    if out is None:
        return result, *means
    check_outs("native_batch_norm", out, 3, 8)
    pairs = zip((result, *means), out, strict=True)
    given = (input, weight, bias)
    name = "native_batch_norm"
    return tuple(write_into(name, r, o, given, _OTHER_TYPE) for r, o in pairs)


@public
def batch_norm_update_stats(
    input: Any, running_mean: Any, running_var: Any, momentum: float
) -> tuple[Tensor, Tensor]:
    """The means of a batch's channels and their variances; running ones follow them.

    The variances that are given are biased, the running ones move to unbiased ones.

    >>> import torchshim as torch
    >>> mean, x = torch.zeros(1), torch.tensor([[1.0], [3.0]])
    >>> torch.batch_norm_update_stats(x, mean, None, 0.5), mean
    ((tensor([2.]), tensor([1.])), tensor([1.]))
    """
    found = fns.batch_statistics(input, running_mean, running_var)
    update_running(input, running_mean, running_var, momentum, False)
    return found


@public
def _native_batch_norm_legit(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any = None,
    running_var: Any = None,
    training: Any = None,
    momentum: Any = None,
    eps: Any = None,
    *,
    out: Any = None,
) -> Any:
    """As `native_batch_norm`; running statistics may be left out."""
    if isinstance(running_mean, bool):
        training, momentum, eps = running_mean, running_var, training
        running_mean = running_var = None
    statistics = running_mean, running_var
    # Without running statistics those of the batch are used, in PyTorch as here.
    training = training or running_mean is None
    return native_batch_norm(
        input, weight, bias, *statistics, training, momentum, eps, out=out
    )


@public
def _native_batch_norm_legit_no_training(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
) -> Any:
    """`native_batch_norm` by running statistics."""
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, False, momentum, eps
    )


@public(namespaces=("ops.aten",))
def _batch_norm_with_update(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` in training, and what a kernel keeps: nothing here."""
    found = native_batch_norm(
        input, weight, bias, running_mean, running_var, True, momentum, eps
    )
    return *found, input.new_empty(0, dtype=dtypes.uint8)


@public(namespaces=("ops.aten",))
def _to_copy(
    self: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`Tensor.to` with these options, always a copy."""
    if layout is not None and layout is not self.layout:
        raise Unsupported("_to_copy: another layout is not supported; use to_sparse()")
    made = self.to(
        device=device,
        dtype=dtype,
        non_blocking=non_blocking,
        copy=True,
        memory_format=memory_format,
    )
    return made.pin_memory() if pin_memory else made


def _index_dtype(out_int32: bool) -> Any:
    return dtypes.int32 if out_int32 else dtypes.int64


@public
def _convert_indices_from_coo_to_csr(
    input: Any, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows begins and ends among sorted row indices."""
    if input.dim() > 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {input.dim()} dimensional "
            "tensor."
        )
    if input.dtype.is_floating_point:
        raise NotImplementedError(
            '"convert_indices_from_coo_to_csr_cpu" not implemented for '
            f"'{input.dtype.scalar_name}'"
        )
    rows = fns.arange(size + 1, 0, 1, input.dtype, input.device)
    return fns.searchsorted(input, rows).to(_index_dtype(out_int32))


@public
def _convert_indices_from_csr_to_coo(
    crow_indices: Any,
    col_indices: Any,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> Tensor:
    """The rows and columns of elements, of which each row has its own one by one."""
    kind, device = crow_indices.dtype, crow_indices.device
    places = fns.arange(col_indices.numel(), 0, 1, kind, device)
    rows = fns.searchsorted(crow_indices, places, right=True) - 1
    pair = [rows, col_indices.to(rows.dtype)]
    return fns.stack(pair[::-1] if transpose else pair).to(_index_dtype(out_int32))


@public(namespaces=("torch", "ops.aten"))
def _pin_memory(self: Any, device: Any = None) -> Tensor:
    """As `Tensor.pin_memory`."""
    return self.pin_memory(device)


@public(namespaces=("ops.aten",))
def index(input: Any, indices: Any) -> Tensor:
    """The elements that index tensors choose: always a copy.

    `indices`: a tensor of integers or a mask for each dimension, None for all of it.
    """
    if not indices:
        raise IndexError("at least one index must be provided")
    known = (dtypes.int64, dtypes.int32)
    for item in indices:
        if item is not None and not is_mask(item) and item._tmeta.dtype not in known:
            raise index_dtype()
    if len(indices) > input.dim():
        raise IndexError(
            f"too many indices for tensor of dimension {input.dim()} "
            f"(got {len(indices)})"
        )
    places: list[Any] = []
    for item in indices:
        places.append(item)
        if item is not None and is_mask(item):
            places += [SKIP] * (item.dim() - 1)
    return take_tensors(input, places)


@public
def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, with the mask of what is kept.

    Not training, all is kept.

    >>> import torchshim as torch
    >>> torch.native_dropout(torch.ones(2), 0.5, train=False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    only_bools(train is not None and train)
    if not input.numel():
        return input, empty_like(input)
    mask = ones_like(input, dtype=dtypes.bool_)
    if train is False:
        return fns.native_dropout_kept(input, mask, 1), mask
    bernoulli_(mask, 1 - p)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{input.dtype.scalar_name}"
        )
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return fns.native_dropout_kept(input, mask, scale), mask


@public
def native_channel_shuffle(input: Any, groups: int) -> Tensor:
    """As `channel_shuffle`.

    The channels, the second dimension, as a table with a row for each group,
    transposed.

    >>> import torchshim as torch
    >>> torch.native_channel_shuffle(torch.arange(6).reshape(1, 6, 1), 2).flatten()
    tensor([0, 3, 1, 4, 2, 5])
    """
    return fns.channel_shuffle(input, groups)


_MODES = ("sum", "mean", "max")


@public
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bags of rows, the bag of each index, the bags' sizes, and where maxima are.

    `mode` is 0 for sums, 1 for means, 2 for maxima; `nn.functional.embedding_bag`
    is the function of programs.

    >>> import torchshim as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.embedding_bag(table, torch.tensor([0, 1]), torch.tensor([0]))[0]
    tensor([[4., 6.]])
    """
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    out = _embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=_MODES[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    count = out.shape[0]
    if not mode:
        nothing = indices.new_zeros(count)
        return out, indices.new_zeros(0), nothing, nothing.clone()
    begins = offsets[:count].detach()
    places = fns.arange(indices.shape[0], 0, 1, dtypes.int64, indices.device)
    bags = fns.searchsorted(begins, places, right=True) - 1
    kept = fns.ones_like(indices) if padding_idx is None else indices != padding_idx
    sizes = indices.new_zeros(count).index_add(0, bags, kept.to(indices.dtype))
    if mode == 1:
        return out, bags, sizes, sizes.clone()
    rows = weight.detach()[indices] == out.detach()[bags]
    chosen = fns.where(rows & (kept != 0).unsqueeze(1), indices.unsqueeze(1), -1)
    where = bags.unsqueeze(1).expand_as(chosen)
    blank = indices.new_zeros(tuple(out.shape)) - 1
    return out, bags, sizes, blank.scatter_reduce(0, where, chosen, "amax")


_OLD_NORM = (
    "at::{} is deprecated and it is just left for JIT compatibility. It will be "
    "removed in a future PyTorch release. Please use `linalg.{}, dim, keepdim)` "
    "instead (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/LinearAlgebra.cpp:{}.)"
)


@public
def frobenius_norm(
    input: Any, dim: Any, keepdim: bool = False, *, out: Any = None
) -> Tensor:
    """The root of the sum of the squares; deprecated for `linalg.vector_norm`.

    RuntimeError for more than two dimensions, or integers.

    >>> import torchshim as torch
    >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 1)
    tensor([5., 1.])
    """
    if isinstance(dim, bool):
        raise TypeError("frobenius_norm(): argument 'dim' must be tuple of ints")
    warn_once(_OLD_NORM.format("frobenius_norm", "vector_norm(A, 2.", 3175))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    given = input._tmeta.dtype
    if given.category < dtypes.FLOATING:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{given.scalar_name} instead."
        )
    return fns.norm(input, 2.0, dims or None, keepdim, out=out)


@public
def nuclear_norm(
    input: Any, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None
) -> Tensor:
    """The sum of the singular values; deprecated for `linalg.matrix_norm`.

    >>> import torchshim as torch
    >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    warn_once(_OLD_NORM.format("nuclear_norm", "matrix_norm(A, 'nuc'", 3229))
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    dims = (dim, dim) if isinstance(dim, int) else tuple(dim)
    result = fns.matrix_norm(input, "nuc", dims, keepdim)
    if out is None:
        return result
    text = f"linalg.matrix_norm {OTHER_NORM}"
    return write_into("linalg_matrix_norm", result, out, (input,), text)


_STARTS = {
    "sum": (0.0, "sum"),
    "mean": (0.0, "sum"),
    "prod": (1.0, "prod"),
    "max": (-math.inf, "amax"),
    "amax": (-math.inf, "amax"),
    "min": (math.inf, "amin"),
    "amin": (math.inf, "amin"),
}


def _anywhere(mask: Tensor) -> bool:
    """Whether a mask is set somewhere, in whatever example."""
    for level, _ in reversed(mask._tmeta.batch):
        mask = fns._vmap_leave(mask, 0, level)
    return bool(mask.any())


def _with_nans(out: Tensor, axis: int, index: Tensor, data: Tensor) -> Tensor:
    """Extremes of segments whose NaN, where there are some, share the gradient."""
    hidden = fns.isnan(data)
    none = fns.full(tuple(out.shape), 0, data.dtype, data.device)
    number = none.scatter_add(axis, index, hidden.to(data.dtype))
    found = none.scatter_add(axis, index, fns.where(hidden, data, 0))
    return fns.where(number > 0, found / number.clamp(min=1), out)


def _product_of_nans(begin: Tensor, axis: int, index: Tensor, data: Tensor) -> Tensor:
    """Products of segments: a NaN has the product of the others for its gradient."""
    hidden = fns.isnan(data)
    rest = begin.scatter_reduce(axis, index, fns.where(hidden, 1, data), "prod")
    none = fns.full(tuple(begin.shape), 0, data.dtype, data.device)
    number = none.scatter_add(axis, index, hidden.to(data.dtype))
    found = none.scatter_add(axis, index, fns.where(hidden, data, 0))
    found = found * fns.where(number > 1, math.nan, 1.0).to(data.dtype)
    return rest * fns.where(number > 0, found, 1)


@public(aliases=("_segment_reduce",))
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Each segment of a dimension reduced to one element.

    Segments follow each other and are given by their lengths or by where they begin
    (`offsets`, with the end). Raises RuntimeError where the lengths do not add up to
    the size of `data`, which `unsafe` does not look at.

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0, 3.0])
    >>> torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    only_bools(unsafe)
    if indices is not None:
        raise RuntimeError(
            "segment_reduce(): indices based reduction is not supported yet."
        )
    if reduce not in _STARTS:
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce}"
        )
    kind, given = "offsets", offsets
    if given is None:
        kind, given = "lengths", lengths
    if given is None:
        raise RuntimeError(
            "segment_reduce(): Either lengths or offsets must be defined."
        )
    axis = wrap_dim(axis, data.ndim)
    if data.ndim < given.ndim:
        raise RuntimeError(
            f"Expected data.dim() >= {kind}_value.dim() to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        )
    if given.ndim - 1 != axis:
        raise RuntimeError(
            "segment_reduce(): Expected axis to be the last dimension of "
            f"{kind} but got {axis}."
        )
    size = data.shape[axis]
    if given.is_floating_point() or given.is_complex():
        raise NotImplementedError(
            f'"_segment_reduce_{kind}_cpu_kernel1" not implemented for '
            f"'{given.dtype.scalar_name}'"
        )
    if data.numel() and not data.is_floating_point():
        raise NotImplementedError(
            f"\"_segment_reduce_cpu\" not implemented for '{data.dtype.scalar_name}'"
        )
    if offsets is not None:
        ends, lengths = offsets[..., 1:], offsets.diff(dim=-1)
    else:
        ends = lengths.cumsum(-1)
        if not unsafe and _anywhere(lengths < 0):
            raise RuntimeError("lengths contains negative value!")
        if not unsafe and _anywhere(lengths.sum(-1) != size):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to "
                "data.size(lengths.dim()-1) when !unsafe."
            )
    places = fns.arange(size, 0, 1, dtypes.int64, data.device)
    places = places.expand(*data.shape[:axis], size).contiguous()
    segments = fns.searchsorted(ends.contiguous(), places, right=True)
    rest = data.ndim - axis - 1
    index = segments.reshape(*segments.shape, *(1,) * rest).expand_as(data)
    count = lengths.shape[-1]
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    start, kind = _STARTS[reduce]
    extreme = kind in ("amax", "amin")
    if initial is not None and not extreme:
        start = float(initial)
    # What lies beyond the last segment is dropped into one of its own.
    wide = (*shape[:axis], count + 1, *shape[axis + 1 :])
    begin = fns.full(wide, start, data.dtype, data.device)
    if kind == "prod" and data.requires_grad:
        out = _product_of_nans(begin, axis, index, data)
    else:
        out = begin.scatter_reduce(axis, index, data, kind)
    if reduce in ("max", "min") and data.requires_grad:
        out = _with_nans(out, axis, index, data)
    out = out.narrow(axis, 0, count).contiguous()
    if extreme and initial is not None:
        # Afterwards: an element that equals it has all of the gradient.
        within = out >= initial if kind == "amax" else out <= initial
        out = fns.where(within | fns.isnan(out), out, float(initial))
    if reduce != "mean":
        return out
    number = lengths.reshape(*lengths.shape, *(1,) * rest).to(data.dtype)
    if initial is None:
        return out / number
    return fns.where(number == 0, out, out / number.clamp(min=1))


@public
def _add_relu(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """`add`, and what is negative as zeros.

    >>> import torchshim as torch
    >>> torch._VF._add_relu(torch.tensor([1.0, -3.0]), 2.0)
    tensor([3., 0.])
    """
    return fns.relu(fns.add(input, other, alpha=alpha))


@public
def _add_relu_(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """`_add_relu`, written to the first."""
    return input.add_(other, alpha=alpha).relu_()
