"""What came before the functions of `torch.library`, which packages still import."""

from __future__ import annotations

from torchshim._errors import unsupported
from torchshim.library import get_ctx, impl_abstract

__all__ = [
    "custom_op",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]

_REASON = "torch.library makes operators"
custom_op = unsupported("_custom_ops.custom_op", _REASON)
impl = unsupported("_custom_ops.impl", _REASON)
impl_backward = unsupported("_custom_ops.impl_backward", _REASON)
impl_save_for_backward = unsupported("_custom_ops.impl_save_for_backward", _REASON)
