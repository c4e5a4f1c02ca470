"""All operators of `torch.ops.quantized`: see the files that declare them."""

from torchshim._quantized import (
    arithmetic,
    embedding,
    normalizing,
    products,
    recurrent,
)
from torchshim._quantized.packed import OPERATORS

__all__ = [
    "OPERATORS",
    "arithmetic",
    "embedding",
    "normalizing",
    "products",
    "recurrent",
]
