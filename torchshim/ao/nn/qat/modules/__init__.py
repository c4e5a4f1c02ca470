"""Layers that train with weights rounded as they will be."""

from torchshim.ao.nn.qat.modules.conv import Conv1d, Conv2d, Conv3d
from torchshim.ao.nn.qat.modules.embedding_ops import Embedding, EmbeddingBag
from torchshim.ao.nn.qat.modules.linear import Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
