"""Weight normalization by a hook: the older form of `parametrizations.weight_norm`."""

from __future__ import annotations

from typing import Any, TypeVar

import torchshim
from torchshim import _warnings as warnings
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter, UninitializedParameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

T_module = TypeVar("T_module", bound=Module)


class WeightNorm:
    """The hook: computes a weight from its length and its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight that the module's parameters stand for."""
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return torchshim._weight_norm(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Splits a parameter; RuntimeError if that was done already."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=2,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    "Cannot register two weight_norm hooks on the same parameter "
                    f"{name}"
                )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized "
                "parameters. Make sure to run the dummy forward before applying weight "
                "normalization"
            )
        del module._parameters[name]
        norm = torchshim.norm_except_dim(weight, 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(norm.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(
    module: T_module, name: str = "weight", dim: int | None = 0
) -> T_module:
    """Learns a weight's length and direction apart. Deprecated.

    Follows ``torch.nn.utils.weight_norm``.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: T_module, name: str = "weight") -> T_module:
    """Undoes `weight_norm`; ValueError where there is none.

    Follows ``torch.nn.utils.remove_weight_norm``.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
