"""Helpers for parameters and their gradients, as `torch.nn.utils`."""

from torchshim.nn.utils import rnn as rnn
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

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]
