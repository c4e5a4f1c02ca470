"""Element-wise functions and conversions of sparse tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._core.naming import check_replacement
from torchshim._core.promotion import castable, check_result, promote
from torchshim._core.record import local, untracked
from torchshim._core.write import WRITTEN_LEAF
from torchshim._derived import fns, public
from torchshim._functions._arguments import kind_of, size_of
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.memory import OTHER_KIND, write_into
from torchshim._functions.sparse_compressed import (
    alike,
    check_copied,
    without_values,
)
from torchshim._functions.sparse_construct import empty_coo
from torchshim._functions.sparse_convert import _sparse_broadcast_to, to_dense
from torchshim._functions.sparse_tensor import (
    HANDLERS,
    SparseTensor,
    check_alike,
    coalesced,
    coo,
    handles,
    is_sparse,
    keys_of,
    merged,
    named,
    refuse,
    terms_of,
    values_at,
)
from torchshim._ops._common import broadcast_shapes
from torchshim._ops.arithmetic import check_no_bools
from torchshim._out import refuse_tracked
from torchshim._tensor import Tensor

# -- functions of single elements that leave zero as it is -----------------------------

_ZERO_TO_ZERO = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil "
    "deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf "
    "log1p nan_to_num positive rad2deg relu round sgn sign signbit sin sinh sqrt tan "
    "tanh trunc fix"
).split()


_PLAIN_NAMES = {
    "absolute": "abs",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "fix": "trunc",
}


def _element_wise(name: str) -> None:
    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        whole = coalesced(input) if input.is_sparse else input
        return whole._like(getattr(whole._v, name)(*args, **kwargs))

    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_sparse and not self.is_coalesced():
            plain = _PLAIN_NAMES.get(name, name)
            raise RuntimeError(f"{plain}_ requires coalesced input")
        return become(self, function(self, *args, **kwargs))

    function.__name__ = name
    handles(name)(function)
    if hasattr(Tensor, f"{name}_"):
        handles(f"{name}_")(in_place)


for _name in _ZERO_TO_ZERO:
    _element_wise(_name)


@handles("conj_physical")
def conj_physical(input: Any) -> Any:
    """As `torch.conj_physical`."""
    return input._like(fns.conj_physical(input._v))


@handles("conj_physical_")
def conj_physical_(self: Any) -> Any:
    """As `Tensor.conj_physical_`."""
    return become(self, conj_physical(self))


@handles("conj")
def conj(input: Any) -> Any:
    """As `torch.conj`: sparse tensors have no bit for it."""
    return conj_physical(input) if input.is_complex() else input


@handles("resolve_conj", "resolve_neg")
def resolved(input: Any) -> Any:
    """As `torch.resolve_conj`: there is nothing to be resolved."""
    return input


@handles("adjoint")
def adjoint(input: Any) -> Any:
    """As `Tensor.adjoint`."""
    return conj(input.transpose(-2, -1))


def _part(name: str) -> None:
    def function(input: Any) -> Any:
        if not input.is_sparse:
            refuse(name, input)
        return input._like(getattr(input._v, name))

    handles(name)(function)
    setattr(SparseTensor, name, property(function))


_part("real")
_part("imag")


@handles("__abs__")
def _abs(self: Any) -> Any:
    return self.abs()


@handles("float_power")
def float_power(input: Any, exponent: Any) -> Any:
    """As `torch.float_power`, with a number as the exponent."""
    wide = dtypes.complex128 if input.is_complex() else dtypes.float64
    return pow(input.to(wide), exponent)


@handles("neg", "negative", "__neg__")
def neg(input: Any) -> Any:
    """As `torch.neg`."""
    return input._like(fns.neg(input._v))


@handles("pow", "__pow__")
def pow(input: Any, exponent: Any) -> Any:
    """As `torch.pow`, with a number as the exponent."""
    if not is_sparse(input) or isinstance(exponent, Tensor):
        refuse("pow", input if is_sparse(input) else exponent)
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the "
            "result tensor dense"
        )
    whole = coalesced(input) if input.is_sparse else input
    return whole._like(fns.pow(whole._v, exponent))


@handles("square")
def square(input: Any) -> Any:
    """As `torch.square`."""
    return pow(input, 2)


def become(target: Any, made: Any) -> Any:
    """An in-place operation: the target takes the parts of the result."""
    if target.is_leaf and target.requires_grad and local.rec.grad:
        raise RuntimeError(WRITTEN_LEAF)
    if target.requires_grad and target.is_leaf:  # as it stays one
        grad, made = target._v._grad, made.detach().requires_grad_()
        if grad is not None and grad.shape == made._v.shape:
            made._v._grad = grad
    for name in ("_i", "_v", "_coalesced", "_terms", "_form"):
        vars(target).pop(name, None)
    vars(target).update(vars(made))
    target._tmeta = made._tmeta
    return target


@handles("register_hook")
def register_hook(self: Any, hook: Any) -> Any:
    """As `Tensor.register_hook`: gradients have the pattern of the tensor."""
    pattern = self._like(self._v.detach())

    def called(values: Any) -> Any:
        grad = None if values is None else pattern._gradient(values)
        made = hook(grad)
        if made is None:
            return None
        check_replacement(hook, grad, made)
        return values_at(pattern, made)

    return self._v.register_hook(called)


def _set_data(self: Any, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {kind_of(value)}")
    if not is_sparse(value) or value.layout is not self.layout:
        raise RuntimeError(OTHER_KIND)
    with untracked():
        become(self, value.detach())


SparseTensor.data = property(lambda self: self.detach(), _set_data)


# -- products and quotients ------------------------------------------------------------


def _number(value: Any) -> builtins.bool:
    return not isinstance(value, Tensor) or (not value.ndim and not is_sparse(value))


def _intersection(a: Any, b: Any) -> Any:
    """The product of two sparse tensors: values where both have one."""
    if not a.is_sparse or not b.is_sparse:
        return alike(_intersection(a.to_sparse_coo(), b.to_sparse_coo()), a)
    count = a._i.shape[0]
    size, device = tuple(a.shape[:count]), a.device
    its_size = tuple(b.shape[: b._i.shape[0]])
    if a.ndim != b.ndim or size != its_size:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal "
            "dimensionality, number of sparse dimensions, and shape of sparse "
            "dimensions"
        )
    # Before equal places are added up: two that are True are 2 as integers.
    a, b = (t.to(promote(a.dtype, b.dtype)) for t in (a, b))
    b = coalesced(b)

    def make(left: np.ndarray, right: np.ndarray) -> Any:
        mine, theirs = keys_of(left, size), keys_of(right, size)
        at = np.searchsorted(theirs, mine)
        found = np.append(theirs, -1)[np.minimum(at, len(theirs))] == mine
        parts = left[:, found], np.nonzero(found)[0], at[found]
        return [placed(part.astype(np.int64), device) for part in parts]

    indices, of_a, of_b = planned(("and", size), make, a._i, b._i)
    values = fns.mul(a._v.index_select(0, of_a), b._v.index_select(0, of_b))
    return coo(indices, values, (*size, *values.shape[1:]), a._coalesced)


@handles("mul", "multiply", "__mul__", "__rmul__")
def mul(input: Any, other: Any) -> Any:
    """As `torch.mul`, where an operand is sparse."""
    if not is_sparse(input):
        input, other = other, input
    if _number(other):
        return input._like(fns.mul(input._v, other))
    if is_sparse(other):
        for one, another in ((input, other), (other, input)):
            if not another.ndim:
                factor = to_dense(another)
                if not one.ndim:  # neither counts for more in the promotion
                    factor = factor.reshape(1)
                return one._like(fns.mul(one._v, factor))
        return _intersection(input, other)
    if other.ndim > input.ndim:
        if not input.is_sparse:
            refuse("mul with a dense tensor of more dimensions", input)
        size = broadcast_shapes(tuple(input.shape), tuple(other.shape))
        input = coalesced(_sparse_broadcast_to(input, size))
    spread = other.expand(input.shape)
    factors = input._shaped(fns.sparse_mask_values(spread, input._places()))
    return input._like(fns.mul(input._v, factors))


def _check_divisor(what: str, other: Any) -> None:
    if _number(other):
        return
    got = f"shape {list(other.shape)} for" if other.ndim else "a sparse"
    raise RuntimeError(
        f"Sparse {what} requires a scalar or zero-dim dense tensor divisor (got {got} "
        "divisor)"
    )


@handles("div", "divide", "true_divide", "__truediv__")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """As `torch.div`, of a sparse tensor by a number."""
    if not is_sparse(input) and not isinstance(input, Tensor):
        refuse("div", other)
    _check_divisor("division", other)
    if rounding_mode is None:
        return input._like(fns.div(input._v, other))
    whole = coalesced(input) if input.is_sparse else input
    return whole._like(whole._v.div(other, rounding_mode=rounding_mode))


@handles("floor_divide", "__floordiv__")
def floor_divide(input: Any, other: Any) -> Any:
    """As `torch.floor_divide`, of a sparse tensor by a number."""
    if not is_sparse(input):
        refuse("floor_divide", other)
    _check_divisor("floor division", other)
    return div(input, other, rounding_mode="floor")


# -- sums ------------------------------------------------------------------------------


def _union(a: Any, b: Any, name: str, alpha: Any) -> Any:
    if a.shape != b.shape and name == "add" and not a.is_sparse:
        raise RuntimeError(
            "torch.add: Expected input tensors to have the same shape, but got tensor "
            f"`self` with shape {list(a.shape)} and tensor `other` with shape "
            f"{list(b.shape)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but "
            f"{list(a.shape)} != {list(b.shape)}"
        )
    if not a.is_sparse or not b.is_sparse:
        return alike(_union(a.to_sparse_coo(), b.to_sparse_coo(), name, alpha), a)
    combine = fns.sub if name == "sub" else fns.add
    if a._i is b._i:
        return a._like(combine(a._v, b._v, alpha=alpha))
    if a._i.shape[0] != b._i.shape[0]:  # where one has no values, it does not count
        if not b._i.shape[1]:
            return a._like(fns.clone(a._v))
        if not a._i.shape[1]:
            scale = -alpha if name == "sub" else alpha
            return b._like(b._v * scale)
    check_alike(a, b, "add")
    b = b.to(promote(a.dtype, b.dtype))  # in which -1 is no 255
    scaled = b._v if alpha == 1 else b._v * alpha
    if name == "sub":
        scaled = -scaled
    mine, its = (a._i, a._v, a._coalesced), (b._i, scaled, b._coalesced)
    indices, values, whole = merged(mine, its, tuple(a.shape))
    return coo(indices, values, a.shape, whole)


def _sum(name: str, input: Any, other: Any, alpha: Any) -> Any:
    if name == "sub":
        check_no_bools(
            *(t._tmeta if isinstance(t, Tensor) else t for t in (input, other))
        )
    if is_sparse(input):
        if not is_sparse(other):
            if not input.is_sparse and isinstance(other, Tensor) and name == "add":
                # PyTorch swaps the two, and `alpha` is that of the sparse one.
                return _sum(name, other, input, alpha)
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        return _union(input, other, name, alpha)
    shape = tuple(input.shape) if isinstance(input, Tensor) else ()
    if shape != tuple(other.shape):
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{list(shape)} while other has size {list(other.shape)} (FYI: "
            "dense-sparse addition does not currently support broadcasting)"
        )
    combine = fns.sub if name == "sub" else fns.add
    return combine(input, to_dense(other), alpha=alpha)


@handles("add", "__add__")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """As `torch.add`, where `other` or both are sparse."""
    return _sum("add", input, other, alpha)


@handles("sub", "subtract", "__sub__")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """As `torch.sub`, where `other` or both are sparse."""
    return _sum("sub", input, other, alpha)


@handles("__radd__")
def radd(self: Any, other: Any) -> Any:
    """`other + self`."""
    return _sum("add", other, self, 1)


@handles("__rsub__", "rsub")
def rsub(self: Any, other: Any) -> Any:
    """`other - self`."""
    return _sum("sub", other, self, 1)


# -- in place --------------------------------------------------------------------------


def _check_result(name: str, self: Any, other: Any, result: dtypes.dtype) -> None:
    """Raises where `self` cannot take a result of this dtype in place."""
    have = self.dtype
    if name == "mul" and is_sparse(self) and self.is_sparse and not is_sparse(other):
        raise RuntimeError(
            f"dtype of values ({result.scalar_name}) must match dtype of sparse tensor "
            f"({have.scalar_name})"
        )
    if name == "mul" and is_sparse(self) and not self.is_sparse and is_sparse(other):
        return  # PyTorch casts whatever there is
    if (
        name in ("add", "sub", "mul")
        and is_sparse(other)
        and not castable(result, have)
    ):
        where = " in add operation"
        if name == "mul" and is_sparse(self):
            alike = self.is_coalesced() and other.is_coalesced()
            where = " in mul operation" if alike else ""
        raise RuntimeError(
            f"Can't convert result type {result.scalar_name} to output "
            f"{have.scalar_name}{where}"
        )
    check_result(result, have)


def _in_place(name: str, *others: str) -> None:
    function = HANDLERS[name]

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Old programs give a factor first: `add_(-0.1, grad)`.
        operands = (a for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        other: Any = next(operands, args[0] if args else None)
        if not is_sparse(self):
            if name == "sub":
                check_no_bools(self._tmeta, other._tmeta)
            if name == "div":
                return function(self, *args, **kwargs)  # which refuses it
            _check_result(name, self, other, promote(self.dtype, other.dtype))
            dense = [to_dense(a) if is_sparse(a) else a for a in args]
            named = {k: to_dense(a) if is_sparse(a) else a for k, a in kwargs.items()}
            return getattr(self, f"{name}_")(*dense, **named)
        made = function(self, *args, **kwargs)
        if made.dtype is not self.dtype:
            _check_result(name, self, other, made.dtype)
            made = made.to(self.dtype)
        return become(self, made)

    write.__name__ = f"{name}_"
    handles(f"{name}_", *others)(write)


_in_place("add", "__iadd__")
_in_place("sub", "__isub__")
_in_place("mul", "__imul__")
_in_place("div", "__itruediv__")
_in_place("floor_divide", "__ifloordiv__")
_in_place("neg")
_in_place("negative")
_in_place("pow", "__ipow__")


@handles("zero_")
def zero_(self: Any) -> Any:
    """Takes all values away."""
    if not self.is_sparse:
        return become(self, without_values(self))
    dense = terms_of(self)[0][0][1].ndim - 1
    return become(self, empty_coo(self.shape, self.dtype, self.device, False, dense))


@handles("fill_")
def fill_(self: Any, value: Any) -> Any:
    """Gives all values of a compressed tensor another one."""
    if self.is_sparse:
        refuse("fill_", self)
    return become(self, self._like(self._v.detach().clone().fill_(value)))


@handles("copy_")
def copy_(self: Any, src: Any, non_blocking: builtins.bool = False) -> Any:
    """Takes the elements of another sparse tensor of the same layout."""
    if self.layout is not src.layout:
        kinds = [LAYOUT_TEXTS[each.layout.name] for each in (self, src)]
        if is_sparse(self) and not self.is_sparse:
            raise RuntimeError(
                "torch.copy_: copy of sparse compressed tensors having different "
                f"layouts is not supported. self layout is {kinds[0]} and src layout "
                f"is {kinds[1]}"
            )
        if is_sparse(src) and not src.is_sparse:
            raise RuntimeError(
                "copy_sparse_compressed_ expected sparse compressed tensor layout but "
                f"got {kinds[0]}"
            )
    if not is_sparse(self) or not is_sparse(src) or self.layout is not src.layout:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self "
            f"type = {self.type()} and src type = {src.type()}"
        )
    if not self.is_sparse:
        check_copied(self, src)
        values = fns.clone(src.to(self.dtype)._v)
        return become(self, src._like(values, size=self.shape))
    if self.is_sparse and self.shape != src.shape:
        dense = src._v.ndim - 1
        HANDLERS["sparse_resize_"](self, tuple(src.shape), src.ndim - dense, dense)
    return become(self, src.to(self.dtype).clone())


# -- `out=` ----------------------------------------------------------------------------


def takes_out(name: str) -> None:
    """Lets a function write to `out=`; the result decides whether that is sparse."""
    function = HANDLERS[name]

    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        return written(function.__name__, function(*args, **kwargs), out, args)

    call.__name__ = name
    HANDLERS[name] = call


def written(name: str, result: Any, out: Any, args: Any) -> Any:
    """A result, in `out` if there is one: sparse ones in sparse tensors."""
    if out is None:
        return result
    refuse_tracked(local.rec, name, (args, out))
    if not is_sparse(result):
        return write_into(name, result, out, args)
    if not is_sparse(out):
        raise RuntimeError("Tensor should be sparse")
    if result.layout is not out.layout:
        refuse(f"out= of {out.layout}", result)
    if not castable(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {result.dtype.scalar_name} can't be cast to the desired "
            f"output type {out.dtype.scalar_name}"
        )
    with untracked():
        return become(out, result.to(out.dtype))


for _name in (
    *_ZERO_TO_ZERO,
    *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide"),
    *("floor_divide", "neg", "negative", "pow", "conj_physical"),
):
    takes_out(_name)


@handles("zeros")
def zeros(*args: Any, size: Any = None, out: Any, **options: Any) -> Any:
    """As `torch.zeros` with a sparse `out=`, which loses its values."""
    shape = size_of("zeros", args, size)
    given = options.get("dtype")
    if given not in (None, out.dtype) or not is_sparse(out) or not out.is_sparse:
        refuse("zeros", out)
    grad = bool(options.get("requires_grad"))
    return become(out, empty_coo(shape, out.dtype, out.device, grad))


# -- at the places of another ---------------------------------------------------------


@public(namespaces=(), method=True)
@handles("sparse_mask")
def sparse_mask(self: Any, mask: Any) -> Any:
    """The elements at the places where the sparse tensor `mask` has values.

    Of the mask's layout; RuntimeError unless both have the same shape.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sparse_mask.html

    >>> import torchshim as torch
    >>> x, mask = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 1.0]]).to_sparse()
    >>> x.sparse_mask(mask).values()
    tensor([2.])
    """
    if not is_sparse(mask):
        raise RuntimeError(f"sparse_mask: expected a sparse mask, got {mask.layout}")
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    if is_sparse(self) and self.is_sparse and mask.is_sparse and self._i is mask._i:
        return mask._like(named(self._v, "SparseMask"))
    dense = to_dense(self) if is_sparse(self) else self
    values = mask._shaped(fns.sparse_mask_values(dense, mask._places()))
    return mask._like(named(values, "SparseMask"))
