"""The operators of `_ops/view_gradients.py`, compared with PyTorch."""

from tests.ops.driver import area

globals().update(area(__name__))
