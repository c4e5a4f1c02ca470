"""Element-wise functions, copies and conversions of nested tensors of layout jagged."""

from __future__ import annotations

from typing import Any

from torchshim._core.layout import contiguous_format, strided
from torchshim._functions.composed import recompute_input, refreshed
from torchshim._functions.convert import CAST_METHODS
from torchshim._functions.nested_construct import jagged_from_list
from torchshim._functions.nested_nodes import named, vmap_enter
from torchshim._functions.nested_tensor import (
    check_total,
    fits,
    from_padded,
    handles,
    is_jagged,
    padded_length,
    ragged_size,
    refuse,
    strict,
)
from torchshim._tensor import Tensor

handles("_recompute_input")(recompute_input)
handles("_vmap_enter")(vmap_enter)

#: Functions of single elements; those with `_` at the end write in place as well.
_SINGLE = (
    "abs absolute acos arccos acosh arccosh add angle asin arcsin asinh arcsinh atan "
    "arctan atan2 arctan2 atanh arctanh bitwise_and bitwise_left_shift bitwise_not "
    "bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min "
    "clip conj_physical copysign cos cosh deg2rad digamma div divide true_divide elu "
    "eq erf erfc erfinv exp exp2 expm1 fix float_power floor fmax fmin fmod frac gcd "
    "ge greater_equal gelu gt greater hardshrink hardsigmoid hardtanh heaviside hypot "
    "i0 igamma igammac isclose isfinite isinf isnan isneginf isposinf lcm ldexp le "
    "less_equal leaky_relu lerp lgamma log log10 log1p log2 logaddexp logaddexp2 "
    "logical_and logical_not logical_or logical_xor logit lt less masked_fill maximum "
    "minimum mish mul multiply mvlgamma nan_to_num ne not_equal neg negative "
    "nextafter polygamma positive pow rad2deg reciprocal relu relu6 remainder round "
    "rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink "
    "softsign sqrt square sub subtract tan tanh tanhshrink threshold trunc xlogy"
).split()
_SPECIAL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx "
    "erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit ndtr ndtri "
    "round sinc xlog1py xlogy zeta"
).split()
_DUNDER = (
    "__abs__ __add__ __and__ __eq__ __ge__ __gt__ __invert__ __le__ __lshift__ __lt__ "
    "__mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rdiv__ "
    "__rlshift__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ "
    "__rtruediv__ __rxor__ __sub__ __truediv__ __xor__ __iadd__ __iand__ __ilshift__ "
    "__imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__"
).split()

# How errors call the functions of two tensors that have one form.
_ONE_FORM = frozenset(
    "atan2 fmax fmin gcd heaviside hypot igamma igammac lcm logaddexp logaddexp2 "
    "logical_and logical_or logical_xor maximum minimum nextafter".split()
)
_FORMS = {"pow": "Tensor_Tensor", "float_power": "Tensor_Tensor", "lerp": "Scalar"}
_NAMED = {
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "arctan2": "atan2",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "truediv": "div",
    "mod": "remainder",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}


def _mismatch(func: Any, a: Any, b: Any) -> RuntimeError:
    name: str = func.__name__
    plain = name.strip("_")
    if name.startswith("__") and plain[:1] in "ir" and plain[1:] in (*_NAMED, "add"):
        plain = plain[1:]
    plain = _NAMED.get(plain) or plain
    form = _FORMS.get(plain, "default" if plain in _ONE_FORM else "Tensor")
    end = "_" if name.endswith("_") and not name.endswith("__") else ""
    return RuntimeError(
        f"cannot call binary pointwise function {plain}{end}.{form} with inputs of "
        f"shapes {a} and {b}"
    )


def rewrapped(tensor: Any, made: Any) -> Any:
    """A result with the structure of a tensor; the tensor itself if it was written."""
    if made is tensor._v:
        return refreshed(tensor)
    return tensor._like(made) if isinstance(made, Tensor) else made


