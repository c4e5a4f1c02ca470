"""`torch.testing._internal.common_quantized`: what tests compare quantization with."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import torchshim as torch

#: The engines that tests are run for, one after the other.
supported_qengines: list[str] = list(torch.backends.quantized.supported_engines)


def _conv_output_shape(
    input_size: int,
    kernel_size: int,
    padding: int,
    stride: int,
    dilation: int,
    output_padding: int = 0,
) -> Any:
    reach = kernel_size + (kernel_size - 1) * (dilation - 1)
    steps = np.floor((input_size + 2 * padding - reach) / stride)
    return steps + 2 * output_padding + 1


# References in NumPy ------------------------------------------------------------------


def _quantize(
    x: Any,
    scale: float,
    zero_point: int,
    qmin: int | None = None,
    qmax: int | None = None,
    dtype: Any = np.uint8,
) -> Any:
    """The codes of an array, within those of the dtype."""
    limits = np.iinfo(dtype)
    low = limits.min if qmin is None else qmin
    high = limits.max if qmax is None else qmax
    codes = np.round(x / scale + zero_point).astype(np.int64)
    return np.clip(codes, low, high).astype(dtype)


def _dequantize(qx: Any, scale: float, zero_point: int) -> Any:
    """What codes stand for."""
    return (qx.astype(float) - zero_point) * scale


def _requantize(
    x: Any,
    multiplier: float,
    zero_point: int,
    qmin: int = 0,
    qmax: int = 255,
    qtype: Any = np.uint8,
) -> Any:
    """Sums of products as codes."""
    return np.clip((x * multiplier).round() + zero_point, qmin, qmax).astype(qtype)


_EPS = np.finfo(np.float32).eps


def _parameters(low: Any, high: Any, qmin: int, qmax: int) -> tuple[Any, int]:
    if low == high:
        return 1.0, 0
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / (qmax - qmin), _EPS)
    return scale, min(max(qmin - round(low / scale), qmin), qmax)


def _calculate_dynamic_qparams(
    X: Any,
    dtype: Any,
    reduce_range: bool = False,
    qscheme: Any = torch.per_tensor_affine,
) -> list[Any]:
    """The scale and zero point that an array asks for."""
    symmetric = qscheme is torch.per_tensor_symmetric
    if not symmetric and qscheme is not torch.per_tensor_affine:
        raise AssertionError(
            "Expected qscheme to be per_tensor_affine or per_tensor_symmetric, got "
            f"{qscheme}"
        )
    if symmetric and dtype is not torch.qint8:
        raise AssertionError(
            f"Expected dtype to be torch.qint8 for symmetric qscheme, got {dtype}"
        )
    if isinstance(X, torch.Tensor):
        X = X.numpy()
    qmin, qmax = (-128, 127) if dtype is torch.qint8 else (0, 255)
    if reduce_range:
        qmin, qmax = int(qmin / 2), qmax // 2
    low, high = X.min(), X.max()
    if symmetric and low != high:
        high = max(high, -low)
        scale, zero = max(2 * high / (qmax - qmin), _EPS), 0
    else:
        scale, zero = _parameters(low, high, qmin, qmax)
    return [float(scale), int(zero)]


def _calculate_dynamic_per_channel_qparams(X: Any, dtype: Any) -> tuple[Any, Any]:
    """The same for each index of the first dimension: those of the whole array."""
    if isinstance(X, torch.Tensor):
        X = X.numpy()
    limits = torch.iinfo(dtype)
    scale, zero = _parameters(X.min(), X.max(), limits.min, limits.max)
    return np.full(X.shape[0], scale, np.float64), np.full(X.shape[0], zero, np.int64)


def _snr(x: Any, x_hat: Any) -> Any:
    """The strength of a signal, that of the noise on it, and their ratio in decibel."""
    if isinstance(x, (list, tuple)):
        if len(x) != len(x_hat):
            raise AssertionError(
                f"Expected len(x) == len(x_hat), got {len(x)} != {len(x_hat)}"
            )
        return [_snr(*pair) for pair in zip(x, x_hat, strict=True)]
    x, x_hat = (v.dequantize() if v.is_quantized else v for v in (x, x_hat))
    noise = (x - x_hat).norm()
    if noise == 0:
        return 0.0, float("inf"), float("inf")
    signal = x.norm()
    return signal, noise, 20 * (signal / noise).log10()


def _permute_to_axis_zero(X: Any, axis: int) -> tuple[Any, list[int]]:
    order = list(range(X.dim()))
    order[axis], order[0] = 0, axis
    return X.permute(tuple(order)), order


def _channel(values: Any, ndim: int, axis: int) -> Any:
    shape = [1] * ndim
    shape[axis] = -1
    return values.reshape(shape)


def _fake_quantize_per_channel_affine_reference(
    X: Any,
    per_channel_scale: Any,
    per_channel_zero_point: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Any:
    """What fake quantization of channels gives, in single precision."""
    scale = _channel(per_channel_scale, X.dim(), axis)
    zero = _channel(per_channel_zero_point, X.dim(), axis)
    codes = torch.round(X.to(torch.float32) * (1.0 / scale) + zero)
    return ((codes.clamp(quant_min, quant_max) - zero) * scale).to(X.dtype)


def _fake_quantize_per_channel_affine_grad_reference(
    dY: Any,
    X: Any,
    per_channel_scale: Any,
    per_channel_zero_point: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Any:
    """Its gradient: what arrives, where nothing was cut off."""
    scale = _channel(per_channel_scale, X.dim(), axis)
    zero = _channel(per_channel_zero_point, X.dim(), axis)
    codes = torch.round(X.to(torch.float32) * (1.0 / scale) + zero)
    inside = (codes >= quant_min) & (codes <= quant_max)
    return torch.where(inside, dY, 0).to(X.dtype)


def to_tensor(X: Any, device: Any) -> Any:
    """A copy in float32 on a device."""
    X = X.detach().clone() if isinstance(X, torch.Tensor) else torch.tensor(X)
    return X.to(device=torch.device(device), dtype=torch.float32)


# Engines ------------------------------------------------------------------------------


@contextlib.contextmanager
def override_quantized_engine(qengine: str) -> Iterator[None]:
    """Within a block, this engine."""
    previous = torch.backends.quantized.engine
    torch.backends.quantized.engine = qengine
    try:
        yield
    finally:
        torch.backends.quantized.engine = previous


@contextlib.contextmanager
def override_cpu_allocator_for_qnnpack(qengine_is_qnnpack: bool) -> Iterator[None]:
    """Nothing within a block: there is one allocator."""
    yield


def override_qengines(qfunction: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a test for each engine."""

    @functools.wraps(qfunction)
    def test_fn(*args: Any, **kwargs: Any) -> None:
        for engine in supported_qengines:
            with override_quantized_engine(engine):
                qfunction(*args, **kwargs)

    return test_fn


def qengine_is_fbgemm() -> bool:
    """Whether the engine is FBGEMM."""
    return torch.backends.quantized.engine == "fbgemm"


def qengine_is_qnnpack() -> bool:
    """Whether the engine is QNNPACK."""
    return torch.backends.quantized.engine == "qnnpack"


def qengine_is_onednn() -> bool:
    """Whether the engine is oneDNN."""
    return torch.backends.quantized.engine == "onednn"


def qengine_is_x86() -> bool:
    """Whether the engine is that for x86."""
    return torch.backends.quantized.engine == "x86"
