"""What the processor can do: `torch.backends.cpu`."""

from __future__ import annotations

import os

from torchshim.cpu._features import features

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest vectors that PyTorch would use: AVX512, AVX2 or DEFAULT.

    The environment's ``ATEN_CPU_CAPABILITY`` decides if it is set, as in PyTorch.
    """
    asked = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    if asked in ("AVX512", "AVX2", "DEFAULT"):
        return asked
    found = features()
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"} <= found:
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= found else "DEFAULT"
