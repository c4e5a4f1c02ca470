"""Linear layers with weights of integers, whose inputs are rounded as they come."""

from __future__ import annotations

import importlib
from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn.qat import dynamic as nnqatd
from torchshim.ao.nn.quantized.modules import linear
from torchshim.ao.nn.quantized.modules.utils import _quantize_weight
from torchshim.ops import quantized as ops

__all__ = ["Linear"]

_NO_DTYPE = "Unsupported dtype on dynamic quantized linear!"
_FLOAT_MODULES = [
    nn.Linear,
    nn.modules.linear.NonDynamicallyQuantizableLinear,
    nni.LinearReLU,
    nnqatd.Linear,
]


class Linear(linear.Linear):
    """A linear layer of numbers with a quantized weight, or one of halves.

    >>> import torchshim as torch
    >>> m = Linear(20, 30)
    >>> m(torch.randn(128, 20)).shape
    torch.Size([128, 30])
    """

    _version = 4

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version: int | None = 4

    def forward(self, x: Any) -> Any:
        packed, dtype = self._packed_params._packed_params, self._packed_params.dtype
        if dtype == torchshim.qint8:
            # Layers of older states use all codes of the input.
            reduced = self.version is not None and self.version >= 4
            made = ops.linear_dynamic(x, packed, reduce_range=reduced)
        elif dtype == torchshim.float16:
            made = ops.linear_dynamic_fp16(x, packed)
        else:
            raise RuntimeError(_NO_DTYPE)
        return made.to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        dtype = self._packed_params.dtype
        text = (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={dtype}"
        )
        if dtype == torchshim.qint8:
            text += f", qscheme={self.weight().qscheme()}"
        return text

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a qconfig, or trained so."""
        if type(mod) not in _FLOAT_MODULES:
            raise AssertionError(
                "nn.quantized.dynamic.Linear.from_float only works for one of"
                f"{[kind.__name__ for kind in _FLOAT_MODULES]}, got {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if type(mod) is nni.LinearReLU:
            mod = mod[0]
        observer = weight_observer(mod.qconfig)
        dtype = observer.dtype
        if dtype not in (torchshim.qint8, torchshim.float16):
            raise AssertionError(
                "The only supported dtypes for dynamic quantized linear are qint8 and "
                f"float16, got: {dtype}"
            )
        observer(mod.weight)
        weight = mod.weight.float()
        if dtype == torchshim.qint8:
            weight = _quantize_weight(weight, observer)
        made = cls(mod.in_features, mod.out_features, dtype=dtype)
        made.set_weight_bias(weight, mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:
        """The layer that computes with integers what a reference layer means."""
        sizes = ref_qlinear.in_features, ref_qlinear.out_features
        made = cls(*sizes, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made


def weight_observer(qconfig: Any) -> Any:
    """The observer of weights of a qconfig, or the usual one."""
    if qconfig is None or qconfig.weight is None:
        settings = importlib.import_module("torchshim.ao.quantization.qconfig")
        qconfig = settings.default_dynamic_qconfig
    return qconfig.weight()
