"""What the tests of the core share."""

from __future__ import annotations

import pytest

import torchshim as torch
from torchshim._core.record import local


@pytest.fixture
def compiled():
    """Counts the programs compiled since the test began."""
    local.rec.flush()
    before = torch.explain()
    return lambda: len(torch.explain(before).programs)
