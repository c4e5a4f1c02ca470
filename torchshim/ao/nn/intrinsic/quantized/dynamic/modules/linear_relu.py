"""A linear layer with a weight of integers, and a ReLU."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn.quantized import dynamic as nnqd
from torchshim.ops import quantized as ops

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """As `torch.ao.nn.quantized.dynamic.Linear`, and a ReLU."""

    _FLOAT_MODULE: Any = nni.LinearReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Any) -> Any:
        packed, dtype = self._packed_params._packed_params, self._packed_params.dtype
        if dtype == torchshim.qint8:
            made = ops.linear_relu_dynamic(x, packed, reduce_range=True)
        elif dtype == torchshim.float16:
            made = ops.linear_relu_dynamic_fp16(x, packed)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear relu!")
        return made.to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Any) -> Any:
        """The layer that fused reference layers mean."""
        return super().from_reference(ref_qlinear_relu[0])
