"""The package `functorch`, which became `torch.func`.

https://docs.pytorch.org/docs/2.13/func.migrating.html
"""

from torchshim._functorch.deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)
from torchshim._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
)
from torchshim._version import torch_version as __version__
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
