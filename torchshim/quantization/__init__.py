"""The older name of `torch.ao.quantization`: see there."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao import quantization as _quantization

# Modules whose names are also those of functions, which come after them.
from torchshim.quantization import fuse_modules as fuse_modules
from torchshim.quantization import quantize as quantize

globals().update(
    {n: v for n, v in vars(_quantization).items() if not n.startswith("_")}
)
__all__ = _quantization.__all__  # pyright: ignore[reportUnsupportedDunderAll]

_SUBMODULES = (
    "fake_quantize fuser_method_mappings observer qconfig quant_type "
    "quantization_mappings quantize_fx quantize_jit stubs utils"
)
__getattr__ = _submodules(__name__, *_SUBMODULES.split())
