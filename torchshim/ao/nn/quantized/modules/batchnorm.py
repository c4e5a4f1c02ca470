"""Batch normalization of integers, by running statistics."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ops import quantized as ops

__all__ = ["BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """What both share; `scale` and `zero_point` are those of the result."""

    _NNI_BN_RELU_MODULE: Any
    # Dimensions of inputs, and the operator.
    _rank: int
    _operator: str

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__(num_features, eps, momentum, True, True, **made)
        self.register_buffer("scale", torchshim.tensor(1.0, **made))
        self.register_buffer("zero_point", torchshim.tensor(0, **made))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != self._rank:
            raise ValueError("Input shape must be `(N, C, H, W)`!")

    def forward(self, input: Any) -> Any:
        running = self.running_mean, self.running_var, self.eps
        run = getattr(ops, self._operator)
        scheme = self.scale, self.zero_point
        return run(input, self.weight, self.bias, *running, *scheme)

    def _adopt(self, bn: Any, scale: Any, zero_point: Any) -> Any:
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(self, name, getattr(bn, name))
        self.scale, self.zero_point = scale, zero_point
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        scheme = mod.activation_post_process.calculate_qparams()
        if type(mod) is cls._NNI_BN_RELU_MODULE:
            mod = mod[0]
        return cls(mod.num_features, mod.eps)._adopt(mod, *scheme)

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer with the parameters of one of floating point."""
        made = {"device": bn.weight.device, "dtype": bn.weight.dtype}
        layer = cls(bn.num_features, bn.eps, bn.momentum, **made)
        return layer._adopt(bn, output_scale, output_zero_point)


class BatchNorm2d(_BatchNorm):
    """A batch normalization of quantized images (N, C, H, W)."""

    _rank = 4
    _operator = "batch_norm2d"
    _NNI_BN_RELU_MODULE: Any = nni.BNReLU2d


class BatchNorm3d(_BatchNorm):
    """A batch normalization of quantized volumes (N, C, D, H, W)."""

    _rank = 5
    _operator = "batch_norm3d"
    _NNI_BN_RELU_MODULE: Any = nni.BNReLU3d
