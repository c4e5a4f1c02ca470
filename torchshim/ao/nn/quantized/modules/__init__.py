"""Layers that compute with integers."""

from torchshim.ao.nn.quantized.modules.activation import (
    ELU,
    Hardswish,
    LeakyReLU,
    MultiheadAttention,
    PReLU,
    ReLU6,
    Sigmoid,
    Softmax,
)
from torchshim.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from torchshim.ao.nn.quantized.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from torchshim.ao.nn.quantized.modules.conversion import DeQuantize, Quantize
from torchshim.ao.nn.quantized.modules.dropout import Dropout
from torchshim.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from torchshim.ao.nn.quantized.modules.functional_modules import (
    FloatFunctional,
    FXFloatFunctional,
    QFunctional,
)
from torchshim.ao.nn.quantized.modules.linear import Linear
from torchshim.ao.nn.quantized.modules.normalization import (
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)
from torchshim.ao.nn.quantized.modules.rnn import LSTM
from torchshim.nn.modules.pooling import MaxPool2d as MaxPool2d

# Where PyTorch has them.
for _class in (DeQuantize, Quantize):
    _class.__module__ = __name__
del _class

__all__ = [
    "ELU",
    "LSTM",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]
