"""Linear algebra.

https://docs.pytorch.org/docs/2.13/linalg.html
"""

from torchshim import _functions
from torchshim._derived import namespace as _namespace

assert _functions.__all__

globals().update(_namespace("linalg"))

__all__ = sorted({"LinAlgError", *_namespace("linalg")})
