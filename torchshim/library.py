"""Operators of one's own: not supported, `autograd.Function` does most of it."""

from torchshim._errors import unsupported

__all__ = [
    "Library",
    "custom_op",
    "define",
    "impl",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_REASON = "operators cannot be registered; torch.autograd.Function takes their place"
Library = unsupported("library.Library", _REASON)
_scoped_library = unsupported("library._scoped_library", _REASON)
custom_op = unsupported("library.custom_op", _REASON)
define = unsupported("library.define", _REASON)
impl = unsupported("library.impl", _REASON)
opcheck = unsupported("library.opcheck", _REASON)
register_autograd = unsupported("library.register_autograd", _REASON)
register_fake = unsupported("library.register_fake", _REASON)
register_kernel = unsupported("library.register_kernel", _REASON)
register_vmap = unsupported("library.register_vmap", _REASON)
triton_op = unsupported("library.triton_op", _REASON)
wrap_triton = unsupported("library.wrap_triton", _REASON)
