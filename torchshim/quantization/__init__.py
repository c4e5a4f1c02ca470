"""The older name of `torch.ao.quantization`: see there."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao import quantization as _quantization
from torchshim.ao.quantization import qconfig as _qconfig
from torchshim.ao.quantization import quantization_mappings as _mappings

# Modules whose names are also those of functions, which come after them.
from torchshim.quantization import fuse_modules as fuse_modules
from torchshim.quantization import quantize as quantize

__all__ = [*_quantization.__all__]  # pyright: ignore[reportUnsupportedDunderAll]
for _name in (*__all__, *_qconfig.__all__, *_mappings.__all__):
    globals()[_name] = getattr(_quantization, _name)

_SUBMODULES = (
    "fake_quantize fuser_method_mappings observer qconfig quant_type "
    "quantization_mappings quantize_fx quantize_jit stubs utils"
)
__getattr__ = _submodules(__name__, *_SUBMODULES.split())
