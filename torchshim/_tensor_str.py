"""How tensors are printed (`torch._tensor_str`)."""

from torchshim._printing import (
    PRINT_OPTS,
    format_values,
    get_printoptions,
    join_suffixes,
    printoptions,
    set_printoptions,
)
from torchshim._tensor import Tensor
from torchshim._tensor import tensor_text as _str

_add_suffixes = join_suffixes

__all__ = ["PRINT_OPTS", "_str", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self: Tensor, indent: int) -> str:
    """The values as they stand between the parentheses, which are so far right."""
    return format_values(self._host(), indent) if self.numel() else "[]"
