"""Sums that begin with a number: ``total = 0``, then ``total += value`` in a loop.

Python makes the first addition of ``value.__radd__(0)``, which gives a new tensor, and
the others of ``total.__iadd__(value)``. The first is recorded like the others, as a
write to a zero, so that a loop's first iteration is the same program as the others.
"""

from __future__ import annotations

import sys
from typing import Any

from torchshim import _bind
from torchshim._core import dtypes
from torchshim._core.callers import adds_in_place
from torchshim._core.storage import set_version
from torchshim._functions.construct import tensor_from
from torchshim._tensor import Tensor


def _begin_sum(rec: Any, value: Tensor, number: Any) -> Tensor | None:
    """What ``number += value`` gives, or None where it is recorded as it stands.

    That is: of numbers but zero, which dtypes may round; where the sum has a graph, of
    which one more node would be seen; where somebody watches.
    """
    meta = value._tmeta
    if type(number) not in (int, float) or number != 0 or meta.shape:
        return None
    if (meta.requires_grad and rec.grad) or meta.dtype.category == dtypes.COMPLEX:
        return None
    if rec.mode is None or rec.levels or rec.trace is not None or rec.inference:
        return None
    if meta.device.type == "meta" or not adds_in_place(sys._getframe(1)):
        return None
    kind = meta.dtype
    if kind.category < dtypes.FLOATING and type(number) is float:
        kind = dtypes.get_default_dtype()
    elif kind.category == dtypes.BOOL:
        kind = dtypes.int64
    total = tensor_from(number, kind, meta.device)
    total += value
    set_version(total, 0)
    return total


_bind.begin_sum.append(_begin_sum)
