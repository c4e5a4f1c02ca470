"""The operators of `_ops/linalg.py`, compared with PyTorch."""

import torchshim.linalg  # noqa: F401
from tests.ops.driver import area

globals().update(area(__name__))
