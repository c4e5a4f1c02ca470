"""Element-wise functions, copies and reductions of nested tensors of layout strided."""

from __future__ import annotations

from typing import Any

from torchshim._core.layout import strided as _strided
from torchshim._functions.composed import recompute_input, refreshed
from torchshim._functions.convert import CAST_METHODS
from torchshim._functions.nested_nodes import named, vmap_enter
from torchshim._functions.nested_strided import (
    Arrangement,
    check_contiguous,
    columns,
    contiguous,
    from_padded,
    handles,
    is_strided,
    parts_of,
    refuse,
    same_sizes,
    to_padded,
    wrapped,
)
from torchshim._tensor import Tensor

#: What PyTorch has of single tensors, and of those in place.
_SINGLE = (
    "abs absolute neg negative sgn sin cos sqrt tanh relu gelu silu logical_not isnan "
    "isinf isposinf isneginf __neg__ __abs__ abs_ absolute_ neg_ negative_ sgn_ tanh_ "
    "relu_ gelu_ silu_ logical_not_ detach zero_ clone alpha_dropout dropout"
).split()
#: Of these, what it has of tensors in any arrangement.
_ARRANGED = ("alpha_dropout", "clone", "detach", "dropout")
#: What it has of two of the same sizes, or of one and a number.
_PAIRS = (
    "add sub subtract mul multiply div divide true_divide add_ mul_ multiply_ __add__ "
    "__radd__ __sub__ __mul__ __rmul__ __truediv__ __iadd__ __imul__"
).split()
_NUMBERS = "eq ge gt __eq__ __ge__ __gt__ greater greater_equal".split()
_PLAIN = {
    **{f"__{n}__": n for n in ("add", "sub", "mul", "eq", "ge", "gt")},
    **{"__radd__": "add", "__rmul__": "mul", "__truediv__": "div"},
    **{"subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div"},
    **{"__iadd__": "add_", "__imul__": "mul_"},
}

handles("_vmap_enter")(vmap_enter)
handles("_recompute_input")(recompute_input)


def rewrapped(tensor: Any, made: Any) -> Any:
    """A result arranged as a tensor is; the tensor itself if it was written."""
    if made is tensor._v:
        return refreshed(tensor)
    return tensor._like(made) if isinstance(made, Tensor) else made


