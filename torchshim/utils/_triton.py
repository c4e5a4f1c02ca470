"""Whether kernels written in Triton can be used: they take PyTorch's tensors."""

from __future__ import annotations

import importlib.util
from typing import Any

from torchshim._errors import unsupported

_REASON = "kernels in Triton read PyTorch's memory; JAX's own kernels are Pallas's"


def has_triton_package() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Triton's version, two numbers of it."""
    if not has_triton_package():
        return fallback
    version: Any = importlib.import_module("triton").__version__
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def has_triton() -> bool:
    """Whether Triton's kernels can be used here: no."""
    return False


# What of Triton's kernels needs hardware of some kind.
has_datacenter_blackwell_tma_device = has_triton
has_triton_experimental_host_tma = has_triton
has_triton_stable_tma_api = has_triton
has_triton_tensor_descriptor_host_tma = has_triton
has_triton_tma = has_triton
has_triton_tma_device = has_triton

_HASH = "utils._triton.triton_hash_with_backend"
triton_backend = unsupported("utils._triton.triton_backend", _REASON)
triton_hash_with_backend = unsupported(_HASH, _REASON)
