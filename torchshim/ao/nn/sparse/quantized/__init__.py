"""Layers of integers with sparse weights: names that refuse use."""

from torchshim._errors import refused as _refused
from torchshim.ao.nn.sparse.quantized import dynamic as dynamic

globals().update(
    _refused(
        "torch.ao.nn.sparse.quantized",
        "Linear LinearPackedParams",
        "there are no products of integers with sparse weights",
    )
)

__all__ = ["Linear", "LinearPackedParams", "dynamic"]  # pyright: ignore[reportUnsupportedDunderAll]
