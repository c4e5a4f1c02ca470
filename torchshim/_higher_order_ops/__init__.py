"""Functions of functions that programs find here."""

from torchshim._higher_order_ops.associative_scan import associative_scan
from torchshim._higher_order_ops.cond import cond
from torchshim._higher_order_ops.map import map
from torchshim._higher_order_ops.scan import scan
from torchshim._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
