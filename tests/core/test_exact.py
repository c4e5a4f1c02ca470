"""Short recordings of which NumPy computes the bits that XLA's programs give."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import exact, host_kernels, program, stepwise
from torchshim._core.exact import Exact
from torchshim._core.program import CACHE, Program


@pytest.fixture(autouse=True)
def as_users_have_it(as_users, monkeypatch):
    """Nothing is known of what other tests recorded."""
    for table in "KERNELS", "HOST_KERNELS", "_INEXACT", "_known", "_made":
        monkeypatch.setattr(stepwise, table, OrderedDict())
    monkeypatch.setattr(CACHE, "_programs", OrderedDict())


def last():
    """What ran the last recording."""
    return next(reversed(CACHE._programs.values()))


def values(*shape):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    array.reshape(-1)[:3] = -0.0, np.inf, 2.5
    return torch.tensor(array)


EXPRESSIONS = {
    "a row": lambda x, k: x[2] + 0,
    "the largest": lambda x, k: x.max(),
    "the largest of rows": lambda x, k: x.max(1),
    "where they are": lambda x, k: x.argmax(1),
    "where the least are": lambda x, k: x.argmin(),
    "where they are, in place": lambda x, k: (x * 0).argmax(0, keepdim=True),
    "where whole ones are": lambda x, k: k.argmax(),
    "where NaN is": lambda x, k: (x / 0 - torch.inf).argmin(1),
    "whether all are": lambda x, k: (x > -3).all(),
    "how many agree": lambda x, k: (x.argmax(1) == k).sum(),
    "numbers of another dtype": lambda x, k: (x * 3).double(),
    "whole numbers": lambda x, k: (k * 3 // 2).cumsum(0) % 5,
    "rounded": lambda x, k: (x / 3).round().clamp(-1, 1) - 1.5,
    "in order": lambda x, k: x.sort(1),
    "chosen": lambda x, k: x[torch.tensor([0, 3, 3])],
    "chosen by a mask": lambda x, k: x[x[:, 0] > 0],
    "written": lambda x, k: x.clone().index_fill_(0, torch.tensor([1]), 4.0),
    "put together": lambda x, k: torch.cat((-torch.stack((x[0], x[1])), x)).T,
    "one-hot": lambda x, k: torch.nn.functional.one_hot(k, 5),
    "padded": lambda x, k: torch.nn.functional.pad(x, (1, 2), value=1.0),
    "a number that varies": lambda x, k: x * 1.5 + k.shape[0],
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_results_have_the_bits_of_a_program(name, monkeypatch):
    x, k = values(4, 5), torch.tensor([1, 0, 4, 2])
    start = program.count()
    found = arrays(EXPRESSIONS[name](x, k))
    assert isinstance(last(), Exact)
    assert program.count() == start
    monkeypatch.setattr(stepwise, "_EXACT_EVENTS", 0)
    CACHE._programs.clear()
    for mine, theirs in zip(found, arrays(EXPRESSIONS[name](x, k)), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert mine.tobytes() == theirs.tobytes()
    assert program.count() > start


def arrays(made):
    return [t.numpy() for t in (made if isinstance(made, tuple) else [made])]


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.sum(),
        lambda x: x @ x.T,
        lambda x: x.exp(),
        lambda x: x.cumsum(0),
        lambda x: x.half() * 3,
    ],
)
def test_what_has_other_bits_is_compiled(compute):
    x = values(4, 5)
    start = program.count()
    compute(x).tolist()
    assert isinstance(last(), Program)
    assert program.count() == start + 1


def test_what_a_backward_needs_is_compiled():
    w = torch.ones(3, requires_grad=True)
    y = (w * 2).abs()
    y.tolist()
    assert isinstance(last(), Program)
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_numbers_that_change_are_the_same_recording():
    x = torch.tensor([1.0, 2.0])
    start = CACHE.added
    found = [(x * k).tolist() for k in (0.5, 1.5, 2.5)]
    assert found == [[0.5, 1.0], [1.5, 3.0], [2.5, 5.0]]
    assert CACHE.added == start + 1


def test_results_are_no_views_of_what_was_given():
    x = torch.arange(6)
    x.tolist()
    y, z = x.view(2, 3).T.contiguous(), x.flip(0)
    z.tolist()
    assert isinstance(last(), Exact)
    x.numpy()[:] = 9
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert z.tolist() == [5, 4, 3, 2, 1, 0]


def test_what_is_written_to_is_copied():
    counts = torch.zeros(3, dtype=torch.int64)
    counts.tolist()
    before = counts.clone()
    for k in (0, 2, 2):
        counts[k] += 1
        counts.tolist()
    assert isinstance(last(), Exact)
    assert (counts.tolist(), before.tolist()) == ([1, 0, 2], [0, 0, 0])
    assert counts._version == 6  # `[k] += 1` is two writes


def test_errors_that_depend_on_values_are_raised():
    x, where = torch.arange(4), torch.tensor([1, 4])
    start = program.count()
    with pytest.raises(IndexError, match=r"index 4 is out of bounds"):
        x[where].tolist()
    assert x[torch.tensor([1, 3])].tolist() == [1, 3]
    assert program.count() == start


def test_empty_results():
    x = torch.zeros(0, 3)
    assert (x + 1).tolist() == []
    assert (torch.arange(3) > 5).nonzero().shape == (0, 1)


def test_what_takes_longer_than_a_program_becomes_one(monkeypatch):
    monkeypatch.setattr(exact, "_EQUATION", 1e-2)
    x = torch.arange(3)
    start = program.count()
    for k in range(6):
        assert (x + 1).tolist() == [1, 2, 3]
        assert program.count() == start + (k >= 2)
    assert last()._enough == 3


def test_what_is_quicker_for_good_is_never_compiled():
    x = torch.arange(3)
    (x + 1).tolist()
    assert last()._enough == math.inf


def test_an_error_takes_the_recording_back(monkeypatch):
    x = torch.arange(4)
    x.tolist()

    def failing(self, *given):
        raise KeyboardInterrupt

    y = x + 1
    with monkeypatch.context() as patch:
        patch.setattr(exact.Exact, "_run", failing)
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert y.tolist() == [1, 2, 3, 4]


def test_large_results_are_jax_arrays():
    x = torch.zeros(10_000, dtype=torch.int64)
    y = x + 1
    assert y[-1].item() == 1
    assert isinstance(last(), Exact)
    assert not isinstance(y._array, np.ndarray)
    assert (y * 2)[0].item() == 2


def test_what_numpy_has_as_one_function_is_compared_first(monkeypatch):
    monkeypatch.setattr(host_kernels.Direct, "proofs", {})
    monkeypatch.setitem(host_kernels.DIRECT, "argmax", lambda x, *rest: np.argmin(x))
    x = torch.tensor([1.0, 3.0, 2.0])
    assert x.argmax().item() == 1
    assert host_kernels.Direct.proofs == {}


def test_rows_of_numpys_memory():
    """Views of memory that NumPy shares are made without a recording."""
    array = np.arange(12.0).reshape(4, 3)
    x = torch.from_numpy(array)
    rows = [x[k] for k in (0, 2, -1)]
    assert [row.tolist() for row in rows] == [[0, 1, 2], [6, 7, 8], [9, 10, 11]]
    assert [row.storage_offset() for row in rows] == [0, 6, 9]
    array[2] = -1
    rows[2][1] = 5
    assert rows[1].tolist() == [-1, -1, -1] and array[3, 1] == 5
    assert x._version == rows[0]._version == 1
    assert (rows[2] * 2).tolist() == [18, 10, 22]
    assert rows[1]._base is x and not rows[1].requires_grad
    assert x[1:3, 0].tolist() == [3, -1] and x[:2, 0].stride() == (3,)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        x[4]
    with torch.inference_mode():
        assert not x[0].is_inference()
    x.requires_grad_()
    assert x[1].grad_fn is not None
