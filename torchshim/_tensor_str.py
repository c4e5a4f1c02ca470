"""How tensors are printed (`torch._tensor_str`)."""

from torchshim._printing import (
    PRINT_OPTS,
    get_printoptions,
    printoptions,
    set_printoptions,
)
from torchshim._tensor import tensor_text as _str

__all__ = ["PRINT_OPTS", "_str", "get_printoptions", "printoptions", "set_printoptions"]
