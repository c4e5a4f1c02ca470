"""`torch.testing._internal.hypothesis_utils`: strategies for `hypothesis`."""

from __future__ import annotations

import math
from typing import Any

from torchshim._errors import unsupported

per_channel_tensor = unsupported(
    "testing._internal.hypothesis_utils.per_channel_tensor", "nothing is quantized"
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
