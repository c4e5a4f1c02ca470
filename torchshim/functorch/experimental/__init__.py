"""What `functorch` called experimental."""

from torchshim._functions.func_forward import hessian, jacfwd, jvp
from torchshim._functorch.apis import chunk_vmap
from torchshim.func import functionalize, replace_all_batch_norm_modules_

__all__ = [
    "chunk_vmap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]
