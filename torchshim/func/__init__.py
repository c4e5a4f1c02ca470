"""Function transforms: `vmap`, `grad`, `jvp` and what is made of them.

https://docs.pytorch.org/docs/2.13/func.html
"""

from torchshim._functions.func_forward import hessian, jacfwd, jvp, linearize
from torchshim._functions.func_reverse import grad, grad_and_value, jacrev, vjp
from torchshim._functions.func_unwrap import debug_unwrap
from torchshim._functions.vmap import vmap
from torchshim.func._modules import (
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from torchshim.func._rearrange import rearrange

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
