"""`Module`: what every network and layer is built from."""

from __future__ import annotations

import inspect
import sys
from collections import OrderedDict
from collections import namedtuple as namedtuple
from collections.abc import Callable
from collections.abc import Iterator as Iterator
from collections.abc import Mapping as Mapping
from typing import Any, Self, TypeVar
from typing import Optional as Optional
from typing import Union as Union
from typing import overload as overload

import torchshim
from torchshim._core.device import device as device
from torchshim._core.dtypes import dtype as dtype
from torchshim._hooks import RemovableHandle as RemovableHandle
from torchshim._tensor import Tensor
from torchshim.nn.modules._backward_hooks import BackwardHook as BackwardHook
from torchshim.nn.modules._base import keep_unbound, typename
from torchshim.nn.modules._conversion import Conversion
from torchshim.nn.modules._global_hooks import (
    WithGlobalHooks,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    run_registration_hooks,
)
from torchshim.nn.modules._global_hooks import (
    _global_backward_hooks as _global_backward_hooks,
)
from torchshim.nn.modules._global_hooks import (
    _global_backward_pre_hooks as _global_backward_pre_hooks,
)
from torchshim.nn.modules._global_hooks import (
    _global_forward_hooks as _global_forward_hooks,
)
from torchshim.nn.modules._global_hooks import (
    _global_forward_hooks_always_called as _global_forward_hooks_always_called,
)
from torchshim.nn.modules._global_hooks import (
    _global_forward_hooks_with_kwargs as _global_forward_hooks_with_kwargs,
)
from torchshim.nn.modules._global_hooks import (
    _global_forward_pre_hooks as _global_forward_pre_hooks,
)
from torchshim.nn.modules._global_hooks import (
    _has_any_global_hook as _has_any_global_hook,
)
from torchshim.nn.modules._hooks import Calling
from torchshim.nn.modules._hooks import _WrappedHook as _WrappedHook
from torchshim.nn.modules._own import name_methods
from torchshim.nn.modules._state_dict import (
    _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX,
)
from torchshim.nn.modules._state_dict import StateDict
from torchshim.nn.modules._state_dict import _IncompatibleKeys as _IncompatibleKeys
from torchshim.nn.modules._traversal import Traversal
from torchshim.nn.parameter import Buffer, Parameter

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


_grad_t = tuple[Tensor, ...] | Tensor
T = TypeVar("T", bound="Module")


def _addindent(text: str, num_spaces: int) -> str:
    """`text` with every line but the first one indented."""
    first, *rest = text.split("\n")
    indent = " " * num_spaces
    return "\n".join([first, *(indent + line if line.strip() else "" for line in rest)])