@handles(*_SINGLE)
def single(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of single elements, of the whole buffer."""
    if kwargs.pop("out", None) is not None:
        refuse(f"{func.__name__} with out=")
    if func.__name__ not in _ARRANGED:
        check_contiguous(input)
    if func.__name__ == "dropout" and kwargs.get("inplace"):
        refuse("dropout in place")
    if kwargs.get("memory_format") is None:
        kwargs.pop("memory_format", None)
    made = func(input._v, *args, **kwargs)
    if func.__name__ == "dropout" and made is not input._v:
        made = named(made, "NativeDropout")
    return rewrapped(input, made)


def _number(value: Any) -> bool:
    """Whether an operand is a number, or a tensor that is one."""
    return not isinstance(value, Tensor) or (not is_strided(value) and not value.ndim)


@handles(*_PAIRS)
def pair(func: Any, input: Any, other: Any, **kwargs: Any) -> Any:
    """A function of two nested tensors of the same sizes, or of one and a number."""
    name: str = _PLAIN.get(func.__name__) or func.__name__
    if kwargs.get("rounding_mode") is not None or kwargs.get("out") is not None:
        refuse(f"{name} with rounding_mode or out=")
    if _number(other):
        if name.endswith("_"):
            check_contiguous(input)
        return rewrapped(input, func(input._v, other, **kwargs))
    if _number(input):
        return rewrapped(other, func(input, other._v, **kwargs))
    if not is_strided(input) or not is_strided(other):
        words = ["nested" if is_strided(x) else "non-nested" for x in (input, other)]
        raise RuntimeError(
            "Expected both self and other to be nested, but got a "
            f"{words[0]} self and {words[1]} other"
        )
    if not same_sizes(input, other):
        raise RuntimeError(
            f"{name} does not support broadcasting when given a NestedTensor"
        )
    if name.endswith("_"):
        check_contiguous(input)
    else:
        input, other = contiguous(input), contiguous(other)
    a, b = input._arrangement, other._arrangement
    if (a.strides != b.strides).any() or (a.begins != b.begins).any():
        refuse(f"{name} of tensors with other strides")
    return rewrapped(input, func(input._v, other._v, **kwargs))


@handles(*_NUMBERS)
def compared(func: Any, input: Any, other: Any) -> Any:
    """A comparison with a number."""
    name = _PLAIN.get(func.__name__, func.__name__)
    if not _number(other):
        raise RuntimeError(f"{name} does not support nested tensor as other value.")
    return rewrapped(input, func(input._v, other))


@handles("fill_")
def _fill_(func: Any, input: Any, value: Any) -> Any:
    if is_strided(value):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    check_contiguous(input)
    return rewrapped(input, func(input._v, value))


@handles("masked_fill")
def _masked_fill(func: Any, input: Any, mask: Any, value: Any) -> Any:
    if not is_strided(mask) or not same_sizes(input, mask):
        refuse("masked_fill with a mask of other sizes")
    input, mask = contiguous(input), contiguous(mask)
    return input._like(func(input._v, mask._v, value))


@handles("copy_")
def _copy_(func: Any, self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not is_strided(self) or not is_strided(src):
        refuse("copy_ between nested tensors and others")
    if not same_sizes(self, src):
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested "
            "implementations"
        )
    check_contiguous(self)
    check_contiguous(src)
    for mine, other in zip(parts_of(self), parts_of(src), strict=True):
        mine.copy_(other)
    return refreshed(self)


@handles("contiguous")
def _contiguous(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return contiguous(input)


@handles("to", "type", "cpu", "cuda", *CAST_METHODS)
def _to(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    args = tuple(a._v if is_strided(a) else a for a in args)
    if not is_strided(input):
        return func(input, *args, **kwargs)
    made = func(input._v, *args, **kwargs)
    if made is not input._v:
        check_contiguous(input)
    return rewrapped(input, made)


@handles("type_as")
def _type_as(func: Any, self: Any, other: Any) -> Any:
    return self.to(other.dtype)


@handles("empty_like", "zeros_like", "ones_like", "randn_like")
def _like(func: Any, input: Any, **kwargs: Any) -> Any:
    if kwargs.pop("layout", None) not in (None, _strided):
        refuse(f"{func.__name__} of another layout")
    if func.__name__ != "empty_like":
        check_contiguous(input)
    return input._like(func(input._v, **kwargs))


@handles("is_pinned", "_is_view", "data_ptr", "untyped_storage", "is_shared")
@handles("new_tensor", "pin_memory")
def _of_buffer(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return func(input._v, *args, **kwargs)


@handles("share_memory_")
def _share(func: Any, input: Any) -> Any:
    input._v.share_memory_()
    return input


@handles("item")
def _item(func: Any, self: Any) -> Any:
    if self.numel() != 1:
        raise RuntimeError(
            f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
        )
    return func(self._v)


@handles("__float__", "__int__", "__complex__")
def _as_number(func: Any, self: Any) -> Any:
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    refuse(func.__name__)


@handles("tolist")
def _tolist(func: Any, self: Any) -> Any:
    raise RuntimeError(
        "Internal error: NestedTensorImpl doesn't support strides. Please file an "
        "issue."
    )


@handles(
    "numpy", "__array__", "view_as", "expand_as", "flatten", "unflatten", "rms_norm"
)
def _sizes(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: these ask for a size that there is not."""
    raise RuntimeError(
        "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
    )


@handles("register_hook")
def _register_hook(func: Any, self: Any, hook: Any) -> Any:
    pattern = self._like(self._v.detach())

    def called(values: Any) -> Any:
        made = hook(None if values is None else pattern._like(values))
        return None if made is None else pattern._values_of(made)

    return self._v.register_hook(called)


# Along a dimension --------------------------------------------------------------------


@handles("sum")
def _sum(
    func: Any, input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    if dim is None:
        refuse("sum of all elements")
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 1:
        raise RuntimeError(
            "NestedTensor only allows reduction of a single dimension for now."
        )
    at = wrapped(input, dims[0])
    if at != input.dim() - 1:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got "
            f"dimension {at} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    if not input._arrangement.contiguous:
        raise RuntimeError(
            "NestedTensor does not support reductions when the input is noncontiguous "
            "for now."
        )
    if dtype is not None:
        raise RuntimeError("NestedTensor does not support dtype argument for now.")
    laid = input._arrangement
    sizes = columns(laid, *laid.sizes.T[:-1], 1)
    total = to_padded(input, 0).sum(-1, keepdim=True)
    return from_padded(total, Arrangement(sizes), "SumDim")


@handles("softmax")
def _softmax(
    func: Any, input: Any, dim: Any = None, _stacklevel: Any = 3, dtype: Any = None
) -> Any:
    if dim is None:
        refuse("softmax without dim")
    if not isinstance(_stacklevel, int):  # `torch.softmax(x, dim, dtype)`
        dtype = _stacklevel
    if not len(input._arrangement.sizes):
        return input.clone()
    at = wrapped(input, dim)
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    options = {} if dtype is None else {"dtype": dtype}
    padded = to_padded(input, float("-inf"))
    arrangement = Arrangement(input._arrangement.sizes)
    return from_padded(func(padded, dim=at, **options), arrangement, "Softmax")
