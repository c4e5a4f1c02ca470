"""The versions that scripts ask for; CUDA and ROCm are JAX's affair."""

from __future__ import annotations

from torchshim._version import torch_version as __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
cuda: str | None = None
# PyTorch 2.13.0, whose meaning this is.
git_version = "cf30153c4c131c8164ee7798e5022d810682e2cb"
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
