"""Operators that index one dimension by a vector, or all elements by flat places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from torchshim._core.checks import Check
from torchshim._core.determinism import determinism
from torchshim._core.meta import Meta
from torchshim._core.op import Array, Operand, Scalar, op
from torchshim._ops.indexing import (
    added,
    bounds_text,
    dense_layout,
    filler_checks,
    from_end,
    is_integer,
    outside,
    scalar_for,
    scalar_name,
    written,
)
from torchshim._ops.shape import contiguous_layout
from torchshim._ops.view_geometry import wrap_dim

# -- one dimension, one vector of indices ------------------------------------------


def _vector(index: Array, name: str) -> None:
    if index.ndim > 1:
        raise IndexError(f"{name}: Index is supposed to be a vector")


def _select_checks(input: Array, dim: int, index: Array) -> list[Check]:
    axis = wrap_dim(dim, input.ndim) if input.ndim else 0
    n = input.shape[axis] if input.ndim else 1
    # PyTorch has kernels of their own for these.
    if axis == 1 or (input.ndim > 1 and 0 in input.shape):
        text = f"INDICES element is out of DATA bounds, id={{value}} axis_dim={n}"
        return outside(index, 0, n, text, RuntimeError)
    return outside_self(input, axis, index)


@op(
    grad_fn="IndexSelectBackward0",
    saves=("index",),
    differentiable=("input",),
    checks=_select_checks,
    apart=("input", "index"),
    out="index_select(): self and result must have the same scalar type",
)
def index_select(input: Array, dim: int, index: Array) -> Array:
    """Slices along a dimension, chosen by an integer vector."""
    dim = wrap_dim(dim, input.ndim)
    _vector(index, "index_select()")
    if not is_integer(index):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim:
        if index.size != 1:
            raise RuntimeError(
                "index_select(): Index to scalar can have only 1 value, got "
                f"{index.size} value(s)"
            )
        return input
    index = index.reshape(-1)
    if input.ndim > 1 and index.size and not input.shape[dim]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if 0 in input.shape:
        shape = (*input.shape[:dim], index.size, *input.shape[dim + 1 :])
        return jnp.zeros(shape, input.dtype)
    # Not promised to lie within: the check reports it, and reading must be harmless.
    return jnp.take(input, index, axis=dim, mode="clip")


def _add_checks(
    input: Array,
    dim: int,
    index: Array,
    source: Array,
    alpha: Scalar = 1,
) -> list[Check]:
    dim = wrap_dim(dim, input.ndim)
    if not input.size and input.ndim > 1:
        return []
    checks = outside_self(input, dim, index)
    if index.dtype == np.int64 and input.ndim > 1 and dim in (0, input.ndim - 1):
        # Where `alpha` is one, which only the program may know, PyTorch scatters.
        n = input.shape[dim]
        scattering = outside(index, 0, n, bounds_text(dim, n), RuntimeError)
        once = [replace(check, bad=check.bad & (alpha == 1)) for check in scattering]
        return once + checks
    return checks


def outside_self(input: Array, dim: int, index: Array, *rest: Any) -> list[Check]:
    """The check that indices lie within a dimension, as most operators say it."""
    n = input.shape[wrap_dim(dim, input.ndim)] if input.ndim else 1
    return outside(index, 0, n, "index out of range in self")


def check_source(
    input: Array, dim: int, index: Array, source: Array, name: str
) -> None:
    """Refuse slices that do not go with a vector of indices, `dim` from the front."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.ndim} with "
            f"type: {scalar_name(index)} and size: {list(index.shape)}"
        )
    if not is_integer(index):
        raise RuntimeError(
            f"{name}: Expected dtype int32/int64 for index but got: "
            f"{scalar_name(index)}"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{name}: self ({scalar_name(input)}) and source ({scalar_name(source)}) "
            "must have the same scalar type"
        )
    if dim and dim >= source.ndim:
        raise RuntimeError(
            f"{name}: Indexing dim {dim} is out of bounds of the source tensor with "
            f"dim {source.ndim}"
        )
    if not source.ndim and index.size != 1:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    along = source.shape[dim] if source.ndim else 1
    if index.size != along:
        raise RuntimeError(
            f"{name}: Number of indices ({index.size}) should be equal to "
            f"source.size(dim): ({along}), for dim: {dim}"
        )
    ours, theirs = input.shape, source.shape
    if ours and theirs:
        ours, theirs = ours[:dim] + ours[dim + 1 :], theirs[:dim] + theirs[dim + 1 :]
    if ours != theirs:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(input.shape)} source.shape = "
            f"{list(source.shape)}"
        )


