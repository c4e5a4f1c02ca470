"""Layers with sparse weights, which are refused."""

from torchshim.ao.nn.sparse import quantized as quantized
