"""The unpickler that reads tensors and plain values alone."""

from torchshim.serialization._weights_only import Unpickler as Unpickler
