"""Sums, products, extremes and truth over dimensions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._core.host_kernels import direct
from torchshim._core.op import Array, op
from torchshim._core.promotion import DEFAULT, INT_TO_FLOAT, MEAN, reduce_dtype
from torchshim._ops import _shapes
from torchshim._ops._common import quotient
from torchshim._ops._reducing import (
    ALL,
    Dims,
    accumulated,
    axes_of,
    cast,
    check_asked,
    check_not_empty,
    count,
    dense,
    extreme,
    first,
    is_complex,
    is_exact,
    isnan,
    not_implemented,
    one_axis,
    pick,
    scalar_name,
    share,
    shared_out,
    squeezed,
    total,
    wide,
    with_slope,
)
from torchshim._ops.comparison import check_ordered, maximum, minimum


def _numbered(name: str, whole: int = 0):
    """Names a node by whether a dimension was given."""

    def node(input: object, dim: object = ALL, *rest: object) -> str:
        return f"{name}Backward{whole if dim is ALL else 1 - whole}"

    return node


def _asked(input: Any, dim: Any, keepdim: bool, dtype: Any) -> None:
    if dim is ALL and keepdim:
        raise TypeError("keepdim goes with dimensions only")
    check_asked(input, dtype)


# -- sums and products -----------------------------------------------------------------


@op(
    grad_fn=_numbered("Sum"),
    saves=(),
    typecheck=_asked,
    out="computed",
    shape=_shapes.reduced,
)
def sum(
    input: Array,
    dim: Dims = ALL,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The sum of the elements, over some dimensions or all."""
    axes = axes_of(dim, input.ndim)
    x = accumulated(input, dtype)
    if x.dtype == jnp.bool_:
        return jnp.any(x, axis=axes, keepdims=keepdim)
    w = wide(x)
    return total(w, axes, keepdim).astype(x.dtype)


def _check_mean(input: Any, dim: Any, keepdim: bool, dtype: Any) -> None:
    _asked(input, dim, keepdim, dtype if dtype and dtype.is_floating_point else None)


def _uncastable_mean(input: Any, dim: Any, keepdim: bool, dtype: Any) -> str:
    text = "mean.dtype_out(): input types" if dim is ALL else "result type Float"
    return text + " can't be cast to the desired output type {have.scalar_name}"


