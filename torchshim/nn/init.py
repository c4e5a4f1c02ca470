"""Initial values of parameters, as `torch.nn.init`. Nothing here is tracked."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    **dict.fromkeys(
        (
            "linear",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "sigmoid",
        ),
        1,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The gain recommended for a nonlinearity; `param`: the slope of a leaky ReLU.

    ValueError for names that are not known. Follows ``torch.nn.init.calculate_gain``.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _overridable(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function whose handlers get all its arguments by name, the tensor too."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        tensor = given.arguments["tensor"]
        overrides = torchshim.overrides
        if not overrides.has_torch_function_unary(tensor):
            return function(*args, **kwargs)
        given.apply_defaults()
        return overrides.handle_torch_function(wrapped, (tensor,), **given.arguments)

    wrapped.__overrides__ = "torch.nn.init"  # type: ignore[attr-defined]
    return wrapped


# What nothing overrides but the methods of tensors.


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Any:
    with torchshim.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: Any = None
) -> Any:
    with torchshim.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Any:
    with torchshim.no_grad():
        return tensor.fill_(val)


@_overridable
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None
) -> Tensor:
    """Fills with numbers drawn evenly from [a, b). Follows ``torch.nn.init.uniform_``.

    >>> import torchshim as torch
    >>> uniform_(torch.empty(3)).shape
    torch.Size([3])
    """
    return _no_grad_uniform_(tensor, a, b, generator)


@_overridable
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> Tensor:
    """Fills with normally distributed numbers. Follows ``torch.nn.init.normal_``.

    >>> import torchshim as torch
    >>> normal_(torch.empty(3)).shape
    torch.Size([3])
    """
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fills with normally distributed numbers, drawn again until they lie in [a, b].

    Warns where the mean is far outside. Follows ``torch.nn.init.trunc_normal_``.

    >>> import torchshim as torch
    >>> bool((trunc_normal_(torch.empty(99), a=-0.5, b=0.5).abs() <= 0.5).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The "
            "distribution of values may be incorrect.",
            stacklevel=2,
        )
    share = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with torchshim.no_grad():
        if share > 0.3:
            _redraw_outside(tensor, mean, std, a, b, generator)
        else:
            _accept_or_redraw(tensor, mean, std, a, b, generator)
    return tensor


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_outside(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    # The bounds as the tensor's dtype has them.
    low = tensor.new_tensor(a, device="cpu").item()
    high = tensor.new_tensor(b, device="cpu").item()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if outside.is_meta or not outside.any():
            break
        fresh = torchshim.empty_like(result).normal_(mean, std, generator=generator)
        result = torchshim.where(outside, fresh, result)
    if result is not tensor:
        tensor.copy_(result)


def _accept_or_redraw(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    """Rejection sampling, for intervals that normal numbers seldom meet."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    chance = torchshim.empty_like(tensor)

    def rejected(drawn: Any) -> Any:
        density = ((drawn - mean) / std).pow(2).mul(-0.5).sub(peak)
        return chance.uniform_(generator=generator).log() > density

    result = tensor.uniform_(a, b, generator=generator)
    pending = rejected(result)
    while pending.any():
        drawn = torchshim.empty_like(tensor).uniform_(a, b, generator=generator)
        result = torchshim.where(pending, drawn, result)
        pending = pending & rejected(drawn)
    if result is not tensor:
        tensor.copy_(result)


@_overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one number. Follows ``torch.nn.init.constant_``.

    >>> import torchshim as torch
    >>> constant_(torch.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    return _no_grad_fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones.

    >>> import torchshim as torch
    >>> ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros.

    >>> import torchshim as torch
    >>> zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    with torchshim.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity; ValueError for other shapes.

    >>> import torchshim as torch
    >>> eye_(torch.empty(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torchshim.no_grad():
        eye = torchshim.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device)
        tensor.copy_(eye)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a kernel of 1, 2 or 3 dimensions give its input, channel by channel.

    ValueError for other shapes. Follows ``torch.nn.init.dirac_``.

    >>> import torchshim as torch
    >>> dirac_(torch.empty(1, 1, 3)).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.shape
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    each = sizes[0] // groups
    middle = tuple(size // 2 for size in sizes[2:])
    with torchshim.no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(each, sizes[1])):
                tensor[(group * each + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a weight has, and how many outputs each input."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws evenly, with variance ``2 * gain**2 / (fan_in + fan_out)``.

    ValueError below 2 dimensions. Follows ``torch.nn.init.xavier_uniform_``.

    >>> import torchshim as torch
    >>> bool((xavier_uniform_(torch.empty(3, 3)).abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draws normally, with variance ``2 * gain**2 / (fan_in + fan_out)``.

    >>> import torchshim as torch
    >>> xavier_normal_(torch.empty(3, 5)).shape
    torch.Size([3, 5])
    """
    return _no_grad_normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


@_overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws evenly, so that the nonlinearity keeps the variance.

    ValueError for unknown modes and below 2 dimensions. Follows
    ``torch.nn.init.kaiming_uniform_``.

    >>> import torchshim as torch
    >>> kaiming_uniform_(torch.empty(3, 5), nonlinearity="relu").shape
    torch.Size([3, 5])
    """
    if _is_empty(tensor, 4):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Draws normally, so that the nonlinearity keeps the variance.

    >>> import torchshim as torch
    >>> kaiming_normal_(torch.empty(3, 5), mode="fan_out").shape
    torch.Size([3, 5])
    """
    if _is_empty(tensor):
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return _no_grad_normal_(tensor, 0, std, generator)


def _is_empty(tensor: Tensor, stacklevel: int = 3) -> bool:
    empty = 0 in tensor.shape
    if empty:
        warnings.warn(
            "Initializing zero-element tensors is a no-op", stacklevel=stacklevel
        )
    return empty


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Makes the rows (or columns) of a matrix orthogonal, of length `gain`.

    More than 2 dimensions are flattened. Follows ``torch.nn.init.orthogonal_``.

    >>> import torchshim as torch
    >>> w = orthogonal_(torch.empty(2, 2))
    >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    given: Any = tensor
    with torchshim.no_grad():
        drawn = given.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            drawn = drawn.t()
        q, r = torchshim.linalg.qr(drawn)
        # With a positive diagonal of r the decomposition is unique.
        q = q * torchshim.diag(r, 0).sign()
        if rows < columns:
            q = q.t()
        given.view(q.shape).copy_(q)
        given.mul_(gain)
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None
) -> Tensor:
    """Fills a matrix normally, with a share of zeros in each column.

    ValueError for other shapes. Follows ``torch.nn.init.sparse_``.

    >>> import torchshim as torch
    >>> int((sparse_(torch.empty(4, 2), sparsity=0.5) == 0).sum())
    4
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with torchshim.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = torchshim.randperm(rows)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _make_deprecate(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under its old name, which ended without an underscore."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The old name of `{new}`."
    return deprecated


# PyTorch's own helpers, which programs call with all arguments.
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_zero_ = zeros_

uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
