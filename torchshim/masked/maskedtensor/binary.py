"""Names of the functions of two elements that masked tensors have."""

from __future__ import annotations

from torchshim import ops

__all__: list[str] = []

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift div divide floor_divide fmod logaddexp logaddexp2 mul "
    "multiply nextafter remainder sub subtract true_divide eq ne le ge greater "
    "greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal"
).split()
INPLACE_BINARY_NAMES = [
    f"{name}_"
    for name in BINARY_NAMES
    if name not in ("fmax", "fmin", "logaddexp", "logaddexp2", "maximum", "minimum")
]

NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]
