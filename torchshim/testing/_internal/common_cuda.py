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
TEST_CUDNN = TEST_MAGMA = TEST_CUSPARSE_GENERIC = TEST_HIPSPARSE_GENERIC = False
TEST_CUDNN_VERSION = 0
TEST_NUMBA_CUDA = False
TEST_LARGE_TENSOR = IS_JETSON = False
SM53OrLater = SM60OrLater = SM70OrLater = SM75OrLater = SM80OrLater = TEST_CUDA
SM89OrLater = SM90OrLater = SM100OrLater = False
SM120OrLater = IS_SM89 = IS_SM90 = IS_SM100 = IS_SM10X = IS_SM12X = IS_THOR = False
CDNA2OrLater = CDNA3OrLater = False
ROCM_VERSION = (0, 0)
PLATFORM_SUPPORTS_BF16 = PLATFORM_SUPPORTS_BF16_ATOMICS = TEST_CUDA
PLATFORM_SUPPORTS_FUSED_SDPA = PLATFORM_SUPPORTS_CK_SDPA = False
PLATFORM_SUPPORTS_FP8 = PLATFORM_SUPPORTS_FP8_SPARSE = False
PLATFORM_SUPPORTS_FP8_GROUPED_GEMM = PLATFORM_SUPPORTS_MX_GEMM = False
PLATFORM_SUPPORTS_MXFP8_GROUPED_GEMM = PLATFORM_SUPPORTS_HALF_ATOMICS = False
PLATFORM_SUPPORTS_GREEN_CONTEXT = PLATFORM_SUPPORTS_WORKQUEUE_CONFIG = False
PLATFORM_SUPPORTS_FUSED_ATTENTION = PLATFORM_SUPPORTS_FLASH_ATTENTION = False
PLATFORM_SUPPORTS_MEM_EFF_ATTENTION = PLATFORM_SUPPORTS_CUDNN_ATTENTION = False


def initialize_cuda_context_rng() -> None:
    """Nothing: generators are ready when they are used."""


def tf32_is_not_fp32() -> bool:
    """Whether products in float32 may be computed in TF32."""
    return TEST_CUDA and torch.backends.cuda.matmul.allow_tf32


@contextlib.contextmanager
def blas_library_context(backend: Any) -> Iterator[None]:
    """Another library of products is the preferred one."""
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library(backend)
    try:
        yield
    finally:
        torch.backends.cuda.preferred_blas_library(before)


@contextlib.contextmanager
def tf32_off() -> Iterator[None]:
    """Products in full float32."""
    with _tf32(False):
        yield


@contextlib.contextmanager
def tf32_enabled() -> Iterator[None]:
    """Products in TF32."""
    with _tf32(True):
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
xfailIfSM89 = xfailIfSM90 = xfailIfSM100OrLater = xfailIfSM120OrLater = never_skipped
xfailIfSM12X = xfailIfDistributedNotSupported = never_skipped
xfailCUDAIfSM89OrLaterOnWindows = xfailIfSM89PreCUDA13 = never_skipped


def _no_version() -> tuple[int, int]:
    return (0, 0)


_get_torch_cuda_version = _get_torch_rocm_version = _get_magma_version = _no_version
_get_torch_hipblaslt_version = _no_version


def _create_scaling_models_optimizers(
    device: Any = "cuda",
    optimizer_ctor: Any = torch.optim.SGD,
    optimizer_kwargs: Any = None,
) -> tuple[Any, ...]:
    """Two equal models, and an optimizer for each."""
    options = {"lr": 1.0} | (optimizer_kwargs or {})
    models = []
    for _ in range(2):
        layers = (torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        models.append(torch.nn.Sequential(*layers).to(device=device))
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [optimizer_ctor(model.parameters(), **options) for model in models]
    return (*models, *optimizers)


def _create_scaling_case(
    device: Any = "cuda",
    dtype: Any = torch.float,
    optimizer_ctor: Any = torch.optim.SGD,
    optimizer_kwargs: Any = None,
) -> tuple[Any, ...]:
    """Two equal models with optimizers, pairs of data, a loss, and a batch to skip."""
    pair = lambda: tuple(  # noqa: E731
        torch.randn((8, 8), dtype=dtype, device=device) for _ in range(2)
    )
    made = _create_scaling_models_optimizers(device, optimizer_ctor, optimizer_kwargs)
    return (*made, [pair() for _ in range(4)], torch.nn.MSELoss().to(device), 2)
