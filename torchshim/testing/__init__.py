"""Helpers for tests: `assert_close`, `make_tensor`.

https://docs.pytorch.org/docs/2.13/testing.html
"""

from torchshim._lazy import submodules as _submodules
from torchshim.testing._comparison import assert_allclose, assert_close
from torchshim.testing._creation import make_tensor
from torchshim.testing._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]

__getattr__ = _submodules(__name__, "_internal")
