"""Layers with sparse weights of integers: names that refuse use."""

from torchshim._errors import refused as _refused

globals().update(
    _refused(
        "torch.ao.nn.sparse.quantized.dynamic",
        "Linear",
        "there are no products of integers with sparse weights",
    )
)

__all__ = ["Linear"]  # pyright: ignore[reportUnsupportedDunderAll]
