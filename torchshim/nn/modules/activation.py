"""Activations."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init as _init
from torchshim.nn.init import constant_ as constant_
from torchshim.nn.init import xavier_normal_ as xavier_normal_
from torchshim.nn.init import xavier_uniform_ as xavier_uniform_
from torchshim.nn.modules._own import of_each
from torchshim.nn.modules.linear import (
    NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear,
)
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.modules.multihead import MultiheadAttention
from torchshim.nn.parameter import Parameter as Parameter


def _check_arg_device(x: Tensor | None) -> bool:
    return x is None or x.device.type in ("cpu", "cuda", "privateuseone")


def _arg_requires_grad(x: Tensor | None) -> bool:
    return x is not None and x.requires_grad


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _InPlace(Module):
    """An activation with no option but `inplace`."""

    __constants__ = ["inplace"]  # noqa: RUF012

    @of_each
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _with_inplace(text: str, module: Any) -> str:
    return f"{text}, inplace=True" if module.inplace else text


class Threshold(Module):
    """Elements up to `threshold` become `value`. Follows ``torch.nn.Threshold``."""

    __constants__ = ["threshold", "value", "inplace"]  # noqa: RUF012

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"threshold={self.threshold}, value={self.value}", self)


class ReLU(_InPlace):
    """``max(0, x)``. Follows ``torch.nn.ReLU``.

    >>> import torchshim as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(Module):
    """A leaky ReLU with random slopes in training. Follows ``torch.nn.RReLU``."""

    __constants__ = ["lower", "upper", "inplace"]  # noqa: RUF012

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"lower={self.lower}, upper={self.upper}", self)


class Hardtanh(Module):
    """Clamps to [min_val, max_val]. Follows ``torch.nn.Hardtanh``."""

    __constants__ = ["min_val", "max_val", "inplace"]  # noqa: RUF012

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, given in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if given is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val "
                f"({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self)


class ReLU6(Hardtanh):
    """Clamps to [0, 6]. Follows ``torch.nn.ReLU6``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    >>> import torchshim as torch
    >>> torch.nn.Sigmoid()(torch.tensor(0.0))
    tensor(0.5000)
    """

    def forward(self, input: Tensor) -> Tensor:
        return torchshim.sigmoid(input)


class Hardsigmoid(_InPlace):
    """A sigmoid of straight lines. Follows ``torch.nn.Hardsigmoid``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return torchshim.tanh(input)


class SiLU(_InPlace):
    """``x * sigmoid(x)``. Follows ``torch.nn.SiLU``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``. Follows ``torch.nn.Mish``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(_InPlace):
    """``x * hardsigmoid(x)``. Follows ``torch.nn.Hardswish``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class _Alpha(Module):
    __constants__ = ["alpha", "inplace"]  # noqa: RUF012

    @of_each
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _with_inplace(f"alpha={self.alpha}", self)


class ELU(_Alpha):
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below. Follows ``torch.nn.ELU``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """An ELU that is smooth for every `alpha`. Follows ``torch.nn.CELU``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """An ELU scaled so that mean and variance stay. Follows ``torch.nn.SELU``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """Half of the input times the sigmoid of the other. Follows ``torch.nn.GLU``."""

    __constants__ = ["dim"]  # noqa: RUF012

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """``x`` times the normal distribution's share below it. Follows ``nn.GELU``."""

    __constants__ = ["approximate"]  # noqa: RUF012

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(Module):
    __constants__ = ["lambd"]  # noqa: RUF012

    @of_each
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """Zero within ±`lambd`, unchanged outside. Follows ``torch.nn.Hardshrink``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Zero within ±`lambd`, closer to zero by it outside. Follows ``nn.Softshrink``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class LeakyReLU(Module):
    """``x`` above 0, ``negative_slope * x`` below. Follows ``torch.nn.LeakyReLU``."""

    __constants__ = ["inplace", "negative_slope"]  # noqa: RUF012

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(f"negative_slope={self.negative_slope}", self)


class LogSigmoid(Module):
    """The logarithm of the sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``. Follows ``torch.nn.Softplus``."""

    __constants__ = ["beta", "threshold"]  # noqa: RUF012

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """A leaky ReLU whose slopes are learnt. Follows ``torch.nn.PReLU``.

    >>> import torchshim as torch
    >>> torch.nn.PReLU()(torch.tensor([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    __constants__ = ["num_parameters"]  # noqa: RUF012

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = new_parameter(num_parameters, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Puts the slopes back to `init`."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    __constants__ = ["dim"]  # noqa: RUF012

    @of_each
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """The softmax of ``-x``. Follows ``torch.nn.Softmin``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Exponentials that add up to 1 along `dim`. Follows ``torch.nn.Softmax``.

    >>> import torchshim as torch
    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax. Follows ``torch.nn.LogSoftmax``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)
