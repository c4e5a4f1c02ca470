"""Weights that keep a gradient for each example of a batch.

`call_for_per_sample_grads` does it by `vmap`; there is no class of such weights.
"""

from torchshim._errors import unsupported

ExpandedWeight = unsupported(
    "nn.utils._expanded_weights.ExpandedWeight",
    "call_for_per_sample_grads maps modules over their examples instead",
)
