"""Batch normalization without running statistics, by its place in PyTorch."""

from torchshim.func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
