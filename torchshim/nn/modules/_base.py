"""What every part of `Module` may rely on: its fields, and names in messages."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torchshim._tensor import Tensor
from torchshim.nn.parameter import Parameter

Hooks = OrderedDict[int, Callable[..., Any]]


def typename(obj: Any) -> str:
    """The full name of an object's type, as PyTorch writes it in messages.

    >>> typename(3)
    'int'
    """
    if isinstance(obj, Tensor):
        return obj.type()  # type: ignore[return-value]
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else None
    if named is None:
        named = type(obj)
    module = getattr(named, "__module__", None) or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    if module in ("", "builtins"):
        return name
    if module == "torchshim" or module.startswith("torchshim."):
        module = "torch" + module.removeprefix("torchshim")
    return f"{module}.{name}"


def weight_and_bias(module: Any) -> tuple[Any, Any]:
    """`module.weight` and `module.bias`, as layers need them in every step.

    As attributes Python finds parameters last, after an error: a third of the time of a
    call of a layer.
    """
    own = module._parameters
    if "weight" in own and "bias" in own and _parameters_are_found(type(module)):
        return own["weight"], own["bias"]
    return module.weight, module.bias


@functools.lru_cache(maxsize=256)
def _parameters_are_found(cls: type) -> bool:
    """Whether nothing in the class comes before a module's weight and bias."""
    names = [name for base in cls.mro() for name in vars(base)]
    return (
        "weight" not in names
        and "bias" not in names
        and names.count("__getattr__") == 1  # that of `Module`
        and names.count("__getattribute__") == 1  # that of `object`
    )


class ModuleBase:
    """The fields of a module, for the type checker. It holds no code."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _is_full_backward_hook: bool | None
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks
    _version: int

    if TYPE_CHECKING:
        forward: Callable[..., Any]

        def children(self) -> Iterator[Any]: ...
        def _get_name(self) -> str: ...
        def get_extra_state(self) -> Any: ...
        def set_extra_state(self, state: Any) -> None: ...
