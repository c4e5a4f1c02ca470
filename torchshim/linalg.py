"""Linear algebra.

https://docs.pytorch.org/docs/2.13/linalg.html
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from torchshim import _functions  # noqa: F401 -- makes its functions public
from torchshim._derived import namespace as _namespace
from torchshim._ops._linalg import LinAlgError as LinAlgError

globals().update(_namespace("linalg"))

if _TYPE_CHECKING:
    # The operators, as above.
    def __getattr__(name: str) -> _Any: ...


# The registry has the names.
__all__ = sorted({"LinAlgError", *_namespace("linalg")})  # pyright: ignore[reportUnsupportedDunderAll]
