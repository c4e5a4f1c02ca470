"""Settings of PyTorch's backends, and which of them are there.

Follows https://docs.pytorch.org/docs/2.13/backends.html. XLA takes the place of them
all: what changes no result here is kept and answered, and what is not there says so.
"""

from types import ModuleType

from torchshim.backends import (
    _module,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]


class _Backends(ModuleType):
    fp32_precision = _module.fp32_precision("generic", "all")


_module.turn(__name__, _Backends)
