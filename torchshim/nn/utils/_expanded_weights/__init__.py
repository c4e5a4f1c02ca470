"""Weights that keep a gradient for each example of a batch."""

from torchshim.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
