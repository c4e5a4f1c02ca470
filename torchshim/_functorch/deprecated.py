"""The transforms by their names in `functorch`: each warns, and is `torch.func`'s.

https://docs.pytorch.org/docs/2.13/func.migrating.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchshim import _warnings as warnings
from torchshim import func
from torchshim._functorch import make_functional as _modules

__all__ = [
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
    "vjp",
    "vmap",
]


def _deprecated(function: Callable[..., Any], new: str) -> Callable[..., Any]:
    """The function with a FutureWarning at each call that names what replaced it."""
    text = (
        "We've integrated functorch into PyTorch. As the final step of the "
        f"integration, `functorch.{function.__name__}` is deprecated as of PyTorch "
        "2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
        f"`{new}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` "
        "migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return warned


vmap = _deprecated(func.vmap, "torch.vmap")
grad = _deprecated(func.grad, "torch.func.grad")
grad_and_value = _deprecated(func.grad_and_value, "torch.func.grad_and_value")
vjp = _deprecated(func.vjp, "torch.func.vjp")
jvp = _deprecated(func.jvp, "torch.func.jvp")
jacrev = _deprecated(func.jacrev, "torch.func.jacrev")
jacfwd = _deprecated(func.jacfwd, "torch.func.jacfwd")
hessian = _deprecated(func.hessian, "torch.func.hessian")
functionalize = _deprecated(func.functionalize, "torch.func.functionalize")
make_functional = _deprecated(_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(
    _modules.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _deprecated(
    _modules.combine_state_for_ensemble, "torch.func.stack_module_state"
)
