"""Convolutions of integers with a second summand."""

from __future__ import annotations

from typing import Any

from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import quantized as nnq
from torchshim.ops import quantized as ops

__all__ = ["ConvAdd2d", "ConvAddReLU2d"]


class _ConvAdd(nnq.Conv2d):
    _fused: str

    def forward(self, input: Any, extra_input: Any) -> Any:
        run = getattr(ops, self._fused)
        parts = self._packed_params, self.scale, self.zero_point
        return run(self._padded(input), extra_input, *parts)

    @classmethod
    def from_reference(
        cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that fused reference layers mean."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvAdd2d(_ConvAdd):
    """A `Conv2d` and a sum; the engine has to be oneDNN."""

    _FLOAT_MODULE: Any = nni.ConvAdd2d
    _fused = "conv2d_add"


class ConvAddReLU2d(_ConvAdd):
    """A `Conv2d`, a sum and a ReLU; the engine has to be oneDNN."""

    _FLOAT_MODULE: Any = nni.ConvAddReLU2d
    _fused = "conv2d_add_relu"
