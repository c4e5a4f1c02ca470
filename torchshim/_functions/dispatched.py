"""Functions in the forms that only PyTorch's dispatcher has: `torch.ops.aten._softmax`.

https://github.com/pytorch/pytorch, aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._core.record import local
from torchshim._core.storage import placement
from torchshim._derived import fns, public
from torchshim._functions.memory import write_into
from torchshim._functions.ranges import arange
from torchshim._functions.resizing import resize_output, show
from torchshim._out import refuse_tracked
from torchshim._tensor import Tensor

_aten = public(namespaces=("ops.aten",))
_both = public(namespaces=("torch", "ops.aten"))


# -- what tensors are ---------------------------------------------------------------


def _asked(name: str, aliases: Sequence[str] = ()) -> None:
    def of_all_or_one(input: Tensor, dim: int | None = None) -> Any:
        found = getattr(input, name)
        return list(found()) if dim is None else found(dim)

    of_all_or_one.__name__ = of_all_or_one.__qualname__ = name
    of_all_or_one.__doc__ = f"`Tensor.{name}`, as a list or of one dimension."
    public(of_all_or_one, namespaces=("ops.aten",), aliases=aliases)


_asked("size", aliases=["sym_size"])
_asked("stride", aliases=["sym_stride"])


@_aten
def sym_numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@_aten
def sym_storage_offset(input: Tensor) -> int:
    """Where in its memory a tensor begins."""
    return input.storage_offset()


@_aten
def _local_scalar_dense(input: Tensor) -> Any:
    """The first element, as a number."""
    return (input if input.numel() == 1 else input.flatten()[0]).item()


# -- copies and views ---------------------------------------------------------------


@_aten
def lift_fresh(input: Tensor) -> Tensor:
    """The tensor itself, as constants of traced programs are taken in."""
    return fns.alias(input)


@_aten
def lift_fresh_copy(input: Tensor) -> Tensor:
    """A copy, as constants of traced programs are taken in."""
    return input.clone()


@_aten
def _unsafe_view(input: Tensor, size: Sequence[int]) -> Tensor:
    """`view` of what nothing else uses."""
    return input.view(tuple(size))


@_both
def _index_put_impl_(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """`index_put_`; `unsafe`: indices are not checked, which those here always are."""
    return input.index_put_(indices, values, accumulate)


# -- activations --------------------------------------------------------------------


def _halves(input: Tensor, half_to_float: bool) -> None:
    if half_to_float and input.device.type == "cpu":
        raise RuntimeError(
            "softmax with half to float conversion is not supported on CPU"
        )
    if half_to_float and input.dtype is not dtypes.float16:
        raise RuntimeError("conversion is supported for Half type only")


@_both
def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`; of float16 numbers in float32 if `half_to_float`, not on the CPU."""
    _halves(input, half_to_float)
    return fns.softmax(input, dim, dtypes.float32 if half_to_float else None)