@op(
    grad_fn="IndexAddBackward0",
    saves={"input": (), "source": ("index", "source")},
    curved=False,
    differentiable=("input", "source"),
    checks=_add_checks,
    layout=contiguous_layout,
    inplace=True,
    out="exact",
    apart=("index", "source"),
    whole=("input",),
    fits=("alpha",),
)
def index_add(
    input: Array, dim: int, index: Array, source: Array, *, alpha: Scalar = 1
) -> Array:
    """Slices of `source` times `alpha` added at the indices along a dimension."""
    dim = wrap_dim(dim, input.ndim)
    check_source(input, dim, index, source, "index_add_()")
    scaled = (
        source
        if isinstance(alpha, int) and alpha == 1
        else (scalar_for(alpha, input.dtype) * source)
    )
    if not input.ndim:
        return input + scaled.reshape(())
    where = (slice(None),) * dim + (index.reshape(-1),)
    return added(input, where, scaled)


def _none_beside(input: Array, dim: int) -> bool:
    """Whether a dimension other than this one is empty."""
    return 0 in (*input.shape[:dim], *input.shape[dim + 1 :])


def _copy_checks(input: Array, dim: int, index: Array, source: Array) -> list[Check]:
    dim = wrap_dim(dim, input.ndim)
    if _none_beside(input, dim):
        return []  # it looks at no element
    n = input.shape[dim] if input.ndim else 1
    text = f"index_copy_(): {bounds_text(dim, n)}"
    return outside(index, 0, n, text)


@op(
    grad_fn="IndexCopyBackward0",
    saves={"input": ("index",), "source": ("index", "source")},
    curved=False,
    differentiable=("input", "source"),
    checks=_copy_checks,
    layout=contiguous_layout,
    inplace=True,
    out="exact",
    apart=("index", "source"),
    whole=("input",),
)
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """The slices at the indices along a dimension replaced by those of `source`."""
    dim = wrap_dim(dim, input.ndim)
    name = "index_copy_()"
    if index.ndim > 1:
        raise IndexError(
            f"{name}: Index should have dimension 1 or 0 (got {index.ndim})"
        )
    if not source.ndim and index.size != 1:
        raise IndexError(
            f"{name}: When source is scalar, index should have one element "
            f"(got {index.size})"
        )
    if source.ndim and input.ndim and source.ndim != input.ndim:
        raise IndexError(
            f"{name}: When source and destination are not scalars, their "
            f"dimensionality must match. Source dimensionality ({source.ndim}), "
            f"destination dimensionality ({input.ndim})"
        )
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}: Expected a long tensor for index, but got {scalar_name(index)}"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"{name}: self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(input)} and (source) {scalar_name(source)}"
        )
    ours = input.shape[:dim] + input.shape[dim + 1 :]
    theirs = source.shape[:dim] + source.shape[dim + 1 :]
    if ours != theirs:
        raise RuntimeError(
            f"{name}: Source/destination tensor must have same slice shapes. "
            f"Destination slice shape: {' '.join(map(str, ours))} at dimension {dim} "
            f"and source slice shape: {' '.join(map(str, theirs))} at dimension 0."
        )
    along = source.shape[dim] if source.ndim else 1
    if index.size != along:
        raise IndexError(
            f"{name}: Number of indices ({index.size}) should be equal to "
            f"source.size(dim) ({along})"
        )
    if not input.ndim:
        return written(input[None], source.reshape(-1), (index.reshape(-1),))[0]
    where = (slice(None),) * dim + (index.reshape(-1),)
    return written(input, source, where)


def _fill_checks(input: Array, dim: int, index: Array, value: Any) -> list[Check]:
    dim = wrap_dim(dim, input.ndim)
    if _none_beside(input, dim):
        return []  # it looks at no element
    n = input.shape[dim] if input.ndim else 1
    return filler_checks(input, value) + outside(index, -n, n, bounds_text(dim, n))


