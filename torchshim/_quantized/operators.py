"""All operators of `torch.ops.quantized`: see the files that declare them."""

from torchshim._quantized import arithmetic, normalizing, products
from torchshim._quantized.packed import OPERATORS

__all__ = ["OPERATORS", "arithmetic", "normalizing", "products"]
