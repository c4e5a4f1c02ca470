"""What the library is built of: `torch.__config__`."""

from __future__ import annotations

import importlib.metadata

import jax

from torchshim import _settings
from torchshim._version import torch_version
from torchshim.backends.cpu import get_cpu_capability

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The versions of JAX and XLA that are in the place of PyTorch's libraries.

    >>> show().splitlines()[0]
    'PyTorch built with:'
    """
    lines = [
        f"torchshim {torch_version}",
        f"JAX {jax.__version__}",
        f"jaxlib {importlib.metadata.version('jaxlib')}",
        f"CPU capability usage: {get_cpu_capability()}",
    ]
    return "\n".join(["PyTorch built with:", *[f"  - {line}" for line in lines], ""])


def _cxx_flags() -> str:
    return ""


def parallel_info() -> str:
    """The numbers of threads."""
    return (
        f"ATen/Parallel:\n\tat::get_num_threads() : {_settings.get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {_settings.get_num_interop_threads()}\n"
    )
