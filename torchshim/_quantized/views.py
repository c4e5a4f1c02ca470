"""Rearranging, copying and joining quantized tensors: what is done with codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import preserve_format
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._functions.convert import CAST_METHODS
from torchshim._functions.creation import placed
from torchshim._ops.view_geometry import wrap_dim
from torchshim._quantized.construct import as_quantized
from torchshim._quantized.tensor import (
    NOT_QUANTIZED,
    PerChannel,
    PerTensor,
    Quantized,
    Scheme,
    check_length,
    check_no_grad,
    code_of,
    decoded,
    handles,
    is_quantized,
    per_tensor,
    quantized,
    with_codes,
)
from torchshim._tensor import Tensor, host_value

_STRIDES = "Setting strides is possible only on uniformly quantized tensor"
_NO_COPY_OUT = (
    "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use "
    "dequantize to get a float Tensor from a quantized Tensor"
)

# Codes in another arrangement: with a scheme for all of them, nothing else changes.
_REARRANGED = (
    "transpose permute t swapaxes swapdims movedim moveaxis expand expand_as unfold "
    "as_strided diagonal repeat flip unflatten tensor_split hsplit vsplit dsplit "
    "broadcast_to adjoint ravel atleast_1d atleast_2d atleast_3d pixel_shuffle "
    "pixel_unshuffle channel_shuffle rot90 fliplr flipud"
).split()
# The size alone: a scheme for each channel stays if the channels do.
_RESIZED = "view reshape flatten view_as reshape_as".split()
_SAME = "clone contiguous detach alias".split()
_IN_PLACE = (
    "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ resize_ detach_".split()
)


def codes_of(value: Any) -> Any:
    """The codes of a quantized tensor; any other value as it is."""
    return value._v if is_quantized(value) else value


def on_codes(name: str, input: Any, args: Sequence[Any], kwargs: Any) -> Any:
    """A method, or else a function, of the codes."""
    codes, args = input._v, [codes_of(a) for a in args]
    method = getattr(codes, name, None)
    if method is not None:
        return method(*args, **kwargs)
    import torchshim

    found = getattr(torchshim, name, None) or getattr(torchshim.nn.functional, name)
    return found(codes, *args, **kwargs)


def _wrapped(made: Any, scheme: Scheme) -> Any:
    if isinstance(made, (tuple, list)):
        return type(made)(_wrapped(each, scheme) for each in made)
    return quantized(made, scheme)


def _rearranged(name: str) -> Callable[..., Any]:
    def rearranged(input: Any, *args: Any, **kwargs: Any) -> Any:
        scheme = per_tensor(input, _STRIDES)
        return _wrapped(on_codes(name, input, args, kwargs), scheme)

    return rearranged


def _resized(name: str) -> Callable[..., Any]:
    def resized(input: Any, *args: Any, **kwargs: Any) -> Any:
        made = on_codes(name, input, args, kwargs)
        scheme = input._scheme
        if isinstance(scheme, PerChannel):
            axis = scheme.axis
            check_length(scheme, made.shape[axis] if axis < made.dim() else 0)
        return quantized(made, scheme)

    return resized


def _same(name: str) -> Callable[..., Any]:
    def same(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input._like(on_codes(name, input, args, kwargs))

    return same


def _in_place(name: str) -> Callable[..., Any]:
    def in_place(input: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "resize_":
            per_tensor(
                input, "Can only resize quantized tensors with per-tensor schemes!"
            )
        elif name != "detach_":
            per_tensor(input, _STRIDES)
        on_codes(name, input, args, kwargs)
        return with_codes(input, input._v)

    return in_place


for _names, _make in (
    (_REARRANGED, _rearranged),
    (_RESIZED, _resized),
    (_SAME, _same),
    (_IN_PLACE, _in_place),
):
    for _name in _names:
        handles(_name)(_make(_name))

Quantized.T = property(
    lambda self: self.permute(*range(self.dim() - 1, -1, -1)) if self.dim() else self
)
Quantized.mT = property(lambda self: self.transpose(-2, -1))


# Pieces -------------------------------------------------------------------------------


@handles("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """As `Tensor.unsqueeze`; channels move with their dimension."""
    at, scheme = wrap_dim(dim, input.dim() + 1), input._scheme
    if isinstance(scheme, PerChannel) and at <= scheme.axis:
        scheme = scheme._replace(axis=scheme.axis + 1)
    return quantized(input._v.unsqueeze(at), scheme)


@handles("squeeze")
def squeeze(input: Any, *dim: Any, **named: Any) -> Any:
    """As `Tensor.squeeze`; the dimension of channels has to stay."""
    made, scheme = input._v.squeeze(*dim, **named), input._scheme
    if isinstance(scheme, PerChannel):
        asked = dim[0] if dim else named.get("dim", range(input.dim()))
        dims = [asked] if isinstance(asked, int) else asked
        gone = {d % input.dim() for d in dims if input.shape[d] == 1}
        if scheme.axis in gone:
            raise RuntimeError(
                "Squeeze is only possible on non-axis dimension for Per-Channel "
                "Quantized Tensors."
            )
        scheme = scheme._replace(axis=scheme.axis - sum(d < scheme.axis for d in gone))
    return quantized(made, scheme)


@handles("select")
def select(input: Any, dim: int, index: int) -> Any:
    """As `Tensor.select`; one channel has one scale."""
    at, scheme = wrap_dim(dim, input.dim()), input._scheme
    codes = input._v.select(at, index)
    if isinstance(scheme, PerChannel):
        if at == scheme.axis:
            scheme = _channel(scheme, index)
        elif at < scheme.axis:
            scheme = scheme._replace(axis=scheme.axis - 1)
    return quantized(codes, scheme)


def _channel(scheme: PerChannel, index: int) -> PerTensor:
    scale = np.float32(host_value(scheme.scales)[index])
    return PerTensor(float(scale), int(host_value(scheme.zero_points)[index]))


def _sliced(input: Any, dim: int, piece: slice) -> Any:
    codes = input._v[(slice(None),) * dim + (piece,)]
    scheme = input._scheme
    if isinstance(scheme, PerChannel) and scheme.axis == dim:
        if codes.shape[dim] == 1:
            first = range(input.shape[dim])[piece][0]
            return quantized(codes, _channel(scheme, first))
        with untracked():
            parts = scheme.scales[piece].clone(), scheme.zero_points[piece].clone()
        scheme = PerChannel(*parts, dim)
    return quantized(codes, scheme)


@handles("narrow")
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """As `Tensor.narrow`."""
    input._v.narrow(dim, start, length)  # raises
    at = wrap_dim(dim, input.dim())
    start = start % max(input.shape[at], 1) if start < 0 else start
    return _sliced(input, at, slice(start, start + length))


@handles("split", "split_with_sizes")
def split(input: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """As `Tensor.split`."""
    return _cut(input, input._v.split(split_size_or_sections, dim), dim)


@handles("chunk")
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """As `Tensor.chunk`."""
    return _cut(input, input._v.chunk(chunks, dim), dim)


def _cut(input: Any, pieces: Sequence[Any], dim: int) -> Any:
    at, start, found = wrap_dim(dim, input.dim()), 0, []
    for piece in pieces:
        length = piece.shape[at]
        found.append(_sliced(input, at, slice(start, start + length)))
        start += length
    return tuple(found)


@handles("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    """As `Tensor.unbind`."""
    at = wrap_dim(dim, input.dim())
    return tuple(select(input, at, i) for i in range(input.shape[at]))


@handles("__getitem__")
def getitem(input: Any, index: Any) -> Any:
    """As indexing of tensors; with indices that are tensors one scheme is for all."""
    if isinstance(input._scheme, PerTensor):
        return input._like(input._v[index])
    found, dim = input, 0
    given = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [i for i in given if not isinstance(i, Tensor)]:
        at = [i is Ellipsis for i in given].index(True)
        named = sum(i is not None for i in given) - 1
        rest = (slice(None),) * (input.dim() - named)
        given = (*given[:at], *rest, *given[at + 1 :])
    for each in given:
        if each is None:
            found, dim = unsqueeze(found, dim), dim + 1
        elif isinstance(each, slice):
            found, dim = _sliced(found, dim, each), dim + 1
        elif isinstance(each, int) and not isinstance(each, bool):
            found = select(found, dim, each)
        else:
            per_tensor(input, "Indexing by tensors needs one scale for all elements")
    return found


# Writing ------------------------------------------------------------------------------


@handles("copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Takes another tensor's elements: numbers are rounded, codes stay as they are.

    With the codes of a quantized tensor comes its scheme.
    """
    if not is_quantized(input):
        raise RuntimeError(_NO_COPY_OUT)
    if is_quantized(src):
        if src.dtype is not input.dtype:
            raise RuntimeError(
                "Expected self.scalar_type() == src.scalar_type() to be true, but got "
                "false.  (Could this error message be improved?  If so, please report "
                "an enhancement request to PyTorch.)"
            )
        input._v.copy_(src._v)
        input._scheme = src._scheme
        return input
    if src.dtype is not dtypes.float32:
        raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
    if src.shape != input.shape:
        src = src.detach().expand(input.shape)
    input._v.copy_(as_quantized(src.detach(), input)._v)
    return input


