"""Every view operator: its geometry, its body and its `write` tell the same of memory.

Where they differ, a view reads other elements than it writes, which nothing refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchshim
from tests.ops import driver
from tests.ops.samples import SAMPLES


def _keys() -> list[str]:
    driver.without_samples()  # loads them all
    known = driver.registry()
    return [key for key in SAMPLES if key in known and known[key].view is not None]


def _memory(tensor: Any, count: int) -> np.ndarray:
    """The elements of a tensor's memory, in order."""
    return np.asarray(tensor.as_strided((count,), (1,), 0).tolist())


def _shown(view: Any, memory: np.ndarray) -> np.ndarray:
    """The elements that a view's geometry shows."""
    itemsize = memory.itemsize
    return np.lib.stride_tricks.as_strided(
        memory[view.storage_offset() :],
        view.shape,
        [stride * itemsize for stride in view.stride()],
    )


@pytest.mark.parametrize("key", _keys())
def test_views_read_and_write_what_their_geometry_says(key: str) -> None:
    op = driver.registry()[key]
    if not op.view.strided or op.view.detached:
        pytest.skip("its elements are not those of the memory")
    seen = 0
    for each in (s for s in SAMPLES[key].make() if not s.fails):
        args, kwargs = driver.arguments(torchshim, each, False)
        base = args[0]
        if base.dtype in (torchshim.bool, torchshim.complex64, torchshim.complex128):
            continue
        count = base.untyped_storage().nbytes() // base.element_size()
        memory = _memory(base, count)
        results = driver.plain(driver.function_of(torchshim, op)(*args, **kwargs))
        for view in results:
            if view._base is None or not view.numel():
                continue
            seen += 1
            assert view.tolist() == _shown(view, memory).tolist()
            # Each place that the view shows, and no other one, gets what is written.
            places = _shown(view, np.arange(count))
            if len({*places.reshape(-1).tolist()}) < places.size:
                continue  # an expanded one, which cannot be written to
            before = _memory(base, count)
            new = torchshim.arange(view.numel()).reshape(view.shape).to(view.dtype) + 50
            view.copy_(new)
            before[places.reshape(-1)] = np.asarray(new.reshape(-1).tolist())
            assert _memory(base, count).tolist() == before.tolist()
    assert seen or key in ("detach",), "no sample of it is a view"
