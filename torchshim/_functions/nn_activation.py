"""Activations of `nn.functional` that take `inplace=`, choose a dimension or draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core import dtypes, host_random
from torchshim._core.layout import contiguous_format
from torchshim._core.placement import platform
from torchshim._core.random import engine_of
from torchshim._core.threefry import Threefry
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions._arguments import only_bools
from torchshim._functions.creation import empty_like, placed, zeros_like
from torchshim._functions.draws import Draw, drawn
from torchshim._functions.random_examples import mapping
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The positive part of each element.

    Any real dtype; NaN stays. The gradient at 0 is 0.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.relu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.relu(torch.tensor([-2.0, 0.0, float("nan"), 3.0]))
    tensor([0., 0., nan, 3.])
    >>> torch.nn.functional.relu(torch.tensor([-2, 3]))
    tensor([0, 3])
    """
    return fns.relu_(input) if inplace else fns.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, moved into [0, 6].

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.relu6.html

    >>> import torchshim as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 5.0, 7.0]))
    tensor([0., 5., 6.])
    """
    return (fns.hardtanh_ if inplace else fns.hardtanh)(input, 0, 6)


def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> Tensor:
    """Each element, the negative ones times a slope.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.leaky_relu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-100.0, 100.0]))
    tensor([ -1., 100.])
    """
    return (fns.leaky_relu_ if inplace else fns.leaky_relu)(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, the negative ones as `alpha * (exp(x) - 1)`.

    Floating-point dtypes only. By Clevert et al., https://arxiv.org/abs/1511.07289

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.elu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.elu(torch.tensor([float("-inf"), 0.0, 2.0]), alpha=3.0)
    tensor([-3.,  0.,  2.])
    """
    return (fns.elu_ if inplace else fns.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu`, scaled so that mean and variance keep through layers.

    By Klambauer et al., https://arxiv.org/abs/1706.02515

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.selu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.selu(torch.tensor([float("-inf"), 0.0, 1.0]))
    tensor([-1.7581,  0.0000,  1.0507])
    """
    return (fns.selu_ if inplace else fns.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, the negative ones as `alpha * (exp(x / alpha) - 1)`.

    RuntimeError if `alpha` is 0. By Barron, https://arxiv.org/abs/1704.07483

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.celu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.celu(torch.tensor([float("-inf"), 0.0, 2.0]), alpha=3.0)
    tensor([-3.,  0.,  2.])
    """
    return (fns.celu_ if inplace else fns.celu)(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.silu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 0.0, 100.0]))
    tensor([ -0.2689,   0.0000, 100.0000])
    """
    return (fns.silu_ if inplace else fns.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the hyperbolic tangent of its softplus.

    By Misra, https://arxiv.org/abs/1908.08681

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.mish.html

    >>> import torchshim as torch
    >>> torch.nn.functional.mish(torch.tensor([-1.0, 0.0, 100.0]))
    tensor([ -0.3034,   0.0000, 100.0000])
    """
    return (fns.mish_ if inplace else fns.mish)(input)


def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
) -> Tensor:
    """Each element, moved into an interval.

    ValueError if `min_val` is above `max_val`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardtanh.html

    >>> import torchshim as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 3.0]), 0.0, 2.0)
    tensor([0.0000, 0.5000, 2.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (fns.hardtanh_ if inplace else fns.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`x / 6 + 1 / 2`, moved into [0, 1].

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardsigmoid.html

    >>> import torchshim as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5, 4.0]))
    tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """
    return (fns.hardsigmoid_ if inplace else fns.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its `hardsigmoid`.

    By Howard et al., https://arxiv.org/abs/1905.02244

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.hardswish.html

    >>> import torchshim as torch
    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """
    return (fns.hardswish_ if inplace else fns.hardswish)(input)


def threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    """Each element above a threshold, a fixed value instead of the others.

    An element equal to the threshold is replaced, too.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.threshold.html

    >>> import torchshim as torch
    >>> torch.nn.functional.threshold(torch.tensor([0.0, 1.0, 2.0]), 1.0, -5.0)
    tensor([-5., -5.,  2.])
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

    >>> import torchshim as torch
    >>> torch.nn.functional.softsign(torch.tensor([-3.0, 0.0, 1.0]))
    tensor([-0.7500,  0.0000,  0.5000])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.tanhshrink.html

    >>> import torchshim as torch
    >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 0.0, 20.0]))
    tensor([-0.2384,  0.0000, 19.0000])
    """
    return input - input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`.

    The result of integers is of the default dtype.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.sigmoid.html

    >>> import torchshim as torch
    >>> torch.nn.functional.sigmoid(torch.tensor([-200, 0, 200]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each element.

    The result of integers is of the default dtype.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.tanh.html

    >>> import torchshim as torch
    >>> torch.nn.functional.tanh(torch.tensor([-200, 0, 200]))
    tensor([-1.,  0.,  1.])
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
        if isinstance(engine, Threefry) or input.is_meta:
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
    for side, bound in (("lower", lower), ("upper", upper)):
        if not (inplace or math.isfinite(bound)):  # PyTorch checks the one form only
            raise RuntimeError(f"rrelu: {side} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound"
        )
    small = training and input.dtype is dtypes.float16
    if not input.dtype.is_floating_point or (small and platform() == "cpu"):
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

    RuntimeError if `lower` is above `upper`. By Xu et al.,
    https://arxiv.org/abs/1505.00853

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.rrelu.html

    >>> import torchshim as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    >>> generator = torch.manual_seed(0)
    >>> x = torch.tensor([-1.0, -1.0, 2.0])
    >>> torch.nn.functional.rrelu(x, 0.25, 0.75, training=True)
    tensor([-0.7350, -0.6039,  2.0000])
    """
    try:
        only_bools(training)
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
    """As `nn.functional.rrelu`, with a generator to draw from.

    >>> import torchshim as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> a = torch.rrelu(x, training=True, generator=torch.Generator().manual_seed(1))
    >>> b = torch.rrelu(x, training=True, generator=torch.Generator().manual_seed(1))
    >>> torch.equal(a, b)
    True
    """
    only_bools(training)
    return _rrelu(input, lower, upper, training, generator, False)


@public(namespaces=("torch", "nn.functional"))
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """As `nn.functional.rrelu`, in place.

    >>> import torchshim as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.rrelu_(x, 0.25, 0.75) is x, x
    (True, tensor([-0.5000,  2.0000]))
    """
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

    It stays finite where the logarithm of `softmax` would not. `dtype` is cast to
    first.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.log_softmax.html

    >>> import torchshim as torch
    >>> x = torch.tensor([0.0, 1000.0])
    >>> torch.nn.functional.log_softmax(x, 0)
    tensor([-1000.,     0.])
    >>> torch.nn.functional.softmax(x, 0).log()
    tensor([-inf, 0.])
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

    >>> import torchshim as torch
    >>> torch.nn.functional.softmin(torch.tensor([0.0, 0.0, 200.0]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
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

    Along `dim` the result adds up to 1. `tau`, the temperature: the lower, the closer
    to one-hot. `hard`: one-hot, with the gradient of the relaxed sample. By Jang et
    al., https://arxiv.org/abs/1611.01144

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.gumbel_softmax.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.gumbel_softmax(torch.zeros(3))
    tensor([0.1047, 0.2984, 0.5969])
    >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    # Drawn in the order of the elements, whatever the strides are.
    form = contiguous_format
    gumbels = -empty_like(logits, memory_format=form).exponential_().log()
    y_soft = fns.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return y_soft
    index = y_soft.max(dim, keepdim=True)[1]
    y_hard = zeros_like(logits, memory_format=form).scatter_(dim, index, 1.0)
    return y_hard - y_soft.detach() + y_soft