def on_values(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of the values, which keeps their structure."""
    return rewrapped(tensor, func(tensor._v, *args, **kwargs))


def element_wise(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of single elements of one tensor or two."""
    if kwargs.get("out") is not None:
        refuse(f"{func.__name__} with out=")
    given = [*args, *kwargs.values()]
    tensors = [a for a in given if isinstance(a, Tensor)]
    if len(tensors) == 1:
        (first,) = tensors
        values = {id(first): first._v}
    elif len(tensors) == 2:
        first, values = _aligned(func, *tensors)
    else:
        refuse(func.__name__)
    made = func(
        *(values.get(id(a), a) for a in args),
        **{name: values.get(id(a), a) for name, a in kwargs.items()},
    )
    return rewrapped(first, made)


def _aligned(func: Any, a: Any, b: Any) -> tuple[Any, dict[int, Any]]:
    """Which of two has the structure of the result, and both as values of it."""
    if is_jagged(a) and is_jagged(b):
        if not fits(a, b._size):
            raise _mismatch(func, a._size, b._size)
        return a, {id(a): a._v, id(b): b._v}
    nested, dense = (a, b) if is_jagged(a) else (b, a)
    if dense is a and func.__name__.endswith("_") and not func.__name__.endswith("__"):
        refuse(f"{func.__name__} of a tensor that is not nested")
    return nested, {id(nested): nested._v, id(dense): spread(func, nested, dense, a, b)}


def spread(func: Any, nested: Any, dense: Any, a: Any, b: Any) -> Any:
    """A dense operand as values that fit those of a nested one."""
    ndim = len(nested._size)
    if dense.ndim > ndim:
        raise NotImplementedError(
            "an operand with more dimensions than the nested tensor is not supported"
        )
    plain = dense
    while plain.ndim and plain.shape[0] == 1:
        plain = plain.squeeze(0)
    if ndim >= plain.ndim + 2:
        return plain
    if dense.ndim != ndim or dense.shape[0] != nested._size[0]:
        raise _mismatch(func, a.shape, b.shape)
    at = nested._ragged_idx
    own = ragged_size(nested._offsets)
    size = *dense.shape[:at], own, *dense.shape[at + 1 :]
    if not fits(nested, size):
        check_total(nested)
        mine, other = (x._size if x is nested else size for x in (a, b))
        raise _mismatch(func, mine, other)
    if dense.shape[at] != 1:
        length = padded_length(nested)
        dense = dense.expand(*dense.shape[:at], length, *dense.shape[at + 1 :])
    return from_padded(dense, nested)._v


for _name in _SINGLE:
    handles(_name, f"{_name}_")(element_wise)
handles(*_DUNDER, *_SPECIAL)(element_wise)


@handles("max", "min")
def _max(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    other = args[0] if args else kwargs.get("other")
    if isinstance(other, Tensor):
        return element_wise(func, tensor, *args, **kwargs)
    return EXTREMES(func, tensor, *args, **kwargs)


# Set by `nested_reductions`.
def EXTREMES(func: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """The greatest or least elements along a dimension, or of all."""
    raise NotImplementedError


@handles("where")
def _where(func: Any, *args: Any, **kwargs: Any) -> Any:
    if len(args) + len(kwargs) != 3:
        refuse("where with a condition alone")
    names = "condition", "input", "other"
    if func is vars(Tensor).get("where"):
        names = "input", "condition", "other"
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    given["input"] = given.pop("self", given.get("input"))
    condition, first, other = given["condition"], given["input"], given["other"]
    if not is_jagged(condition):
        refuse("where with a condition that is not nested")
    parts = []
    for each in (condition, first, other):
        if not isinstance(each, Tensor):
            parts.append(each)
        elif is_jagged(each):
            if not fits(condition, each._size):
                raise RuntimeError(
                    "where(): expected nested tensors of one ragged structure, but got "
                    f"shapes {condition._size} and {each._size}"
                )
            parts.append(each._v)
        elif each.ndim < len(condition._size):
            parts.append(each)
        else:
            raise ValueError(
                "broadcast_tensors(): broadcasting nested tensors with dense tensors "
                "of equal or higher dim is not currently supported"
            )
    if func is vars(Tensor).get("where"):
        return condition._like(func(parts[1], parts[0], parts[2]))
    return condition._like(func(*parts))


@handles("frexp")
def _frexp(func: Any, input: Any) -> Any:
    made = func(input._v)
    return type(made)(input._like(part) for part in made)


# Copies and conversions ---------------------------------------------------------------


@handles("detach")
def _detach(func: Any, input: Any) -> Any:
    return input._like(input._v.detach())


@handles("detach_", "zero_", "fill_", "uniform_", "normal_", "exponential_")
def _write(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    func(input._v, *args, **kwargs)
    return refreshed(input)


@handles("apply_")
def _apply_(func: Any, input: Any, *args: Any) -> Any:
    func(input._v, *args)
    return input


@handles("clone")
def clone(func: Any, input: Any, *, memory_format: Any = None) -> Any:
    """As `torch.clone`; a contiguous one has no holes."""
    if input._lengths is not None and memory_format is contiguous_format:
        if input._ragged_idx != 1:
            raise AssertionError(
                "NJT with ragged_idx != 1 not supported for contiguous clone"
            )
        return jagged_from_list(input.unbind(), None)[0]
    options = {} if memory_format is None else {"memory_format": memory_format}
    return input._like(input._v.clone(**options))


@handles("contiguous")
def contiguous(func: Any, input: Any, memory_format: Any = contiguous_format) -> Any:
    """As `Tensor.contiguous`."""
    if input.is_contiguous(memory_format):
        return input
    return input.clone(memory_format=memory_format)


@handles("copy_")
def copy_(func: Any, self: Any, src: Any, non_blocking: bool = False) -> Any:
    """As `Tensor.copy_`, of a nested tensor with the same lengths."""
    if not is_jagged(self) or not is_jagged(src):
        refuse("copy_ between nested tensors and others")
    if self._size != src._size:
        mine, its = ([p.shape for p in t.unbind()] for t in (self, src))
        if mine != its:
            raise RuntimeError(
                "copy_(): expected compatible input and src shapes, but got: "
                f"{self.shape} and {src.shape}"
            )
    self._v.copy_(src._v)
    return refreshed(self)


def converted(input: Any, values: Any) -> Any:
    """A nested tensor with its values converted, its offsets on their device."""
    if values is input._v:
        return input
    return input._like(values, **moved_parts(input, values.device))


def moved_parts(input: Any, device: Any) -> dict[str, Any]:
    """The offsets and lengths of a tensor on a device: of the same ragged structure."""
    found: dict[str, Any] = {}
    for name in ("offsets", "lengths"):
        part = getattr(input, f"_{name}")
        if part is not None and part.device != device:
            found[name] = part.to(device)
            found[name]._ragged = part._ragged
    return found


@handles("to", "type", "cpu", "cuda", *CAST_METHODS)
def _to(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not is_jagged(input):
        return func(input, *(a._v if is_jagged(a) else a for a in args), **kwargs)
    args = tuple(a._v if is_jagged(a) else a for a in args)
    made = func(input._v, *args, **kwargs)
    return converted(input, made) if isinstance(made, Tensor) else made


@handles("result_type")
def _result_type(func: Any, *tensors: Any) -> Any:
    return func(*(t._v if is_jagged(t) else t for t in tensors))


@handles("type_as")
def _type_as(func: Any, self: Any, other: Any) -> Any:
    kind = other.dtype
    return self.to(kind)


@handles("pin_memory")
def _pin_memory(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input._like(func(input._v, *args, **kwargs))


@handles("is_pinned")
def _is_pinned(func: Any, input: Any, *args: Any, **kwargs: Any) -> bool:
    return func(input._v, *args, **kwargs)


def _parts(input: Any) -> list[Any]:
    given = input._v, input._offsets, input._lengths
    return [part for part in given if part is not None]


@handles("share_memory_")
def _share_memory_(func: Any, input: Any) -> Any:
    for part in _parts(input):
        part.share_memory_()
    return input


@handles("is_shared")
def _is_shared(func: Any, input: Any) -> bool:
    return all(part.is_shared() for part in _parts(input))


@handles("_is_view")
def _is_view(func: Any, input: Any) -> bool:
    return input._v._is_view()


@handles("register_hook")
def _register_hook(func: Any, self: Any, hook: Any) -> Any:
    pattern = self._like(self._v.detach())

    def called(values: Any) -> Any:
        made = hook(None if values is None else pattern._like(values))
        return None if made is None else pattern._values_of(made)

    return self._v.register_hook(called)


# New tensors --------------------------------------------------------------------------


@handles(
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"
)
@handles("randint_like", "bernoulli", "dropout", "feature_dropout")
def _like(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs.pop("layout", None) is strided:
        refuse(f"{func.__name__} with layout=torch.strided")
    requires_grad = kwargs.get("requires_grad", False)
    if func.__name__ == "dropout" and kwargs.get("training", args[1:2] != (False,)):
        strict(input, "native_dropout_default(self: jt, float: any, train: any?)")
    values = func(input._v, *args, **kwargs)
    if func.__name__ == "dropout" and values is not input._v:
        values = named(values, "NativeDropout")
    made = converted(input, values)
    if made._v is input._v or requires_grad:
        return refreshed(made)
    return made


@handles("new_empty", "new_zeros", "new_ones")
def _new(func: Any, self: Any, *size: Any, **kwargs: Any) -> Any:
    made = func(self._v, *size, **kwargs)
    if made.ndim:
        raise RuntimeError("new_empty() not supported for NJT with shape != ()")
    return made


@handles("new_tensor", "new_full")
def _new_tensor(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return func(self._v, *args, **kwargs)


# What needs memory --------------------------------------------------------------------


@handles("tolist")
def _tolist(func: Any, self: Any) -> Any:
    raise RuntimeError(
        ".tolist() is not supported for tensor subclasses, got NestedTensor"
    )


@handles("numpy", "__array__")
def _numpy(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


@handles("__int__", "__float__", "__complex__", "__index__")
def _number(func: Any, self: Any) -> Any:
    if self.numel() == 1:
        return func(self._v)
    if func.__name__ == "__index__":
        raise TypeError(
            "only integer tensors of a single element can be converted to an index"
        )
    raise ValueError("only one element tensors can be converted to Python scalars")


@handles("item")
def _item(func: Any, self: Any) -> Any:
    if self.numel() != 1:
        raise RuntimeError(
            f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
        )
    return func(self._v)


@handles("__len__")
def _len(func: Any, self: Any) -> int:
    return self._size[0]
