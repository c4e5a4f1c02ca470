"""Functions of functions that programs find here."""

from torchshim._higher_order_ops.associative_scan import associative_scan

__all__ = ["associative_scan"]
