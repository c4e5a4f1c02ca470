"""Activations of `nn.functional` that take `inplace=`, choose a dimension or draw."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from torchshim._core import dtypes, host_random
from torchshim._core.random import engine_of
from torchshim._core.threefry import Threefry
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions.creation import empty_like, placed, zeros_like
from torchshim._functions.draws import Draw, drawn
from torchshim._functions.random_examples import mapping
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The positive part of each element.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.relu.html
    """
    return fns.relu_(input) if inplace else fns.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, moved into [0, 6].

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.relu6.html
    """
    return (fns.hardtanh_ if inplace else fns.hardtanh)(input, 0, 6)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """Each element, the negative ones times a slope.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.leaky_relu.html
    """
    return (fns.leaky_relu_ if inplace else fns.leaky_relu)(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, the negative ones as `alpha * (exp(x) - 1)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.elu.html
    """
    return (fns.elu_ if inplace else fns.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu`, scaled so that mean and variance keep through layers.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.selu.html
    """
    return (fns.selu_ if inplace else fns.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, the negative ones as `alpha * (exp(x / alpha) - 1)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.celu.html
    """
    return (fns.celu_ if inplace else fns.celu)(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.silu.html
    """
    return (fns.silu_ if inplace else fns.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the hyperbolic tangent of its softplus.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.mish.html
    """
    return (fns.mish_ if inplace else fns.mish)(input)


def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
) -> Tensor:
    """Each element, moved into an interval.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardtanh.html
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (fns.hardtanh_ if inplace else fns.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`x / 6 + 1 / 2`, moved into [0, 1].

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardsigmoid.html
    """
    return (fns.hardsigmoid_ if inplace else fns.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its `hardsigmoid`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardswish.html
    """
    return (fns.hardswish_ if inplace else fns.hardswish)(input)


def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """Each element above a threshold, a fixed value instead of the others.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.threshold.html
    """
    return (fns.threshold_ if inplace else fns.threshold)(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half of a dimension times the sigmoid of the other half.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.glu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.glu(torch.tensor([2.0, 0.0]))
    tensor([1.])
    """
    if input.dim() == 0:
        raise RuntimeError(
            "glu does not support scalars because halving size must be even"
        )
    return fns.glu(input, dim)


def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.softsign.html
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.tanhshrink.html
    """
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.sigmoid.html
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each element.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.tanh.html
    """
    return input.tanh()


# Leaky slopes drawn at random --------------------------------------------------------


def _noise(
    input: Tensor, lower: float, upper: float, training: bool, generator: Any
) -> Tensor:
    shape = tuple(input.shape)
    kind = dtypes.array_dtype(input.dtype)
    noise = np.zeros(shape, np.float64)
    if training:
        engine = engine_of(generator, "rrelu", input.device)
        if isinstance(engine, Threefry):
            draw = Draw("uniform", (lower, upper))
            slopes = drawn(draw, shape, input.dtype, input.device, engine)
            return fns.mul(slopes, fns.le(input.detach(), 0))
        low = np.asarray(input.detach()._host()).astype(np.float64) <= 0
        # A number is drawn for each element that is not positive.
        numbers = host_random.unit64(engine, int(low.sum()))
        noise[low] = numbers * (upper - lower) + lower
    else:
        noise[...] = (lower + upper) / 2
    return placed(noise.astype(kind), input.device)


def _rrelu(
    input: Tensor,
    lower: float,
    upper: float,
    training: bool,
    generator: Any,
    inplace: bool,
) -> Tensor:
    if mapping():
        name = "rrelu_" if inplace else "rrelu"
        raise RuntimeError(
            f"vmap: we do not yet support aten::{name}. Please file an issue"
        )
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound"
        )
    if not input.dtype.is_floating_point:
        kernel = "rrelu_with_noise_out" if training else "leaky_relu"
        raise NotImplementedError(
            f"\"{kernel}_cpu\" not implemented for '{input.dtype.scalar_name}'"
        )
    noise = _noise(input, lower, upper, training, generator)
    op = fns.rrelu_with_noise_ if inplace else fns.rrelu_with_noise
    return op(input, noise)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`leaky_relu` with slopes drawn at random; their middle when not training.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.rrelu.html
    """
    try:
        return _rrelu(input, lower, upper, training, None, inplace)
    except (AttributeError, TypeError):
        refuse("nn", "rrelu", (input, lower, upper, training), {})
        raise


@public(name="rrelu")
def _torch_rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """As `nn.functional.rrelu`."""
    return _rrelu(input, lower, upper, training, generator, False)


@public(namespaces=("torch", "nn.functional"))
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """As `nn.functional.rrelu`, in place."""
    return _rrelu(input, lower, upper, training, generator, True)


for _name in ("selu", "celu"):
    for _each in (_name, f"{_name}_"):
        public(getattr(fns, _each), name=_each)


# Softmax -----------------------------------------------------------------------------


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    # One more: the frame of the wrapper that lets classes override the function.
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to "
        "include dim=X as an argument.",
        # A layer's call (5) has a frame less than in PyTorch.
        stacklevel=min(stacklevel, 4) + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Exponentials along a dimension, divided by their sum.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.softmax.html

    >>> import torchshim as torch
    >>> torch.nn.functional.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    if dtype is None:
        return input.softmax(dim)
    return input.softmax(dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of `softmax`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.log_softmax.html
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    if dtype is None:
        return input.log_softmax(dim)
    return input.log_softmax(dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`softmax` of the negative.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.softmin.html
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    if dtype is None:
        return (-input).softmax(dim)
    return (-input).softmax(dim, dtype)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Tensor:
    """A sample from the classes of unnormalised log-probabilities, relaxed.

    `hard`: one-hot, with the gradient of the relaxed sample.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.gumbel_softmax.html
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -empty_like(logits).exponential_().log()
    y_soft = fns.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return y_soft
    index = y_soft.max(dim, keepdim=True)[1]
    y_hard = zeros_like(logits).scatter_(dim, index, 1.0)
    return y_hard - y_soft.detach() + y_soft
