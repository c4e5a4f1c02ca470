"""Quantized tensors in pickles and files, as PyTorch writes them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchshim._functions.quantized import _rebuild_qtensor
from torchshim._functions.rebuilding import _rebuild_tensor, tensor_args
from torchshim._functions.typed_storage import TypedStorage
from torchshim._quantized.schemes import QSCHEMES
from torchshim._quantized.tensor import PerChannel, PerTensor, codes_dtype, quantized


def reduced(tensor: Any) -> tuple[Any, ...]:
    """What pickle writes of a quantized tensor."""
    codes, scheme = tensor._v.detach(), tensor._scheme
    untyped = codes.untyped_storage()
    storage = TypedStorage(wrap_storage=untyped, dtype=tensor.dtype, _internal=True)
    _, offset, size, stride, *_ = tensor_args(codes, storage)
    params = (scheme.qscheme, *scheme)
    return _rebuild_qtensor, (
        storage,
        offset,
        size,
        stride,
        params,
        False,
        OrderedDict(),
    )


def rebuilt(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    quantizer_params: Any,
    requires_grad: bool,
    backward_hooks: Any,
) -> Any:
    """The tensor that `reduced` took apart; RuntimeError for unknown schemes."""
    kind, *rest = quantizer_params
    if kind is QSCHEMES["per_tensor_affine"]:
        scheme: Any = PerTensor(*rest)
    elif kind in (
        QSCHEMES["per_channel_affine"],
        QSCHEMES["per_channel_affine_float_qparams"],
    ):
        scheme = PerChannel(*rest)
    else:
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {kind}")
    codes, _, _ = codes_dtype(storage.dtype)
    return quantized(
        _rebuild_tensor(storage, storage_offset, size, stride, codes), scheme
    )
