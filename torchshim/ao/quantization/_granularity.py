"""Which elements have a scale of their own, and observers that are told it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from torchshim import nn
from torchshim._errors import Unsupported
from torchshim.ao.quantization._observer_base import _HOME, _with_args


class MappingType(Enum):
    """Whether zero is in the middle of the codes."""

    __module__ = _HOME

    SYMMETRIC = auto()
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """What kind of number a zero point is."""

    __module__ = _HOME

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Names of integer dtypes of less than eight bits."""

    __module__ = _HOME

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """Which elements share a scale."""

    __module__ = _HOME


@dataclass(frozen=True)
class PerBlock(Granularity):
    """The elements of each block of this shape."""

    __module__ = _HOME

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All elements."""

    __module__ = _HOME


@dataclass(frozen=True)
class PerAxis(Granularity):
    """The elements with the same index in this dimension."""

    __module__ = _HOME

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """So many elements that follow each other in a row."""

    __module__ = _HOME

    group_size: int


class PerRow(Granularity):
    """The elements of a row: the last dimension."""

    __module__ = _HOME


class PerToken(Granularity):
    """The elements of a token: the last dimension."""

    __module__ = _HOME


def get_block_size(
    input_shape: tuple[int, ...], granularity: Granularity
) -> tuple[int, ...]:
    """The shape of the blocks that share a scale.

    >>> get_block_size((2, 3, 4), PerAxis(1)), get_block_size((2, 3, 4), PerToken())
    ((2, 1, 4), (1, 1, 4))
    """
    if not isinstance(granularity, Granularity):
        raise AssertionError(
            "Please provide an instance of Granularity, not subclass of it"
        )
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        sizes = list(input_shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, (PerRow, PerToken)):
        return (*[1] * (len(input_shape) - 1), input_shape[-1])
    if isinstance(granularity, PerGroup):
        if len(input_shape) != 2:
            raise AssertionError(
                "Expecting input shape dim to be 2 for per group quantization, "
                f"gotinput shape: {input_shape}"
            )
        return 1, granularity.group_size
    raise ValueError(f"Unsupported Granularity: {granularity}")


get_block_size.__module__ = _HOME


class AffineQuantizedObserverBase(ABC, nn.Module):
    """The base of observers of elements in blocks of any shape.

    A subclass has `forward`, which notes, and `calculate_qparams`.
    """

    __module__ = _HOME

    with_args = classmethod(_with_args)

    def __init__(
        self,
        mapping_type: MappingType,
        target_dtype: Any,
        granularity: Granularity,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        scale_dtype: Any = None,
        zero_point_dtype: Any = None,
        preserve_zero: bool = True,
        zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type = mapping_type
        self.target_dtype = target_dtype
        self.granularity = granularity
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.eps = eps
        self.scale_dtype = scale_dtype
        self.zero_point_dtype = zero_point_dtype
        self.preserve_zero = preserve_zero
        self.zero_point_domain = zero_point_domain
        self.block_size = None
        self.original_dtype = None

    @abstractmethod
    def forward(self, input: Any) -> Any:
        """Notes the elements, and hands them on."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scales and zero points for what was seen."""

    def convert(self, model: Any, observer_node: Any) -> None:
        """Refused: quantized nodes of exported graphs."""
        raise Unsupported(
            "torch.ao.quantization.AffineQuantizedObserverBase.convert is not "
            "supported: it is for exported graphs"
        )
