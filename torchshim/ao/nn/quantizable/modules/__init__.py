"""Layers whose parts can be observed and quantized."""

from torchshim.ao.nn.quantizable.modules.activation import MultiheadAttention
from torchshim.ao.nn.quantizable.modules.rnn import LSTM, LSTMCell

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
