"""PyTorch's compiler, as far as scripts name it: XLA compiles what they record."""

from torchshim._inductor import config as config
