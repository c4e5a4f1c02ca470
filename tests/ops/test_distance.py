"""The operators of `_ops/distance.py`, compared with PyTorch."""

from tests.ops.driver import area

globals().update(area(__name__))
