"""Tests that run in several processes, and those that watch what is written."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator

import pytest

import torchshim as torch
import torchshim.distributed as dist
from torchshim.testing._internal.common_distributed import (
    MultiProcessTestCase,
    create_tcp_store,
    skip_if_lt_x_gpu,
)
from torchshim.testing._internal.common_methods_invocations import op_db
from torchshim.testing._internal.jit_utils import JitTestCase


class Ranks(MultiProcessTestCase):
    """What the processes below do."""

    __test__ = False
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def meet(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group(
            "gloo", rank=self.rank, world_size=self.world_size, store=store
        )

    def runs_together(self):
        self.meet()
        x = torch.full((2,), self.rank + 1.0)
        dist.all_reduce(x)
        self.assertEqual(x, torch.full((2,), 3.0))
        self.assertEqual(dist.get_rank(), self.rank)

    def fails_in_one(self):
        self.meet()
        self.assertEqual(self.rank, 0)

    def is_skipped(self):
        raise unittest.SkipTest("not today")

    @skip_if_lt_x_gpu(1000)
    def needs_many(self):
        raise AssertionError

    def leaves(self):
        sys.exit(3)


def outcome(name):
    found = unittest.TestResult()
    Ranks(name).run(found)
    texts = [text for _, text in found.errors + found.failures + found.skipped]
    return found.wasSuccessful(), len(found.skipped), " ".join(texts)


def test_processes_of_a_test():
    assert outcome("runs_together") == (True, 0, "")
    passed, _, text = outcome("fails_in_one")
    assert not passed
    assert "Process 1 exited with error code 10 and exception:" in text
    assert "Scalars are not equal!" in text
    assert outcome("is_skipped") == (True, 1, "not today")
    assert outcome("needs_many") == (True, 1, "Need at least 1000 CUDA devices")
    passed, _, text = outcome("leaves")
    assert not passed
    assert "Expected zero exit code but got 3" in text


def test_stores_at_a_free_port():
    store = create_tcp_store()
    store.set("a", "b")
    assert store.get("a") == b"b"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_is_written(stream):
    with getattr(JitTestCase, f"capture_{stream}")() as captured:
        print("told", file=getattr(sys, stream))
    assert captured == ["told\n"]


def test_samples_come_one_by_one():
    for op in op_db[:40:10]:
        assert isinstance(op.sample_inputs("cpu", torch.float32), Iterator)
        assert isinstance(op.reference_inputs("cpu", torch.float32), Iterator)
        assert isinstance(op.error_inputs("cpu"), Iterator)
