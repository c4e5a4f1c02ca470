"""Layers, losses and pooling in the forms that PyTorch's dispatcher has.

`torch.ops.aten.nll_loss` and `torch._C._nn.nll_loss` know a reduction by its number.
https://github.com/pytorch/pytorch, aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._derived import fns, namespace, public
from torchshim._functions import nn_loss, nn_margin_loss, nn_packing, nn_resizing
from torchshim._functions.nn_loss import REDUCTIONS
from torchshim._tensor import Tensor

_aten = public(namespaces=("ops.aten",))
_native = public(namespaces=("_C._nn",))


# -- losses -------------------------------------------------------------------------


def _loss(function: Callable[..., Tensor], *more: str, name: str = "") -> None:
    """A loss of input, target, a reduction's number and what `more` names.

    Of names with a "<" the argument comes before the reduction.
    """
    name = name or function.__name__
    before = [n[1:] for n in more if n[0] == "<"]
    order = [*before, "reduction", *(n for n in more if n[0] != "<")]

    def form(default: int) -> Callable[..., Tensor]:
        def loss(input: Tensor, target: Tensor, *options: Any, **named: Any) -> Tensor:
            if len(options) > len(order):
                raise TypeError(f"{name}() was given too many arguments")
            named |= zip(order, options, strict=False)
            how = REDUCTIONS[named.pop("reduction", default)]
            return function(input, target, reduction=how, **named)

        loss.__name__ = loss.__qualname__ = name
        loss.__doc__ = f"`nn.functional.{function.__name__}`; `reduction` is 0, 1 or 2."
        return loss

    _aten(form(1))
    # What PyTorch's parser reads, see `torch_loss`.
    _native(form(0))


_loss(nn_loss.mse_loss)
_loss(nn_loss.l1_loss)
_loss(nn_margin_loss.soft_margin_loss)
_loss(nn_margin_loss.multilabel_margin_loss)
_loss(nn_loss.smooth_l1_loss, "beta")
_loss(nn_loss.huber_loss, "delta")
_loss(nn_loss.binary_cross_entropy, "<weight")
_loss(nn_margin_loss.multi_margin_loss, "<p", "<margin", "<weight")
for _name in ("nll_loss", "nll_loss2d", "nll_loss_nd"):
    _loss(nn_loss.nll_loss, "<weight", "ignore_index", name=_name)
_loss(
    nn_loss.cross_entropy,
    *("<weight", "ignore_index", "label_smoothing"),
    name="cross_entropy_loss",
)


@_aten
def nll_loss_forward(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Tensor, Tensor]:
    """`nn.functional.nll_loss`, and the sum of the weights unless it is not reduced."""
    how = REDUCTIONS[reduction]
    loss = nn_loss.nll_loss(
        input, target, weight, ignore_index=ignore_index, reduction=how
    )
    if how == "none":
        return loss, input.new_zeros(())
    counted = fns.ne(target, ignore_index)
    if weight is None:
        return loss, counted.sum().to(input.dtype)
    return loss, (weight[target.where(counted, 0)] * counted).sum()


# -- activations --------------------------------------------------------------------


def _relu6(suffix: str) -> None:
    def relu6(input: Tensor) -> Tensor:
        return getattr(fns, f"hardtanh{suffix}")(input, 0, 6)

    relu6.__name__ = relu6.__qualname__ = f"relu6{suffix}"
    relu6.__doc__ = "Numbers cut off below 0 and above 6."
    _aten(relu6)


def _elu(suffix: str) -> None:
    def elu(
        input: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
    ) -> Tensor:
        if (scale, input_scale) == (1, 1):
            return getattr(fns, f"elu{suffix}")(input, alpha)
        small = alpha * fns.expm1((input * input_scale).clamp(max=0))
        found = fns.where(input > 0, input, small) * scale
        return input.copy_(found) if suffix else found

    elu.__name__ = elu.__qualname__ = f"elu{suffix}"
    elu.__doc__ = "Negative numbers on an exponential, all of them scaled."
    _aten(elu)


for _suffix in ("", "_"):
    _relu6(_suffix)
    _elu(_suffix)


@_aten
def gelu_(input: Tensor, *, approximate: str = "none") -> Tensor:
    """`gelu` in place."""
    return input.copy_(fns.gelu(input, approximate=approximate))


# -- padding, packing ---------------------------------------------------------------


@_aten
def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Tensor:
    """`nn.functional.pad`."""
    return nn_resizing.pad(input, tuple(pad), mode, value)


@_aten
def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """`nn.utils.rnn.pad_sequence`."""
    return nn_packing.pad_sequence(sequences, batch_first, padding_value, padding_side)


@_aten
def flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of tensors one after another."""
    return fns.cat([each.reshape(-1) for each in tensors])


@_aten
def unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> Any:
    """Pieces of a vector in the shapes of tensors."""
    pieces, begin = [], 0
    for each in tensors:
        pieces.append(flat.narrow(0, begin, each.numel()).view_as(each))
        begin += each.numel()
    return tuple(pieces)


# -- convolutions that PyTorch computes in its own kernels ---------------------------


_DILATED = {"stride": "strides", "padding": "pads", "dilation": "dilations"}


def _check_lengths(name: str, ndim: int, sizes: dict[str, Any]) -> None:
    """Raises, in a kernel's words, where not each dimension is given a size."""
    for what, given in sizes.items():
        if isinstance(given, int) or (n := len(given)) == ndim:
            continue
        if name == "thnn_conv2d":
            raise RuntimeError(f"2D {what} expected")
        if name.startswith("slow_conv_dilated"):
            told = f"{_DILATED.get(what, 'kernel sizes')} length should be {ndim}"
            raise RuntimeError(f"{told}, but got {n}")
        raise RuntimeError(f"It is expected {what} equals to {ndim}, but got size {n}")


def _convolution(name: str, ndim: int, transposed: bool, *last: str) -> None:
    options = ("bias", "stride", "padding", *last)

    def convolve(
        input: Tensor,
        weight: Tensor,
        kernel_size: Any,
        *given: Any,
        **named: Any,
    ) -> Tensor:
        if len(given) > len(options):
            raise TypeError(f"{name}() was given too many arguments")
        named |= zip(options, given, strict=False)
        sizes = {key: value for key, value in named.items() if key != "bias"}
        _check_lengths(name, ndim, {"kernel_size": kernel_size, **sizes})
        size = [kernel_size] * ndim if isinstance(kernel_size, int) else kernel_size
        if tuple(size) != tuple(weight.shape[2:]):
            raise RuntimeError(
                f"{name}: kernel_size {list(size)} is not that of the weight, "
                f"{list(weight.shape[2:])}"
            )
        kind = f"conv_transpose{ndim}d" if transposed else f"conv{ndim}d"
        return namespace("torch")[kind](input, weight, **named)

    convolve.__name__ = convolve.__qualname__ = name
    convolve.__doc__ = f"A convolution of {ndim} dimensions; the size is the weight's."
    _aten(convolve)


_convolution("thnn_conv2d", 2, False)
_convolution("slow_conv3d", 3, False)
_convolution("conv_depthwise3d", 3, False, "dilation")
for _n in (2, 3):
    _convolution(f"slow_conv_dilated{_n}d", _n, False, "dilation")
    _convolution(f"slow_conv_transpose{_n}d", _n, True, "output_padding", "dilation")
