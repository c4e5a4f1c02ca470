"""Settings of checkpoints (``torch.utils.serialization``)."""

from torchshim.utils.serialization import config as config
