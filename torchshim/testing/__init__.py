"""Helpers for tests: `assert_close`, `make_tensor`.

https://docs.pytorch.org/docs/2.13/testing.html
"""

from torchshim.testing._comparison import assert_allclose, assert_close
from torchshim.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
