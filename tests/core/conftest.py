"""What the tests of the core share."""

from __future__ import annotations

import pytest

import torchshim as torch
from torchshim._core.record import local
from torchshim._core.state import ROOT, State


@pytest.fixture
def compiled():
    """Counts the programs compiled since the test began, with an empty trie.

    What tests before it have recorded would have learnt what this one has to learn.
    """
    rec = local.rec
    rec.flush()
    known, states = rec.root, rec.states
    rec.states = 0
    rec.root = rec.state = State(None, ROOT, None, first_slot=rec.first_slot)
    before = torch.explain()
    yield lambda: len(torch.explain(before).programs)
    rec.flush()
    rec.root = rec.state = known
    rec.states = states
