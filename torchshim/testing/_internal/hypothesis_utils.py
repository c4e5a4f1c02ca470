"""`torch.testing._internal.hypothesis_utils`: strategies for `hypothesis`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import torchshim as torch
from torchshim._errors import refused
from torchshim.testing._internal.common_quantized import (
    _calculate_dynamic_per_channel_qparams,
    _calculate_dynamic_qparams,
)

_ALL_QINT_TYPES = (torch.quint8, torch.qint8, torch.qint32)
globals().update(
    refused(__name__, "tensor_conv", "there are no random examples of convolutions")
)
# The zero point of a dtype, where it has but one.
_ENFORCED_ZERO_POINT = {torch.qint32: 0}


def _get_valid_min_max(qparams: Any) -> tuple[Any, Any]:
    """The numbers whose codes, and numbers on the way there, int64 holds."""
    scale, zero_point, _ = qparams
    limits, slack = torch.iinfo(torch.long), 1 + torch.finfo(torch.float).eps
    low, high = limits.min / slack, limits.max / slack
    return (
        np.float32(max((low - zero_point) * scale, low / scale + zero_point)),
        np.float32(min((high - zero_point) * scale, high / scale + zero_point)),
    )


def assume_not_overflowing(tensor: Any, qparams: Any) -> bool:
    """Leaves out examples of numbers that are too large for codes of int64."""
    from hypothesis import assume

    low, high = _get_valid_min_max(qparams)
    assume(tensor.min() >= low)
    assume(tensor.max() <= high)
    return True


def qparams(
    dtypes: Any = None,
    scale_min: float | None = None,
    scale_max: float | None = None,
    zero_point_min: int | None = None,
    zero_point_max: int | None = None,
) -> Any:
    """Triples of a scale, a zero point, and a quantized dtype."""
    from hypothesis import strategies

    if dtypes is None:
        dtypes = _ALL_QINT_TYPES
    if not isinstance(dtypes, (list, tuple)):
        dtypes = (dtypes,)
    limits = torch.finfo(torch.float)
    scales = floats(
        limits.eps if scale_min is None else scale_min,
        limits.max if scale_max is None else scale_max,
    )

    def of(dtype: Any) -> Any:
        codes = torch.iinfo(dtype)
        low = codes.min if zero_point_min is None else zero_point_min
        high = codes.max if zero_point_max is None else zero_point_max
        zeros = strategies.integers(low, high)
        if dtype in _ENFORCED_ZERO_POINT:
            zeros = strategies.just(_ENFORCED_ZERO_POINT[dtype])
        return strategies.tuples(scales, zeros, strategies.just(dtype))

    return strategies.sampled_from(dtypes).flatmap(of)


def assert_deadline_disabled() -> None:
    """Tests have no deadline: programs are compiled when they are first run."""
    import hypothesis

    hypothesis.settings.register_profile("torchshim", deadline=None)
    hypothesis.settings.load_profile("torchshim")


def array_shapes(
    min_dims: int = 1,
    max_dims: int | None = None,
    min_side: int = 1,
    max_side: int | None = None,
    max_numel: int | None = None,
) -> Any:
    """Shapes, with at most `max_numel` elements."""
    from hypothesis.extra import numpy as hypothesis_numpy

    found = hypothesis_numpy.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )
    if max_numel is None:
        return found
    return found.filter(lambda shape: math.prod(shape) <= max_numel)


def floats(*args: Any, **kwargs: Any) -> Any:
    """Floats that float32 has, if no other `width` is given."""
    from hypothesis import strategies

    return strategies.floats(*args, **{"width": 32, **kwargs})


def _arrays(shapes: Any, elements: Any, dtype: Any) -> Any:
    from hypothesis import strategies
    from hypothesis.extra import numpy as hypothesis_numpy

    if not isinstance(shapes, strategies.SearchStrategy):
        shapes = strategies.sampled_from(shapes)
    if elements is None:
        elements = floats(-1e6, 1e6, allow_nan=False)
    drawn = shapes.flatmap(
        lambda shape: hypothesis_numpy.arrays(dtype, shape, elements=elements)
    )
    return drawn.filter(lambda x: np.isfinite(x).all())


def _elements(elements: Any, found: Any) -> Any:
    """What arrays for a scheme have, if nothing else is asked for."""
    if elements is not None:
        return elements
    low, high = _get_valid_min_max(found)
    return floats(low, high, allow_infinity=False, allow_nan=False)


def tensor(
    shapes: Any = None, elements: Any = None, qparams: Any = None, dtype: Any = "f4"
) -> Any:
    """Pairs of a finite NumPy array, whose shape is one of `shapes`, and its scheme.

    The scheme is a scale and a zero point that suit the array, and the dtype that
    `qparams` draws; without that it is None.
    """
    if qparams is None:
        return _arrays(shapes, elements, dtype).map(lambda x: (x, None))

    def paired(found: Any) -> Any:
        def scheme(x: Any) -> Any:
            scale, zero = _calculate_dynamic_qparams(x, found[2])
            return x, (scale, _ENFORCED_ZERO_POINT.get(found[2], zero), found[2])

        return _arrays(shapes, _elements(elements, found), dtype).map(scheme)

    return qparams.flatmap(paired)


def per_channel_tensor(
    shapes: Any = None, elements: Any = None, qparams: Any = None
) -> Any:
    """As `tensor`, with scales and zero points for each index of a dimension."""
    from hypothesis import strategies

    if qparams is None:
        return _arrays(shapes, elements, "f4").map(lambda x: (x, None))

    def paired(found: Any) -> Any:
        def placed(x: Any) -> Any:
            scales, zeros = _calculate_dynamic_per_channel_qparams(x, found[2])
            zeros = _ENFORCED_ZERO_POINT.get(found[2], zeros)

            def turned(axis: int) -> Any:
                scheme = scales, zeros, axis, found[2]
                return np.swapaxes(x, 0, axis), scheme

            return strategies.integers(0, x.ndim - 1).map(turned)

        return _arrays(shapes, _elements(elements, found), "f4").flatmap(placed)

    return qparams.flatmap(paired)
