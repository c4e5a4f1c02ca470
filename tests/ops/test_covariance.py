"""The operators of `_ops/covariance.py`, compared with PyTorch."""

from tests.ops.driver import area

globals().update(area(__name__))
