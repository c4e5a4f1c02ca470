"""Sequences of layers that quantization takes for one.

`torch.ao.quantization.fuse_modules` puts them in the place of their parts.
https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-nn-intrinsic
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim.nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    LeakyReLU,
    Linear,
    ReLU,
    Sequential,
    Tanh,
)
from torchshim.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvAdd2d",
    "ConvAddReLU2d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearLeakyReLU",
    "LinearReLU",
    "LinearTanh",
]


class _FusedModule(Sequential):
    """What all layers that stand for several have in common."""

    # The types of the parts.
    _parts: tuple[type, ...] = ()

    def _check(self, given: Sequence[Any], wanted: Sequence[type]) -> None:
        """AssertionError if these are not layers of these types."""
        types = [type_before_parametrizations(each) for each in given]
        if types != list(wanted):
            *names, last = [each.__name__ for each in types]
            comma = "," if len(names) > 1 else ""
            raise AssertionError(
                "Incorrect types for input modules: "
                f"{', '.join(names)}{comma} and {last}"
            )


class _ConvReLU(_FusedModule):
    def __init__(self, conv: Any, relu: Any) -> None:
        self._check((conv, relu), self._parts)
        super().__init__(conv, relu)


class ConvReLU1d(_ConvReLU):
    """A `Conv1d` and a `ReLU`."""

    _parts = Conv1d, ReLU


class ConvReLU2d(_ConvReLU):
    """A `Conv2d` and a `ReLU`.

    >>> import torchshim as torch
    >>> m = ConvReLU2d(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU())
    >>> m(torch.zeros(1, 1, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _parts = Conv2d, ReLU


class ConvReLU3d(_ConvReLU):
    """A `Conv3d` and a `ReLU`."""

    _parts = Conv3d, ReLU


class _ConvBn(_FusedModule):
    def __init__(self, conv: Any, bn: Any) -> None:
        self._check((conv, bn), self._parts)
        super().__init__(conv, bn)


class ConvBn1d(_ConvBn):
    """A `Conv1d` and a `BatchNorm1d`."""

    _parts = Conv1d, BatchNorm1d


class ConvBn2d(_ConvBn):
    """A `Conv2d` and a `BatchNorm2d`."""

    _parts = Conv2d, BatchNorm2d


class ConvBn3d(_ConvBn):
    """A `Conv3d` and a `BatchNorm3d`."""

    _parts = Conv3d, BatchNorm3d


class _ConvBnReLU(_FusedModule):
    def __init__(self, conv: Any, bn: Any, relu: Any) -> None:
        self._check((conv, bn, relu), self._parts)
        super().__init__(conv, bn, relu)


class ConvBnReLU1d(_ConvBnReLU):
    """A `Conv1d`, a `BatchNorm1d` and a `ReLU`."""

    _parts = Conv1d, BatchNorm1d, ReLU


class ConvBnReLU2d(_ConvBnReLU):
    """A `Conv2d`, a `BatchNorm2d` and a `ReLU`."""

    _parts = Conv2d, BatchNorm2d, ReLU


class ConvBnReLU3d(_ConvBnReLU):
    """A `Conv3d`, a `BatchNorm3d` and a `ReLU`."""

    _parts = Conv3d, BatchNorm3d, ReLU


class _BNReLU(_FusedModule):
    def __init__(self, batch_norm: Any, relu: Any) -> None:
        self._check((batch_norm, relu), self._parts)
        super().__init__(batch_norm, relu)


class BNReLU2d(_BNReLU):
    """A `BatchNorm2d` and a `ReLU`."""

    _parts = BatchNorm2d, ReLU


class BNReLU3d(_BNReLU):
    """A `BatchNorm3d` and a `ReLU`."""

    _parts = BatchNorm3d, ReLU


class LinearReLU(_FusedModule):
    """A `Linear` layer and a `ReLU`."""

    def __init__(self, linear: Any, relu: Any) -> None:
        self._check((linear, relu), (Linear, ReLU))
        super().__init__(linear, relu)


class LinearBn1d(_FusedModule):
    """A `Linear` layer and a `BatchNorm1d`."""

    def __init__(self, linear: Any, bn: Any) -> None:
        self._check((linear, bn), (Linear, BatchNorm1d))
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """A `Linear` layer and a `LeakyReLU`."""

    def __init__(self, linear: Any, leaky_relu: Any) -> None:
        self._check((linear, leaky_relu), (Linear, LeakyReLU))
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """A `Linear` layer and a `Tanh`."""

    def __init__(self, linear: Any, tanh: Any) -> None:
        self._check((linear, tanh), (Linear, Tanh))
        super().__init__(linear, tanh)


class ConvAdd2d(_FusedModule):
    """A `Conv2d` whose result is added to a second operand by `add`."""

    def __init__(self, conv: Any, add: Any) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """As `ConvAdd2d`, and a `ReLU`."""

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.relu(self.add(self[0](x1), x2))