@op(
    grad_fn=_numbered("Mean"),
    saves=(),
    typecheck=_check_mean,
    out="asked",
    castable=_uncastable_mean,
    shape=_shapes.reduced,
)
def mean(
    input: Array,
    dim: Dims = ALL,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The mean of the elements, over some dimensions or all."""
    given = dtypes.from_array_dtype(input.dtype)
    result = reduce_dtype(MEAN, given, dtype, "mean").np
    axes = axes_of(dim, input.ndim)
    x = wide(cast(input, dtype))
    return quotient(total(x, axes, keepdim), count(input, axes)).astype(result)


@op(
    grad_fn=_numbered("Prod"),
    saves=("input", "result"),
    typecheck=_asked,
    out="computed",
)
def prod(
    input: Array,
    dim: int = ALL,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The product of the elements, along one dimension or of all."""
    axes = axes_of(dim, input.ndim)
    x = accumulated(input, dtype)
    if x.dtype == jnp.bool_:
        return jnp.all(x, axis=axes, keepdims=keepdim)
    w = wide(x)
    return jnp.prod(w, axis=axes, keepdims=keepdim, dtype=w.dtype).astype(x.dtype)


@op(
    grad_fn="NansumBackward0",
    saves=("input",),
    curved=False,
    typecheck=lambda input, dim, keepdim, dtype: (
        # Complex numbers are refused.
        None if input.dtype.is_complex else check_asked(input, dtype)
    ),
    out="computed",
)
def nansum(
    input: Array,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The sum of the elements that are not NaN."""
    _check_nansum(input, dtype)
    axes = axes_of(dim, input.ndim)
    if dtype is not None and dtype.category < dtypes.FLOATING:
        input = jnp.nan_to_num(input)  # NaNs are left out before the conversion
    x = accumulated(input, dtype)
    if x.dtype == jnp.bool_:
        return jnp.any(x, axis=axes, keepdims=keepdim)
    out = _sum_without_nan(wide(x), axes)
    return squeezed(out, axes, keepdim).astype(x.dtype)


def _check_nansum(input: Array, dtype: DType | None) -> None:
    if is_complex(input):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex and not is_exact(input) and input.size:
        raise not_implemented("nansum_cpu", jnp.zeros((), dtype.np))


def _sum_without_nan(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum, dimensions kept; PyTorch's gradient is a product, NaN for infinity."""
    if is_exact(x):
        return jnp.sum(x, axis=axes, keepdims=True, dtype=x.dtype)
    return with_slope(
        x,
        axes,
        lambda x: jnp.sum(jnp.where(jnp.isnan(x), 0, x), axis=axes, keepdims=True),
        lambda x, out: jnp.where(jnp.isnan(x), 0, jnp.ones_like(x)),
    )


@op(grad_fn="DivBackward0", saves=("input",))
def nanmean(
    input: Array,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The mean of the elements that are not NaN."""
    if is_exact(input):
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but "
            f"got {scalar_name(input)}"
        )
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a "
            f"floating point or complex dtype. Got: {dtype.scalar_name}"
        )
    _check_nansum(input, dtype)
    axes = axes_of(dim, input.ndim)
    x = cast(input, dtype)
    w = wide(x)
    number = jnp.sum(~jnp.isnan(w), axis=axes, keepdims=True, dtype=w.dtype)
    out = quotient(_sum_without_nan(w, axes), number)
    return squeezed(out, axes, keepdim).astype(x.dtype)


@op(grad_fn="TraceBackward0", saves=(), out=False)
def trace(input: Array) -> Array:
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {input.ndim}"
        )
    if input.dtype == jnp.bool_:
        raise not_implemented("trace", input)
    kind = jnp.int64 if is_exact(input) else input.dtype
    return jnp.sum(wide(jnp.diagonal(input))).astype(kind)


def _check_dims(input: Any, dim: Any, keepdim: bool) -> None:
    if dim is None:
        raise TypeError("logsumexp(): dimensions are expected")


@op(
    promote=INT_TO_FLOAT,
    grad_fn="LogsumexpBackward0",
    saves=("input", "result"),
    layout=dense,
    namespaces=("torch", "special"),
    castable=(
        "logsumexp(): Expected floating point type for result tensor, but "
        "got: {have.scalar_name}"
    ),
    typecheck=_check_dims,
)
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Array:
    """The logarithm of the sum of exponentials, without overflow."""
    axes = axes_of(dim, input.ndim)
    if not count(input, axes):
        shape = jnp.sum(input, axis=axes, keepdims=keepdim)
        return jnp.full_like(shape, -jnp.inf)
    if dim == () and input.ndim and not keepdim:
        raise RuntimeError(
            f"output with shape [] doesn't match the broadcast shape {[1] * input.ndim}"
        )

    def value(x: Array) -> Array:
        top = jnp.max(x.real, axis=axes, keepdims=True)
        top = jnp.where(jnp.isfinite(top), top, 0)
        sums = jnp.sum(jnp.exp(x - top), axis=axes, keepdims=True)
        return jnp.log(sums) + top

    out = with_slope(input, axes, value, lambda x, out: jnp.exp(x - out))
    return squeezed(out, axes, keepdim)


# -- extremes --------------------------------------------------------------------------


def _whole(name: str, input: Array, largest: bool) -> Array:
    """The extreme of all elements; equal ones share the gradient, NaNs among them."""
    check_not_empty(name, input, (), False)
    if is_complex(input):
        raise not_implemented(f"{name}_all", input)
    axes = tuple(range(input.ndim))
    if is_exact(input):
        return squeezed(extreme(input, axes, largest), axes, False)
    out = shared_out(input, axes, lambda x: extreme(x, axes, largest))
    return squeezed(out, axes, False)


def _along(
    name: str, input: Array, dim: int, keepdim: bool, largest: bool
) -> tuple[Array, Array]:
    """The extremes along a dimension and where they stand first."""
    if is_complex(input):
        raise RuntimeError(f"{name}(): does not support complex input")
    x, axis = one_axis(input, dim)
    check_not_empty(name, input, (axis,), True)
    index = _first_extreme(x, axis, largest)
    axes = (axis,)
    drop = not keepdim or not input.ndim
    return (
        squeezed(pick(x, index, axis), axes, not drop),
        squeezed(index, axes, not drop),
    )


def _first_extreme(x: Array, axis: int, largest: bool) -> Array:
    hit = x == extreme(x, axis, largest)
    return first(hit | isnan(x), axis)


_UNCASTABLE = (
    "Expected canCast( typeMetaToScalarType(self.dtype()), "
    "typeMetaToScalarType(out.dtype())) to be true, but got false.  (Could this error "
    "message be improved?  If so, please report an enhancement request to PyTorch.)"
)


@op(
    name="max.whole",
    public="max",
    overload=True,
    grad_fn="MaxBackward1",
    saves=("input", "result"),
    curved=False,
    castable=_UNCASTABLE,
)
def max_whole(input: Array) -> Array:
    """The largest element."""
    return _whole("max", input, True)


@op(
    name="min.whole",
    public="min",
    overload=True,
    grad_fn="MinBackward1",
    saves=("input", "result"),
    curved=False,
    castable=_UNCASTABLE,
)
def min_whole(input: Array) -> Array:
    """The smallest element."""
    return _whole("min", input, False)


@op(
    name="max.dim",
    public="max",
    overload=True,
    grad_fn="MaxBackward0",
    saves=("result1",),
    named_result=("values", "indices"),
    curved=False,
    apart=("input",),
    out="exact",
)
def max_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The largest elements along a dimension, and their positions."""
    return _along("max", input, dim, keepdim, True)


@op(
    name="min.dim",
    public="min",
    overload=True,
    grad_fn="MinBackward0",
    saves=("result1",),
    named_result=("values", "indices"),
    curved=False,
    apart=("input",),
    out="exact",
)
def min_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest elements along a dimension, and their positions."""
    return _along("min", input, dim, keepdim, False)


@op(
    name="max.other",
    public="max",
    overload=True,
    promote=DEFAULT,
    typecheck=check_ordered("maximum"),
    grad_fn="MaximumBackward0",
    curved=False,
)
def max_other(input: Array, other: Array) -> Array:
    """The larger of two elements; as `maximum`."""
    return maximum(input, other)


@op(
    name="min.other",
    public="min",
    overload=True,
    promote=DEFAULT,
    typecheck=check_ordered("minimum"),
    grad_fn="MinimumBackward0",
    curved=False,
)
def min_other(input: Array, other: Array) -> Array:
    """The smaller of two elements; as `minimum`."""
    return minimum(input, other)


def _extremes(name: str, input: Array, dim: Dims, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    check_not_empty(name, input, axes, dim is not None and dim != ())
    if is_complex(input):
        raise not_implemented(f"{name[1:]}_values_cpu", input)
    return squeezed(_extreme(input, axes, name == "amax"), axes, keepdim)


def _extreme(input: Array, axes: tuple[int, ...], largest: bool) -> Array:
    """The extreme, dimensions kept; equal elements share the gradient."""
    if is_exact(input):
        return extreme(input, axes, largest)

    def slope(x: Array, out: Array) -> Array:
        return share(x == out, axes, x.dtype)

    return with_slope(input, axes, lambda x: extreme(x, axes, largest), slope)


_OUT_OF_EXTREMES = (
    "Expected the dtype for input and out to match, but got "
    "{want.scalar_name} for input's dtype and {have.scalar_name} for "
    "out's dtype."
)


@op(
    grad_fn="AmaxBackward0",
    saves=("input", "result"),
    curved=False,
    out=_OUT_OF_EXTREMES,
)
def amax(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The largest element, over some dimensions or all."""
    return _extremes("amax", input, dim, keepdim)


@op(
    grad_fn="AminBackward0",
    saves=("input", "result"),
    curved=False,
    out=_OUT_OF_EXTREMES,
)
def amin(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The smallest element, over some dimensions or all."""
    return _extremes("amin", input, dim, keepdim)


@op(
    grad_fn="AminmaxBackward0",
    saves=("input", "result"),
    named_result=("min", "max"),
    out="exact",
    curved=False,
    apart=("input",),
)
def aminmax(
    input: Array, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Array, Array]:
    """The smallest and the largest element."""
    axes = axes_of(dim, input.ndim)
    if not input.size:
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the "
                "operation has no identity."
            )
        if not input.shape[axes[0]]:
            raise IndexError(
                f"aminmax: Expected reduction dim {axes[0]} to have non-zero size."
            )
    if is_complex(input):
        raise not_implemented(
            "aminmax_cpu" if dim is not None or input.ndim else "aminmax_all_cpu", input
        )
    return (
        squeezed(_extreme(input, axes, False), axes, keepdim),
        squeezed(_extreme(input, axes, True), axes, keepdim),
    )


def _position(
    name: str, input: Array, dim: int | None, keepdim: bool, largest: bool
) -> Array:
    if input.dtype == jnp.bool_ or is_complex(input):
        kind = "bool" if input.dtype == jnp.bool_ else "complex"
        raise RuntimeError(f"{name}(): does not support {kind} input")
    if dim is None:
        if not input.size:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() "
                "== 0."
            )
        index = _first_extreme(input.reshape(-1), 0, largest)
        return index.reshape((1,) * input.ndim if keepdim else ())
    x, axis = one_axis(input, dim)
    check_not_empty(name, input, (axis,), True)
    index = _first_extreme(x, axis, largest)
    return squeezed(index, (axis,), keepdim and bool(input.ndim))


@op(differentiable=False, saves=(), out="exact")
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The position of the largest element: the first, of equal ones."""
    return _position("argmax", input, dim, keepdim, True)


@op(differentiable=False, saves=(), out="exact")
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The position of the smallest element: the first, of equal ones."""
    return _position("argmin", input, dim, keepdim, False)


@direct("argmax")
def _argmax(input: Any, dim: int | None, keepdim: bool) -> Any:
    return np.argmax(input, dim, keepdims=keepdim)


@direct("argmin")
def _argmin(input: Any, dim: int | None, keepdim: bool) -> Any:
    return np.argmin(input, dim, keepdims=keepdim)


# -- truth -----------------------------------------------------------------------------


def _truth(input: Array, dim: Dims, keepdim: bool, every: bool) -> Array:
    reduce = jnp.all if every else jnp.any
    axes = () if dim == () else axes_of(dim, input.ndim)
    true = input if input.dtype == jnp.bool_ else input != 0
    out = reduce(true, axis=axes, keepdims=keepdim) if axes else true
    # PyTorch keeps uint8, the truth values of old.
    return out.astype(jnp.uint8) if input.dtype == jnp.uint8 else out


@op(
    differentiable=False,
    saves=(),
    out="all only supports bool tensor for result, got: {have.scalar_name}",
)
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether every element is true (not zero)."""
    return _truth(input, dim, keepdim, True)


@op(
    differentiable=False,
    saves=(),
    out="any only supports bool tensor for result, got: {have.scalar_name}",
)
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether some element is true (not zero)."""
    return _truth(input, dim, keepdim, False)


@op(differentiable=False, saves=(), out=False)
def count_nonzero(input: Array, dim: Dims = None) -> Array:
    """How many elements are not zero."""
    axes = axes_of(dim, input.ndim)
    return jnp.sum(input != 0, axis=axes, dtype=jnp.int64)
