"""The operators of `_ops/adaptive_pooling.py`, compared with PyTorch."""

from tests.ops.driver import area

globals().update(area(__name__))