@handles("fill_")
def fill_(input: Any, value: Any) -> Any:
    """Makes all elements the number that is nearest to one."""
    if isinstance(input._scheme, PerTensor):
        input._v.fill_(code_of(float(value), input._scheme, input.dtype))
        return input
    number = placed(np.full(tuple(input.shape), value, np.float32), input.device)
    return copy_(input, number)


@handles("__setitem__")
def setitem(input: Any, index: Any, value: Any) -> None:
    """As assignment to pieces: numbers are rounded, codes stay as they are."""
    if is_quantized(value):
        input._v[index] = value._v
    elif isinstance(input._scheme, PerTensor):
        if isinstance(value, Tensor):
            input._v[index] = as_quantized(value.detach().float(), input)._v
        else:
            input._v[index] = code_of(float(value), input._scheme, input.dtype)
    else:
        piece = getitem(input, index)
        copy_(piece, value) if isinstance(value, Tensor) else fill_(piece, value)


_FILLED = (
    "masked_fill__quantized_cpu for quantized tensors is currently only supported for "
    "per tensor quantized tensors"
)


@handles("masked_fill_")
def masked_fill_(input: Any, mask: Any, value: Any) -> Any:
    """As `Tensor.masked_fill_`, with the code of a number."""
    scheme = per_tensor(input, _FILLED)
    input._v.masked_fill_(mask, code_of(float(value), scheme, input.dtype))
    return input


