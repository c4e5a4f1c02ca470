"""Convolutions and ReLU of integers."""

from __future__ import annotations

from typing import Any

from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import quantized as nnq
from torchshim.ao.nn.intrinsic import qat as nniqat
from torchshim.ao.nn.quantized.modules.conv import _ConvNd, fold_norm

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d"]


class _ConvReLU(_ConvNd):
    """Stands before a convolution of integers."""

    # The fused layers that are trained, and those of floating point, with a norm.
    _normalized: Any
    _reference: Any

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for fused ones that were observed, or trained so."""
        if type(mod) is cls._normalized:
            if mod.bn.running_var is None or mod.bn.running_mean is None:
                raise AssertionError(
                    "mod.bn.running_var and mod.bn.running_mean must not be None"
                )
            fold_norm(mod)
        return super().from_float(mod, use_precomputed_fake_quant)

    @classmethod
    def from_reference(
        cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that fused reference layers mean."""
        if type(ref_qconv) is cls._reference:
            raise AssertionError(
                f"BatchNorm{cls._dims}d should be fused into Conv{cls._dims}d before "
                "converting to reference module"
            )
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvReLU1d(_ConvReLU, nnq.Conv1d):
    """A `Conv1d` and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.ConvReLU1d
    _operator = "conv1d_relu"
    _normalized: Any = nniqat.ConvBnReLU1d
    _reference: Any = nni.ConvBnReLU1d


class ConvReLU2d(_ConvReLU, nnq.Conv2d):
    """A `Conv2d` and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.ConvReLU2d
    _operator = "conv2d_relu"
    _normalized: Any = nniqat.ConvBnReLU2d
    _reference: Any = nni.ConvBnReLU2d


class ConvReLU3d(_ConvReLU, nnq.Conv3d):
    """A `Conv3d` and a ReLU of integers."""

    _FLOAT_MODULE: Any = nni.ConvReLU3d
    _operator = "conv3d_relu"
    _normalized: Any = nniqat.ConvBnReLU3d
    _reference: Any = nni.ConvBnReLU3d
