"""Names of `torch.ao.quantization`: see there."""

from torchshim.ao.quantization import *  # noqa: F403