@handles("masked_fill")
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """As `Tensor.masked_fill`, with the code of a number."""
    scheme = per_tensor(input, _FILLED)
    code = code_of(float(value), scheme, input.dtype)
    return input._like(input._v.masked_fill(mask, code))


# Joining and picking ------------------------------------------------------------------


@handles("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """As `torch.cat`; all take the first one's scheme."""
    first, codes = _alike(tensors)
    return first._like(fns.cat(codes, dim))


@handles("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """As `torch.stack`; all take the first one's scheme."""
    first, codes = _alike(tensors)
    return first._like(fns.stack(codes, dim))


def _alike(tensors: Sequence[Any]) -> tuple[Any, list[Any]]:
    first, codes = tensors[0], []
    for each in tensors:
        if not is_quantized(each):
            raise NotImplementedError(
                "Could not run 'aten::qscheme' with arguments from the 'CPU' backend: "
                "quantized tensors are joined with quantized ones only"
            )
        per_tensor(each, "Only per-tensor quantization is supported in 'cat'!")
        if each.dtype is not first.dtype:
            raise RuntimeError("All dtypes must be the same.")
        same = each._scheme == first._scheme
        codes.append(each._v if same else as_quantized(decoded(each), first)._v)
    return first, codes


@handles("index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:
    """As `torch.index_select`."""
    per_tensor(
        input,
        "Only per_tensor quantized quantized tensors are supported by index_select.",
    )
    return input._like(fns.index_select(input._v, dim, index))


# Dtypes and devices -------------------------------------------------------------------


def _cast(input: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(NOT_QUANTIZED)


for _name in CAST_METHODS:
    handles(_name)(_cast)


@handles("cpu")
def cpu(input: Any, **options: Any) -> Any:
    """The tensor in host memory."""
    return input._moved(lambda part: part.cpu(**options))


@handles("cuda")
def cuda(input: Any, *args: Any, **options: Any) -> Any:
    """The tensor in the memory of a GPU."""
    return input._moved(lambda part: part.cuda(*args, **options))


@handles("to")
def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `Tensor.to`, to another device or memory format; the dtype stays."""

    def of_codes(value: Any) -> Any:
        dtype = value.dtype if isinstance(value, Tensor) else value
        if isinstance(dtype, dtypes.dtype):
            if dtype is not input.dtype:
                raise RuntimeError(NOT_QUANTIZED)
            return input._v.dtype if dtype is value else value._v
        return value

    named = {name: of_codes(value) for name, value in kwargs.items()}
    codes = input._v.to(*map(of_codes, args), **named)
    if codes is input._v:
        return input
    move = codes.device
    return input._moved(lambda part: codes if part is input._v else part.to(move))


@handles("type")
def type_(input: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's legacy type."""
    if dtype is not None and dtype is not input.dtype:
        raise RuntimeError(NOT_QUANTIZED)
    if dtype is not None:
        return input
    return f"torch.quantized.{input.dtype.scalar_name}Tensor"


@handles("empty_like")
def empty_like(
    input: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """A tensor of the same size and scheme."""
    if dtype is not None and dtype is not input.dtype:
        raise RuntimeError(
            "It is currently not supported to specify a dtype that doesn't match the "
            f"input tensor's dtype via empty_like.  Specified: {dtype.cpp_name} Input "
            f"tensor's dtype: {input.dtype.cpp_name}"
        )
    check_no_grad(requires_grad)
    made = input._like(input._v.clone(memory_format=memory_format))
    return made if device is None else to(made, device)


@handles("full_like")
def full_like(input: Any, fill_value: Any, **options: Any) -> Any:
    """As `empty_like`, with the code of a number."""
    return fill_(empty_like(input, **options), fill_value)


@handles("ones_like")
def ones_like(input: Any, **options: Any) -> Any:
    """As `full_like`, of ones."""
    return full_like(input, 1.0, **options)
