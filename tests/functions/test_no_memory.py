"""Tensors that no memory can hold are refused as PyTorch refuses them, at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.oracle import attempt, case, evaluate

LARGE = """
torch.empty(1 << 40)
torch.zeros(1 << 62)
torch.rand(1 << 40)
torch.randn(1 << 31, 1 << 31, 1 << 31)
torch.randint(0, 5, (1 << 40,))
torch.randperm(1 << 40)
torch.full((1 << 20, 1 << 30), 1, dtype=torch.int8)
torch.ones(2).new_zeros(1 << 40)
torch.arange(1 << 40)
torch.eye(1 << 20)
torch.eye(1 << 40)
torch.nn.Linear(1 << 31, 1 << 31)
torch.nn.functional.one_hot(torch.tensor([0, 1]), 1 << 40)
torch.nn.functional.pad(torch.ones(2, 3), (1 << 40, 0))
torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), size=1 << 30)
torch.ones(3).repeat(1 << 40)
torch.ones(3).repeat_interleave(1 << 40)
torch.ones(1).expand(1 << 40).clone()
torch.ones(1).expand(1 << 40) + 1
torch.ones(1).expand(1 << 40).shape
torch.ones(1).expand(1 << 62, 4)
torch.ones(1).expand(1 << 40).cumsum(0)
torch.outer(torch.ones(1 << 20), torch.ones(1 << 20))
torch.ones(1 << 20, 1) @ torch.ones(1, 1 << 20)
torch.cdist(torch.ones(1 << 20, 1), torch.ones(1 << 20, 1))
torch.einsum("i,j->ij", torch.ones(1 << 20), torch.ones(1 << 20))
torch.diag(torch.ones(1 << 20))
torch.func.jacrev(lambda x: x)(torch.ones(1 << 20))
torch.bincount(torch.tensor([1 << 40]))
torch.bincount(torch.tensor([(1 << 63) - 1]))
torch.bincount(torch.tensor([(1 << 63) - 2]))
torch.bincount(torch.tensor([1]), minlength=1 << 62)
torch.bincount(torch.tensor([], dtype=torch.int64), minlength=1 << 62)
torch.nn.functional.pixel_shuffle(torch.ones(1, 4, 2, 2), 1 << 32)
torch.UntypedStorage(-1)
torch.UntypedStorage(1 << 40)
torch.ones(2, 3).tril(1 << 40)
torch.ones(2, 3).triu(-(1 << 62))
torch.ones(2, 3).tril(-(1 << 40))
torch.zeros(1 << 40, device="meta") + 1
torch.eye(1 << 31, 1 << 31)
"""


@case.lines(LARGE)
def too_large(torch, line):
    return evaluate(torch, line)


@case.lines(LARGE)
def too_large_in_a_recording(torch, line):
    """As a part of a recording that has begun, where creation is an event, too."""
    x = torch.ones(3).sin() * 2
    yield attempt(evaluate, torch, line)
    yield x


@case
def as_before(torch):
    """An error about memory leaves everything as it was."""
    x = torch.ones(1 << 20, requires_grad=True)
    y = x * 2
    for _ in range(2):
        try:
            torch.outer(y, y)
        except RuntimeError as error:
            yield str(error)
    y.sum().backward()
    yield x.grad[:2], y[:2], y._version


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_programs_that_lack_memory_end_with_an_error():
    """Where a result was thought to fit: jaxlib aborts or waits when read."""
    program = """
        import resource
        import torchshim as torch
        from torchshim._core import extent

        x = torch.arange(1 << 15, dtype=torch.float32)
        ((x[:5, None] + x) * 2).sum().item()
        used = [l.split()[1] for l in open("/proc/self/status") if "VmSize" in l]
        limit = (int(used[0]) << 10) + (3 << 29)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        extent.available = lambda: extent.COUNTS
        y = x * 3
        big, small = (y[:, None] + y) * 2, y + 1
        for value in small, big, small:
            try:
                print(value[0].sum().item())
            except RuntimeError as error:
                print(error)
        print(x[:3].tolist(), (x + 1)[1].item())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert "you tried to allocate 4294967296 bytes" in lines[0]
    assert "lost: the program that was to compute it failed with" in lines[1]
    assert lines[-1] == "[0.0, 1.0, 2.0] 2.0"