def _forward_unimplemented(self: Any, *input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


def _ordered() -> OrderedDict[Any, Any]:
    return OrderedDict()


# Every field of a fresh module. Handles refer weakly to the dicts of hooks, which
# a plain dict does not allow.
_FIELDS: dict[str, Callable[[], Any]] = {
    "training": lambda: True,
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": _ordered,
    "_backward_hooks": _ordered,
    "_is_full_backward_hook": lambda: None,
    "_forward_hooks": _ordered,
    "_forward_hooks_with_kwargs": _ordered,
    "_forward_hooks_always_called": _ordered,
    "_forward_pre_hooks": _ordered,
    "_forward_pre_hooks_with_kwargs": _ordered,
    "_state_dict_hooks": _ordered,
    "_state_dict_pre_hooks": _ordered,
    "_load_state_dict_pre_hooks": _ordered,
    "_load_state_dict_post_hooks": _ordered,
    "_modules": dict,
}


class Module(Calling, StateDict, Conversion, Traversal):
    """The base of all networks and layers.

    Parameters, buffers and submodules are registered by assigning them as
    attributes, after ``super().__init__()``; a subclass defines ``forward``.
    Follows ``torch.nn.Module``.

    >>> import torchshim as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(torch.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    dump_patches: bool = False
    _version: int = 1
    call_super_init: bool = False
    forward: Callable[..., Any] = _forward_unimplemented

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        keep_unbound(cls)
        name_methods(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(
                    f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{name} takes 1 positional argument but {len(args) + 1} were given"
                )
        # Not through our own __setattr__, which looks into these very fields.
        for field, make in _FIELDS.items():
            super().__setattr__(field, make())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Make `tensor` (or None) a buffer: part of the state, but not trained.

        A buffer that is not `persistent` stays out of the state dict. KeyError
        where the name cannot be used. Follows ``torch.nn.Module.register_buffer``.

        >>> import torchshim as torch
        >>> m = torch.nn.Module()
        >>> m.register_buffer("mean", torch.zeros(2))
        >>> m.mean
        tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch "
                "Tensor or None required)"
            )
        self._buffers[name] = run_registration_hooks(
            _global_buffer_registration_hooks, self, name, tensor
        )
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` (or None) a parameter of the module.

        KeyError where the name cannot be used, ValueError where `param` is the
        result of recorded operations. Follows ``Module.register_parameter``.

        >>> import torchshim as torch
        >>> m = torch.nn.Module()
        >>> m.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
        >>> len(list(m.parameters()))
        1
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                "cannot assign parameter before Module.__init__() call"
            )
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                f"parameters must be created explicitly. To express '{name}' as a "
                "function of another Tensor, compute the value in the forward() "
                "method."
            )
        self._parameters[name] = run_registration_hooks(
            _global_parameter_registration_hooks, self, name, param
        )

    def _check_name(self, kind: str, name: Any, members: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in members:
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` (or None) a submodule.

        KeyError where the name cannot be used. Follows ``Module.add_module``.

        >>> from torchshim import nn
        >>> m = nn.Module()
        >>> m.add_module("act", nn.ReLU())
        >>> m.act
        ReLU()
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = run_registration_hooks(
            _global_module_registration_hooks, self, name, module
        )

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        # Called where the ordinary look-up failed, so often: parameters come first.
        fields = self.__dict__
        try:
            members = fields["_parameters"]
            if name in members:
                return members[name]
            members = fields["_modules"]
            if name in members:
                return members[name]
            members = fields["_buffers"]
            if name in members:
                return members[name]
        except KeyError:  # Module.__init__ did not run
            pass
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        params = fields.get("_parameters")
        modules = fields.get("_modules")
        buffers = fields.get("_buffers")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError(
                    "cannot assign parameters before Module.__init__() call"
                )
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or (modules is not None and name in modules):
            if modules is None:
                raise AttributeError(
                    "cannot assign module before Module.__init__() call"
                )
            if isinstance(value, Module):
                self._forget(name, "_parameters", "_buffers")
            elif value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = run_registration_hooks(
                _global_module_registration_hooks, self, name, value
            )
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *groups: str) -> None:
        """Drop what `name` stood for, before it stands for something else."""
        self.__dict__.pop(name, None)
        for group in groups:
            getattr(self, group).pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not _is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        register = self.register_buffer
        if (
            getattr(register, "__func__", None) is Module.register_buffer
            or "persistent" in inspect.signature(register).parameters
        ):
            register(name, value, persistent)
        elif persistent:
            register(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that "
                "implements register_buffer() without the persistent argument is not "
                "allowed."
            )

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                if members is self._buffers:
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        # A compiled call cannot be pickled; it is compiled again where needed.
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Modules saved by older versions lack the fields that came later.
        for field, make in _FIELDS.items():
            if field not in self.__dict__:
                super().__setattr__(field, make())

    def train(self, mode: bool = True) -> Self:
        """Put the module and all below it into training mode, or evaluation mode.

        It decides how layers like Dropout and BatchNorm act. Follows
        ``torch.nn.Module.train``.

        >>> from torchshim import nn
        >>> nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Put the module and all below it into evaluation mode.

        >>> from torchshim import nn
        >>> nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Make further calls of the module go through ``torch.compile``."""
        self._compiled_call_impl = torchshim.compile(self._call_impl, *args, **kwargs)

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Override to say more about the module in its repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            "(" + name + "): " + _addindent(repr(module), 2)
            for name, module in self._modules.items()
        ]
        lines = extra_lines + child_lines
        if not lines:
            inside = ""
        elif len(extra_lines) == 1 and not child_lines:
            inside = extra_lines[0]
        else:
            inside = "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({inside})"

    def __dir__(self) -> list[str]:
        names = [
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        ]
        # Names like "0" cannot be written as an attribute.
        return sorted(name for name in names if not name[0].isdigit())

    def _replicate_for_data_parallel(self) -> Self:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _own_the_methods() -> None:
    """Name the methods of the parts after `Module`, which Python's errors show."""
    for part in (Calling, StateDict, Conversion, Traversal):
        for name, value in vars(part).items():
            if inspect.isfunction(value):
                value.__qualname__ = f"Module.{name}"


_own_the_methods()
sys.modules[__name__].__class__ = WithGlobalHooks
