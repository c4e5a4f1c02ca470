"""The older name of `torch.ao.quantization`: see there."""

from torchshim._lazy import submodules as _submodules
from torchshim.ao import quantization as _quantization

globals().update(
    {n: v for n, v in vars(_quantization).items() if not n.startswith("_")}
)
__all__ = _quantization.__all__  # pyright: ignore[reportUnsupportedDunderAll]

_SUBMODULES = "fake_quantize observer qconfig quant_type stubs"
__getattr__ = _submodules(__name__, *_SUBMODULES.split())
