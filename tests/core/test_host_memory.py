"""What the C library does with freed memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchshim._core import host_memory

glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="not glibc's memory"
)
TUNED = {"GLIBC_TUNABLES", *(name for name, *_ in host_memory._PARAMETERS)}

# Pages that are cleared when pieces of 48 MiB are taken anew.
FAULTS = """
import ctypes, resource
import torchshim

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
size = 48 << 20

def use():
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment: str) -> int:
    inherited = {k: v for k, v in os.environ.items() if k not in TUNED}
    found = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(found.stdout)


@glibc
def test_freed_memory_is_kept_for_the_next_run():
    assert faults() < 1000


@glibc
@pytest.mark.parametrize(
    "environment",
    [
        {"MALLOC_MMAP_THRESHOLD_": "1048576"},
        {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1048576"},
    ],
)
def test_what_the_environment_sets_stays(environment):
    assert faults(**environment) > 8 * (48 << 20) // os.sysconf("SC_PAGESIZE") // 2


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    host_memory.keep_freed()
    host_memory.trim()


@glibc
def test_memory_freed_between_what_is_in_use_goes_back():
    """As after programs: some of it stays, so that glibc keeps the rest."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(20_000) for _ in range(4000)]
    for block in blocks:
        ctypes.memset(block, 1, 20_000)
    for i, block in enumerate(blocks):
        if i % 8:
            libc.free(block)
    before = resident()
    host_memory.trim()
    after = resident()
    for block in blocks[::8]:
        libc.free(block)
    assert (before - after) * os.sysconf("SC_PAGESIZE") > 40 << 20
