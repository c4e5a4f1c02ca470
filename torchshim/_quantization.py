"""Quantized tensors: their schemes have names; there are no such tensors."""

from __future__ import annotations

from torchshim._errors import refused


class qscheme:
    """How numbers of a quantized tensor stand for others: compared by identity."""

    __module__ = "torch"

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

globals().update(
    refused(
        "torchshim",
        "dequantize empty_quantized int_repr q_per_channel_axis q_per_channel_scales "
        "q_per_channel_zero_points q_scale q_zero_point quantize_per_channel "
        "quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm "
        "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d",
        "quantized tensors are not here; fake_quantize_per_tensor_affine is",
    )
)
