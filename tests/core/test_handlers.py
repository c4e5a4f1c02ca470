"""Errors that depend on data are raised at once where the script handles them."""

from __future__ import annotations

import ast
import contextlib
import linecache
import unittest

import pytest

import torchshim
from tests.oracle import attempt, case
from torchshim._core import handlers


@case
def handled(torch):
    good, bad = torch.eye(2), torch.ones(2, 2)
    embedding = torch.nn.Embedding(3, 2)
    model = torch.nn.Sequential(embedding, torch.nn.Flatten())
    yield torch.linalg.inv(good), embedding(torch.tensor([1])).shape
    try:
        torch.linalg.inv(bad)
        yield "inv"
    except torch.linalg.LinAlgError as error:
        yield str(error)
    try:
        embedding(torch.tensor([7]))
        yield "embedding"
    except (KeyError, IndexError):
        yield "caught"
    try:
        model(torch.tensor([8]))
        yield "model"
    except Exception:
        yield "caught"
    try:
        good[torch.tensor([5])]
        yield "index"
    except:  # noqa: E722
        yield "caught"
    with contextlib.suppress(IndexError):
        good[torch.tensor([6])]
        yield "suppressed"
    factors = []
    for matrix in (bad - 2, good):
        try:
            factors.append(torch.linalg.cholesky(matrix))
        except RuntimeError:
            factors.append(None)
    yield factors


@case
def in_tests(torch):
    class Test(unittest.TestCase):
        def test(self):
            x = torch.ones(3)
            with self.assertRaises(IndexError):
                x[torch.tensor([3])]
            with self.assertRaisesRegex(RuntimeError, "index 4"):
                torch.gather(x, 0, torch.tensor([4]))
            self.assertRaises(RuntimeError, lambda: torch.linalg.inv(torch.ones(2, 2)))
            self.assertRaises(RuntimeError, torch.linalg.inv, torch.ones(2, 2))

    Test("test").debug()
    yield "passed"


@case
def after_a_failure_all_is_as_before(torch):
    x = torch.zeros(3, requires_grad=True)
    y = x * 2
    try:
        torch.nn.functional.cross_entropy(y[None], torch.tensor([5]))
    except IndexError as error:
        yield str(error)
    torch.nn.functional.cross_entropy(y[None], torch.tensor([2])).backward()
    yield x.grad


@case
def a_write_that_fails_was_not_made(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    i, row = torch.tensor([1]) * 5, torch.ones(1)
    for write in (
        lambda: y.scatter_(0, i, 1.0),
        lambda: y.index_add_(0, i, row),
        lambda: y.index_fill_(0, i, 3.0),
        lambda: y.index_copy_(0, i, row),
        lambda: y.__setitem__(i, 3.0),
        lambda: y[:2].scatter_add_(0, i, row),
        lambda: y.scatter_(0, i - 4, 1.0),
    ):
        yield type(attempt(write)).__name__, y._version, type(y.grad_fn).__name__, y
    y.sum().backward()
    yield x.grad


def test_elsewhere_they_are_deferred():
    x = torchshim.ones(3)
    try:
        late = x[torchshim.tensor([2]) + 1]
    finally:
        early = True
    assert early
    with pytest.raises(IndexError):
        late.tolist()


def test_in_a_file_without_handlers_they_are_deferred_for_it_alone():
    """The same operator on the same operands, recorded for such a file before."""
    scope = {"torch": torchshim}
    source = "def f(i): return torch.ones(3).gather(0, i)"
    exec(compile(source, "<quiet>", "exec"), scope)
    good, bad = torchshim.tensor([1]), torchshim.tensor([3])
    assert scope["f"](good).tolist() == [1]
    late = scope["f"](bad)
    with pytest.raises(RuntimeError, match="index 3"):
        late.tolist()
    with pytest.raises(RuntimeError, match="index 3"):
        torchshim.ones(3).gather(0, bad)
    assert torchshim.ones(3).gather(0, good).tolist() == [1]
    with pytest.raises(RuntimeError, match="index 3"):
        torchshim.ones(3).gather(0, bad)


def lines_of(source, name="<lines>"):
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    handlers.expecting_lines.cache_clear()
    try:
        return handlers.expecting_lines(name)
    finally:
        del linecache.cache[name]


def test_lines_that_expect_errors():
    assert lines_of("x = 1\n") == ()
    assert lines_of("try:\n  a\n  b\nexcept IndexError:\n  c\n") == ((2, 3),)
    assert lines_of("try:\n  a\nexcept KeyboardInterrupt:\n  c\n") == ()
    assert lines_of("try:\n  a\nexcept (ImportError, my.Error):\n  c\n") == ((2, 2),)
    assert lines_of("try:\n  a\nfinally:\n  c\n") == ()
    assert lines_of("with pytest.raises(E):\n  a\n") == ((1, 2), (1, 1))
    assert lines_of("raises(E,\n  f)\n") == ((1, 2),)
    assert lines_of("with open(try_):\n  a\n") == ()
    assert lines_of("try a syntax error\n") == ()


def test_a_step_in_a_file_with_handlers_stays_one_program():
    embedding = torchshim.nn.Embedding(3, 2)
    optimizer = torchshim.optim.SGD(embedding.parameters(), lr=0.1)

    def step(i):
        optimizer.zero_grad()
        embedding(torchshim.tensor([i % 3])).sum().backward()
        optimizer.step()

    for i in range(3):
        step(i)
    before = torchshim.explain()
    for i in range(3):
        step(i)
    assert not torchshim.explain(before).programs


def test_threads_that_parse_at_once(monkeypatch, tmp_path):
    """Python 3.11 raises `SystemError` where another thread makes a tree, too."""
    path = tmp_path / "script.py"
    path.write_text("try:\n    f()\nexcept IndexError:\n    pass\n")
    whole, calls = ast.parse, []

    def parse(source):
        calls.append(source)
        if len(calls) == 1:
            raise SystemError("AST constructor recursion depth mismatch")
        return whole(source)

    monkeypatch.setattr(ast, "parse", parse)
    assert handlers.expecting_lines(str(path)) == ((2, 2),)
    assert len(calls) == 2