def _index_fill_node(input: Any, dim: int, index: Any, value: Any) -> str:
    return f"IndexFillBackward{int(hasattr(value, 'requires_grad'))}"


@op(
    grad_fn=_index_fill_node,
    saves=("index",),
    differentiable=("input", "value"),
    checks=_fill_checks,
    layout=dense_layout,
    inplace=True,
    out=False,
    overlaps=("index_fill_", "tensor[mask] = scalar", 1913),
    apart=("index",),
    fits=("value",),
)
def index_fill(input: Array, dim: int, index: Array, value: Operand) -> Array:
    """The slices at the indices along a dimension set to one value."""
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.ndim} dimension(s)."
        )
    dim = wrap_dim(dim, input.ndim)
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    text = (
        "index_fill_(): Converting complex Scalar to non-complex type is not supported"
    )
    if isinstance(value, complex) and not jnp.iscomplexobj(input):
        raise RuntimeError(text)
    filled = scalar_for(value, input.dtype, text)
    if not input.ndim:
        return jnp.where(index.size > 0, filled, input)
    n = input.shape[dim]
    hit = jnp.zeros((n,), bool)
    hit = hit.at[from_end(index.reshape(-1), n)].set(True, mode="drop")
    hit = hit.reshape((n,) + (1,) * (input.ndim - dim - 1))
    return jnp.where(hit, filled, input)


# -- flat indices ------------------------------------------------------------------


def _flat_checks(input: Array, index: Array, *rest: Any) -> list[Check]:
    n = input.size
    text = f"out of range: tried to access index {{value}} on a tensor of {n} elements."
    return outside(index, -n, n, text)


def _check_long(index: Any, name: str) -> None:
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}: Expected a long tensor for index, but got {scalar_name(index)}"
        )


@op(
    grad_fn="TakeBackward0",
    saves=("input", "index"),
    curved=False,
    differentiable=("input",),
    checks=_flat_checks,
    apart=("input", "index"),
    out=(
        "take(): self and out expected to have the same dtype, but got "
        "self.dtype = {want.scalar_name} and out.dtype = {have.scalar_name}"
    ),
)
def take(input: Array, index: Array) -> Array:
    """Elements at places counted over the whole tensor."""
    _check_long(index, "take()")
    if not input.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    if not index.size:
        return jnp.zeros(index.shape, input.dtype)
    flat = input.reshape(-1)
    return jnp.take(flat, from_end(index, flat.size), mode="clip")


def _check_put(input: Meta, index: Meta, source: Meta, accumulate: bool) -> None:
    if not accumulate and input.device.type != "meta":
        determinism.alert("put_")


@op(
    grad_fn="PutBackward0",
    saves={"input": ("index",), "source": ("index", "source")},
    curved=False,
    differentiable=("input", "source"),
    checks=_flat_checks,
    typecheck=_check_put,
    layout=dense_layout,
    inplace=True,
    out=False,
    apart=("index", "source"),
)
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Elements written at places counted over the whole tensor."""
    _check_long(index, "put_()")
    if index.size and not input.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    if input.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got "
            f"self.dtype = {scalar_name(input)} and source.dtype = "
            f"{scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, "
            f"but got source.numel() = {source.size}, index.numel() = {index.size}"
        )
    if not index.size:
        return input
    flat, values = input.reshape(-1), source.reshape(-1)
    places = from_end(index.reshape(-1), flat.size)
    if accumulate:
        return added(flat, places, values).reshape(input.shape)
    return written(flat, values, (places,)).reshape(input.shape)


def _one_hot_checks(input: Array, num_classes: int) -> list[Check]:
    if not input.size:
        return []
    return [
        Check(input.min() < 0, RuntimeError, "Class values must be non-negative."),
        Check(
            input.max() >= num_classes,
            RuntimeError,
            "Class values must be smaller than num_classes.",
        ),
    ]


@op(
    name="one_hot_classes",
    saves=(),
    differentiable=False,
    checks=_one_hot_checks,
    method=False,
    namespaces=(),
)
def one_hot_classes(input: Array, num_classes: int) -> Array:
    """A row of zeros with a one at the class, for every element."""
    classes = jnp.arange(num_classes, dtype=input.dtype)
    return (input[..., None] == classes).astype(np.int64)
