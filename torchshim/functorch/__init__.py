"""The package `functorch`, which became `torch.func`.

https://docs.pytorch.org/docs/2.13/func.migrating.html
"""

from torchshim._functions.func_forward import hessian, jacfwd, jvp
from torchshim._functions.func_reverse import grad, grad_and_value, jacrev, vjp
from torchshim._functions.vmap import vmap
from torchshim._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from torchshim._version import torch_version as __version__
from torchshim.func import functionalize
from torchshim.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "__version__",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]
