"""`torch.testing._internal.hypothesis_utils`: strategies for `hypothesis`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchshim._errors import refused, unsupported

_WHY = "nothing is quantized"

globals().update(
    refused(
        __name__,
        "assume_not_overflowing per_channel_tensor qparams tensor_conv",
        _WHY,
    )
)


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


def tensor(
    shapes: Any = None, elements: Any = None, qparams: Any = None, dtype: Any = "f4"
) -> Any:
    """Pairs of a finite NumPy array, whose shape is one of `shapes`, and None."""
    from hypothesis import strategies
    from hypothesis.extra import numpy as hypothesis_numpy

    if qparams is not None:
        unsupported("testing._internal.hypothesis_utils.tensor(qparams=)", _WHY)()
    if not isinstance(shapes, strategies.SearchStrategy):
        shapes = strategies.sampled_from(shapes)
    if elements is None:
        elements = floats(-1e6, 1e6, allow_nan=False)
    drawn = shapes.flatmap(
        lambda shape: hypothesis_numpy.arrays(dtype, shape, elements=elements)
    )
    return drawn.filter(lambda x: np.isfinite(x).all()).map(lambda x: (x, None))
