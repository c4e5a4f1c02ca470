"""Several devices: which one programs run on, and tensors moved between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests.core import two_devices
from torchshim._core.placement import platform

SCRIPT = Path(two_devices.__file__)


@pytest.fixture(scope="module")
def found():
    """What each case raised in a process of its own; None: nothing."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(SCRIPT.parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", two_devices.CASES)
def test_two_devices(found, name):
    assert found[name] is None, found[name]


def test_platform():
    assert platform() == jax.default_backend()
    (cpu, *_) = jax.devices("cpu")
    with jax.default_device(cpu):
        assert platform() == "cpu"
