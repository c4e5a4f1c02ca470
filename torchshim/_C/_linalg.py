"""Linear algebra by the names of PyTorch's C++ side."""

from __future__ import annotations

from torchshim._C._native import by_prefix, functions_of

__getattr__ = functions_of(__name__, by_prefix("linalg"))
