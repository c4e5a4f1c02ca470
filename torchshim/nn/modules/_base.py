"""What every part of `Module` may rely on: its fields, and names in messages."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torchshim import functional
from torchshim._refusal import OPERATORS_IN_PYTHON
from torchshim._tensor import Tensor
from torchshim.nn.parameter import Parameter

Hooks = OrderedDict[int, Callable[..., Any]]


def typename(obj: Any) -> str:
    """The full name of an object's type, as PyTorch writes it in messages.

    >>> typename(3)
    'int'
    """
    if isinstance(obj, Tensor):
        return obj.type()
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


# Functions of operators that are written in Python in PyTorch.
_IN_PYTHON = frozenset((*functional.__all__, *OPERATORS_IN_PYTHON, "cond", "lobpcg"))
_ALWAYS_BUILT_IN = ("torch.fft", "torch.linalg", "torch.special")


def keep_unbound(cls: type) -> None:
    """Has functions of torch in a class stay functions: `activation = torch.tanh`.

    PyTorch's are built in, which Python does not make methods; ours are not.
    """
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and _is_built_in(value):
            type.__setattr__(cls, name, staticmethod(value))


def _is_built_in(function: FunctionType) -> bool:
    """Whether PyTorch's function of this name is no function of Python."""
    maker = function.__globals__.get("__name__", "").partition(".")[0]
    if maker != __name__.partition(".")[0]:
        return False  # `functools.wraps` copies the marks, too
    space = getattr(function, "__overrides__", None)
    if space in _ALWAYS_BUILT_IN:
        return True
    is_operator = hasattr(function, "__op__") or hasattr(function, "__overloads__")
    return (is_operator or space == "torch") and function.__name__ not in _IN_PYTHON


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
