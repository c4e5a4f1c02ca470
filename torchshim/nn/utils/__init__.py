"""Helpers for parameters and their gradients, as `torch.nn.utils`."""

from torchshim.nn.utils import parametrizations as parametrizations
from torchshim.nn.utils import parametrize as parametrize
from torchshim.nn.utils import rnn as rnn
from torchshim.nn.utils import stateless as stateless
from torchshim.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from torchshim.nn.utils.convert_parameters import (
    parameters_to_vector,
    vector_to_parameters,
)
from torchshim.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from torchshim.nn.utils.init import skip_init
from torchshim.nn.utils.memory_format import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
)
from torchshim.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from torchshim.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
