"""What the tests of the core share."""

from __future__ import annotations

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import parts, stepwise
from torchshim._core.record import local
from torchshim._core.state import ROOT, State
from torchshim._core.varying import Sequences


@pytest.fixture
def own_trie():
    """An empty trie for one test: it has to learn what those before it have learnt."""
    rec = local.rec
    rec.flush()
    known = rec.root, rec.states, rec.varied, rec.last, rec.sequences
    rec.varied, rec.last, rec.sequences = {}, {}, Sequences()
    rec.root = rec.state = State(None, ROOT, None, first_slot=rec.first_slot)
    rec.states = 0
    yield
    rec.flush()
    rec.root, rec.states, rec.varied, rec.last, rec.sequences = known
    rec.state = rec.root


@pytest.fixture
def compiled(own_trie):
    """Counts the programs compiled since the test began."""
    before = torch.explain()
    return lambda: len(torch.explain(before).programs)


@pytest.fixture
def all_compiled(monkeypatch):
    """NumPy computes nothing, however long compiling would take."""
    monkeypatch.setattr(stepwise, "_LEAST_COMPILE", np.inf)
    monkeypatch.setattr(stepwise, "_LEAST_VARYING", np.inf)
    monkeypatch.setattr(stepwise, "_LEAST_PLAIN", np.inf)
    monkeypatch.setattr(parts, "_FIRST_PARTS_VARYING", parts._FIRST_PARTS)
