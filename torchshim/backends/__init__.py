"""Settings of PyTorch's backends, and which of them are there.

Follows https://docs.pytorch.org/docs/2.13/backends.html. XLA takes the place of them
all: what changes no result here is kept and answered, and what is not there says so.
"""

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
from torchshim.backends._module import allowed as __allow_nonbracketed_mutation
from torchshim.backends._module import disable_global_flags as disable_global_flags
from torchshim.backends._module import flags_frozen as flags_frozen

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


assert __allow_nonbracketed_mutation  # found here in PyTorch


class _Backends(_module.Settings):
    fp32_precision = _module.fp32_precision("generic", "all")


_module.turn(__name__, _Backends)
