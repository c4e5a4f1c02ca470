"""The older name of `torch.ao.quantization`: see there."""

from torchshim.ao import quantization as _quantization

globals().update(
    {n: v for n, v in vars(_quantization).items() if not n.startswith("_")}
)
__all__ = _quantization.__all__  # pyright: ignore[reportUnsupportedDunderAll]
