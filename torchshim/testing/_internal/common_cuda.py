"""`torch.testing._internal.common_cuda`: what tests ask about GPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torchshim as torch
from torchshim.testing._internal._conditions import (
    TEST_CUDA,
    never_skipped,
)
from torchshim.testing._internal._conditions import TEST_MULTIGPU as TEST_MULTIGPU

CUDA_DEVICE = torch.device("cuda:0") if TEST_CUDA else None
# What computes on GPUs here is XLA, whatever libraries it uses.
TEST_CUDNN = TEST_MAGMA = TEST_CUSPARSE_GENERIC = False
TEST_CUDNN_VERSION = 0
TEST_NUMBA_CUDA = False
TEST_LARGE_TENSOR = False
SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = SM80OrLater = TEST_CUDA
SM89OrLater = SM90OrLater = SM100OrLater = False
PLATFORM_SUPPORTS_FUSED_ATTENTION = PLATFORM_SUPPORTS_FLASH_ATTENTION = False
PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = PLATFORM_SUPPORTS_CUDNN_ATTENTION = False


def initialize_cuda_context_rng() -> None:
    """Nothing: generators are ready when they are used."""


def tf32_is_not_fp32() -> bool:
    """Whether products in float32 may be computed in TF32."""
    return TEST_CUDA and torch.backends.cuda.matmul.allow_tf32


@contextlib.contextmanager
def tf32_off() -> Iterator[None]:
    """Products in full float32."""
    with _tf32(False):
        yield


@contextlib.contextmanager
def tf32_on(self: Any, tf32_precision: float = 1e-5) -> Iterator[None]:
    """Products in TF32, compared with this tolerance."""
    before = self.precision
    self.precision = tf32_precision
    try:
        with _tf32(True):
            yield
    finally:
        self.precision = before


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = allowed
    try:
        yield
    finally:
        settings.allow_tf32 = before


def tf32_on_and_off(*args: Any, **kwargs: Any) -> Any:
    """A test that is run as it is: on the CPU there is no TF32."""
    return never_skipped


with_tf32_off = never_skipped
