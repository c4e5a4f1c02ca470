"""What tensors that are not quantized answer of it.

`torchshim._quantized` has the others; it is loaded when a script first uses one.
https://docs.pytorch.org/docs/2.13/quantization.html
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import public
from torchshim._functions._family import described


@public(method=True)
def dequantize(input: Any) -> Any:
    """What a quantized tensor stands for, in float32; of several tensors, a tuple.

    A tensor that is not quantized is converted to float32.

    https://docs.pytorch.org/docs/2.13/generated/torch.dequantize.html

    >>> import torchshim as torch
    >>> torch.dequantize(torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.quint8))
    tensor([1., 1.])
    >>> torch.ones(2, dtype=torch.float16).dequantize()
    tensor([1., 1.])
    """
    if isinstance(input, Sequence):
        return tuple(each.dequantize() for each in input)
    return input.to(dtypes.float32)


def _only_quantized(name: str, returned: str) -> Callable[..., Any]:
    def asked(input: Any) -> Any:
        """Of quantized tensors; NotImplementedError for others.

        >>> import torchshim as torch
        >>> scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([1, 2])
        >>> q = torch.quantize_per_channel(torch.ones(2), scales, zeros, 0, torch.qint8)
        >>> q.int_repr(), q.q_per_channel_axis()
        (tensor([3, 6], dtype=torch.int8), 0)
        >>> q = torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.quint8)
        >>> q.q_scale(), q.q_zero_point(), q.qscheme()
        (0.5, 1, torch.per_tensor_affine)
        """
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it "
            "takes quantized tensors"
        )

    described(asked, name, returned)
    return asked


for _name, _returned in (
    ("int_repr", "A copy of the integers that stand for the elements."),
    ("q_scale", "The scale of a tensor that has one for all elements."),
    ("q_zero_point", "The integer that stands for zero."),
    ("q_per_channel_scales", "The scale of each index of a dimension, in float64."),
    ("q_per_channel_zero_points", "The integer that stands for zero, for each index."),
    ("q_per_channel_axis", "The dimension whose indices have scales of their own."),
):
    public(_only_quantized(_name, _returned), method=True)
public(
    _only_quantized("qscheme", "How integers stand for the elements."),
    namespaces=(),
    method=True,
)


def _rebuild_qtensor(*args: Any) -> Any:
    """A quantized tensor out of a storage, as files and pickles have it."""
    return importlib.import_module("torchshim._quantized.rebuilding").rebuilt(*args)


_rebuild_qtensor.__module__ = "torchshim._utils"
