"""What programs that extend `nn.Module` ask PyTorch's C++ side."""

from __future__ import annotations

import importlib
from typing import Any

from torchshim._C._native import functions_of
from torchshim._derived import namespace

__all__ = ["_parse_to"]

# What generated code calls by the names of `nn.functional`, or not at all.
_OF_THE_DISPATCHER = frozenset(
    """
    _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool2d adaptive_max_pool3d binary_cross_entropy col2im conv_depthwise3d
    cross_entropy_loss elu flatten_dense_tensors gelu_ glu hardsigmoid hardsigmoid_
    hardswish hardswish_ hardtanh huber_loss im2col l1_loss leaky_relu
    max_pool2d_with_indices max_pool3d_with_indices mish mish_ mse_loss
    multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd pad
    pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6 relu6_
    replication_pad1d replication_pad2d replication_pad3d silu silu_ slow_conv3d
    slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d
    smooth_l1_loss soft_margin_loss thnn_conv2d unflatten_dense_tensors
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """.split()
)


def _of_the_dispatcher(name: str) -> Any:
    if name not in _OF_THE_DISPATCHER:
        return None
    own = namespace("_C._nn").get(name)
    return own or importlib.import_module("torchshim.ops").function_of(name)


__getattr__ = functions_of(__name__, _of_the_dispatcher)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What a call of ``Module.to`` asks for: device, dtype, non_blocking, format."""
    reading = importlib.import_module("torchshim.nn.modules._parse_to")
    return reading.parse_to(*args, **kwargs)
