"""Function transforms: `vmap`, `grad`, `jvp` and what is made of them.

https://docs.pytorch.org/docs/2.13/func.html
"""

from torchshim._functions.func_forward import hessian, jacfwd, jvp, linearize
from torchshim._functions.func_reverse import grad, grad_and_value, jacrev, vjp
from torchshim._functions.vmap import vmap

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]