@_both
def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax`; of float16 numbers in float32 if `half_to_float`."""
    _halves(input, half_to_float)
    return fns.log_softmax(input, dim, dtypes.float32 if half_to_float else None)


@public(namespaces=("torch", "ops.aten"))
def _addmm_activation(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`relu` of `beta * input + alpha * mat1 @ mat2`, or its `gelu`."""
    total = fns.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    result = fns.gelu(total) if use_gelu else fns.relu(total)
    if out is None:
        return result
    args = (input, mat1, mat2)
    return write_into("aten::_addmm_activation", result, out, args, "exact")


@_aten
def log_sigmoid_forward(input: Tensor) -> tuple[Tensor, Tensor]:
    """`logsigmoid`, with ``exp(-|x|)``, which PyTorch keeps for backward."""
    return fns.logsigmoid(input), fns.exp(-input.detach().abs())


# -- padding, pooling and resizing ----------------------------------------------------


def _ended(name: str, result: Tensor, input: Tensor, out: Tensor | None) -> Tensor:
    """The result of a call that may have `out=`."""
    if out is None:
        return result
    refuse_tracked(local.rec, name, (input, out))
    if out.shape != result.shape and out.dtype is result.dtype:
        resize_output(out, tuple(result.shape))  # PyTorch lays it out as the result
        show(out, (tuple(result.shape), result.stride(), placement(out)[2]))
    return write_into(name, result, out, (input,), "exact")


def _pads(mode: str, named: str, n: int) -> None:
    name = f"{named}_pad{n}d"

    def pad(
        input: Tensor, padding: Sequence[int], *, out: Tensor | None = None
    ) -> Tensor:
        if len(padding) != 2 * n:
            but = f", but got: {len(padding)}" if mode == "reflect" else ""
            raise RuntimeError(f"padding size is expected to be {2 * n}{but}")
        made = fns.pad_by_index(input, tuple(padding), mode)
        return _ended(name, made, input, out)

    pad.__name__ = pad.__qualname__ = name
    pad.__doc__ = f"Padding of the last {n} dimensions, mode {mode!r}."
    _aten(pad)


def _resizes(kind: str, name: str, n: int) -> None:
    smooth = kind not in ("nearest", "exact")

    def resize(input: Tensor, output_size: Any, *options: Any, **named: Any) -> Tensor:
        corners, out = False, named.pop("out", None)
        if smooth:
            if "align_corners" in named:
                corners = named.pop("align_corners")
            else:
                corners, options = options[0], options[1:]
        scales = _scales(n, options, named)
        size = output_size
        if size is None:
            pairs = zip(input.shape[2:], scales, strict=True)
            size = [math.floor(side * scale) for side, scale in pairs]
        elif len(size) != n:
            raise RuntimeError(
                f"It is expected output_size equals to {n}, but got size {len(size)}"
            )
        if input.dim() != n + 2:
            raise RuntimeError(
                f"It is expected input_size equals to {n + 2}, but got size "
                f"{input.dim()}"
            )
        if smooth:
            size = tuple(size)
            made = fns.upsample_smooth(input, size, scales, corners, kind, False)
        else:
            made = fns.upsample_nearest(input, tuple(size), scales, kind == "exact")
        return _ended(name, made, input, out)

    resize.__name__ = resize.__qualname__ = name
    resize.__doc__ = f"`interpolate` of {n} dimensions, to a size or by factors."
    _aten(resize)


def _scales(n: int, options: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """The factors of a resizing, given as a list or one for each dimension."""
    names = ("scales",) if n == 1 else ("scales_d", "scales_h", "scales_w")[-n:]
    factors = named.pop("scale_factors", None)
    if options and isinstance(options[0], (list, tuple)):
        factors, options = options[0], options[1:]
    if factors is None:
        rest = [named.pop(name, None) for name in names[len(options) :]]
        factors = (*options, *rest)
    if named or len(factors) != n:
        raise TypeError(f"factors of {n} dimensions: {factors}, {sorted(named)}")
    return tuple(factors)


for _n in (1, 2, 3):
    _pads("reflect", "reflection", _n)
    _pads("replicate", "replication", _n)
    _resizes("nearest", f"upsample_nearest{_n}d", _n)
    _resizes("exact", f"_upsample_nearest_exact{_n}d", _n)
    _resizes(
        "linear", f"upsample_{('', 'linear', 'bilinear', 'trilinear')[_n]}{_n}d", _n
    )
_resizes("cubic", "upsample_bicubic2d", 2)


@_both
def _adaptive_avg_pool2d(input: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of as many windows as asked for in each dimension."""
    return fns.adaptive_avg_pool2d(input, tuple(output_size))


# -- indexing -----------------------------------------------------------------------


def _whole(input: Tensor, indices: Sequence[Any]) -> list[Any]:
    """Indices in which positions stand for None, a dimension that is not indexed."""
    indices = list(indices)
    while indices and indices[-1] is None:
        indices.pop()
    given = [i for i, index in enumerate(indices) if index is not None]
    free = [i for i, index in enumerate(indices) if index is None]
    if not free or any(indices[i].dtype is dtypes.bool_ for i in given):
        return indices
    # Between tensors, the dimensions that are not indexed come last.
    behind = 0 if free[-1] < given[0] else len(free)
    after = 0 if behind else max(indices[i].dim() for i in given)
    for i in given:
        indices[i] = indices[i].reshape((*indices[i].shape, *[1] * behind))
    for k, i in enumerate(free):
        ones = len(free) - 1 - k + after
        positions = arange(input.shape[i], device=input.device)
        indices[i] = positions.reshape((-1, *[1] * ones))
    return indices


def _put(suffix: str) -> None:
    def index_put(
        input: Tensor, indices: Any, values: Tensor, accumulate: bool = False
    ) -> Tensor:
        put = getattr(Tensor, f"index_put{suffix}")
        return put(input, _whole(input, indices), values, accumulate)

    index_put.__name__ = index_put.__qualname__ = f"index_put{suffix}"
    index_put.__doc__ = f"`Tensor.index_put{suffix}`; None leaves a dimension whole."
    _aten(index_put)


_put("")
_put("_")
