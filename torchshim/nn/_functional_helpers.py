"""What `torch.nn.functional` has besides its public functions.

Libraries call the checks and the halves of functions that give one of two results.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

import torchshim
from torchshim._functions.nn_activation import _get_softmax_dim
from torchshim._functions.nn_normalization import (
    _verify_batch_size,
    _verify_spatial_size,
)
from torchshim._functions.nn_unpooling import unpooled_size
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.utils import _list_with_default, _pair, _single, _triple

__all__ = [
    "_adaptive_max_pool1d",
    "_adaptive_max_pool2d",
    "_adaptive_max_pool3d",
    "_check_key_padding_mask",
    "_check_unpool_output_size",
    "_enum_list_as_int_list",
    "_expand_single_value",
    "_fractional_max_pool2d",
    "_fractional_max_pool3d",
    "_get_softmax_dim",
    "_is_integer",
    "_list_or_empty",
    "_list_with_default",
    "_max_pool1d",
    "_max_pool2d",
    "_max_pool3d",
    "_no_grad_embedding_renorm_",
    "_pair",
    "_single",
    "_threshold",
    "_triple",
    "_unpool_output_size",
    "_verify_batch_size",
    "_verify_spatial_size",
    "assert_int_or_pair",
]


def _check_unpool_output_size(output_size: Any, dim: int) -> None:
    if output_size[dim] < 0:
        raise ValueError(
            "max_unpooling: output_size must contain non-negative spatial dimensions, "
            f"but got output_size[{dim}]={output_size[dim]}"
        )


def _unpool_output_size(
    input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Any:
    """The spatial size that unpooling gives; ValueError where it cannot be had."""
    n = len(kernel_size)
    size = [
        (extent - 1) * step + kernel - 2 * around
        for extent, kernel, step, around in zip(
            input.shape[-n:], kernel_size, stride, padding, strict=False
        )
    ]
    if output_size is not None:
        given = type(output_size)
        size = given(unpooled_size(n, output_size, size, stride))
    for dim in range(n):
        _check_unpool_output_size(size, dim)
    return size


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    for dim, size in enumerate((bsz, src_len)):
        if key_padding_mask.shape[dim] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {size}, but got "
                f"{key_padding_mask.shape[dim]}"
            )


def _is_integer(x: Any) -> bool:
    """Whether this is an integer, or a tensor of such."""
    if isinstance(x, Tensor):
        return not x.is_floating_point()
    return isinstance(x, (int, np.integer))


def _no_grad_embedding_renorm_(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float
) -> None:
    torchshim.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def _expand_single_value(v: Any) -> list[Any]:
    if v is None:
        return []
    return v if isinstance(v, list) else [v]


def _list_or_empty(l: list[Any] | None) -> list[Any]:  # noqa: E741
    return l or []


def _enum_list_as_int_list(l: Any) -> list[Any]:  # noqa: E741
    return [each.value for each in (l if isinstance(l, list) else [l])]


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError, with a message about a name, for all but a number or a pair."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def _threshold(
    input: Tensor, threshold: float, value: float, inplace: bool = False
) -> Tensor:
    return F.threshold(input, threshold, value, inplace)


def _without_indices(name: str) -> Any:
    """The half of a pooling function that gives no indices.

    It takes `return_indices`, as PyTorch's does, which chose it.
    """
    whole = getattr(F, name)
    signature = inspect.signature(whole)

    @functools.wraps(whole)
    def half(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs).arguments
        given.pop("return_indices", None)
        return whole(**given)

    half.__name__ = half.__qualname__ = f"_{name}"
    return half


_max_pool1d = _without_indices("max_pool1d")
_max_pool2d = _without_indices("max_pool2d")
_max_pool3d = _without_indices("max_pool3d")
_adaptive_max_pool1d = _without_indices("adaptive_max_pool1d")
_adaptive_max_pool2d = _without_indices("adaptive_max_pool2d")
_adaptive_max_pool3d = _without_indices("adaptive_max_pool3d")
_fractional_max_pool2d = _without_indices("fractional_max_pool2d")
_fractional_max_pool3d = _without_indices("fractional_max_pool3d")
