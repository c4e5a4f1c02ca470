"""Control flow, where programs looked for it first."""

from torchshim._higher_order_ops import cond, map

__all__ = ["cond", "map"]
