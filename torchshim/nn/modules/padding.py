"""Paddings."""

from __future__ import annotations

from collections.abc import Sequence as Sequence
from typing import Any

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.common_types import _size_2_t as _size_2_t
from torchshim.nn.common_types import _size_4_t as _size_4_t
from torchshim.nn.common_types import _size_6_t as _size_6_t
from torchshim.nn.modules._own import of_each
from torchshim.nn.modules.module import Module
from torchshim.nn.modules.utils import _ntuple
from torchshim.nn.modules.utils import _pair as _pair
from torchshim.nn.modules.utils import _quadruple as _quadruple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """`padding`: one number, or two for each dimension, the last one first."""

    __constants__ = ["padding"]  # noqa: RUF012

    _dims: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    @of_each
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        unbatched = self._dims + 1
        if input.ndim not in (unbatched, unbatched + 1):
            raise ValueError(
                f"expected {unbatched}D or {unbatched + 1}D input (got {input.ndim}D "
                "input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads with the other end. Follows ``torch.nn.CircularPad1d``.

    >>> import torchshim as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads images with the other side."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads volumes with the other side."""

    _dims = 3


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]  # noqa: RUF012

    @of_each
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads with one number. Follows ``torch.nn.ConstantPad1d``.

    >>> import torchshim as torch
    >>> torch.nn.ConstantPad1d((1, 0), 3.5)(torch.tensor([[1.0]]))
    tensor([[3.5000, 1.0000]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads images with one number."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads volumes with one number."""

    _dims = 3


class _ReflectionPadNd(_PadNd):
    pass


class ReflectionPad1d(_ReflectionPadNd):
    """Pads with the mirror image, without the edge. Follows ``nn.ReflectionPad1d``.

    >>> import torchshim as torch
    >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_ReflectionPadNd):
    """Pads images with their mirror image."""

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_ReflectionPadNd):
    """Pads volumes with their mirror image."""

    _dims = 3
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    pass


class ReplicationPad1d(_ReplicationPadNd):
    """Pads with the edge. Follows ``torch.nn.ReplicationPad1d``.

    >>> import torchshim as torch
    >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 2., 2.]])
    """

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_ReplicationPadNd):
    """Pads images with their edges."""

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_ReplicationPadNd):
    """Pads volumes with their edges."""

    _dims = 3
    _mode = "replicate"


class _Zero:
    @of_each
    def __init__(self: Any, padding: Any) -> None:
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    def extra_repr(self: Any) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Zero, ConstantPad1d):
    """Pads with zeros. Follows ``torch.nn.ZeroPad1d``.

    >>> import torchshim as torch
    >>> torch.nn.ZeroPad1d(1)(torch.tensor([[1.0]]))
    tensor([[0., 1., 0.]])
    """


class ZeroPad2d(_Zero, ConstantPad2d):
    """Pads images with zeros."""


class ZeroPad3d(_Zero, ConstantPad3d):
    """Pads volumes with zeros."""
