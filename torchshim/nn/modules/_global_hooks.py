"""Hooks that run for every module, for debugging and profiling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torchshim._hooks import RemovableHandle
from torchshim.nn.modules._base import Hooks

_global_buffer_registration_hooks: Hooks = OrderedDict()
_global_module_registration_hooks: Hooks = OrderedDict()
_global_parameter_registration_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
# Whether the backward hooks above are full ones; None until the first is known.
_global_is_full_backward_hook: bool | None = None


def _add(hooks: Hooks, hook: Callable[..., Any], extra: Any = None) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    return handle


def run_registration_hooks(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """What is to be registered: the last value that a hook gave back, or `value`."""
    for hook in hooks.values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def register_module_buffer_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` before any module registers a buffer.

    What it returns, unless None, is registered instead. Follows
    ``torch.nn.modules.module.register_module_buffer_registration_hook``.
    """
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` before any submodule is registered.

    What it returns, unless None, is registered instead.
    """
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, param)`` before any parameter is registered.

    What it returns, unless None, is registered instead.
    """
    return _add(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of any module.

    >>> from torchshim import nn
    >>> handle = nn.modules.module.register_module_forward_pre_hook(
    ...     lambda module, args: print(type(module).__name__)
    ... )
    >>> handle.remove()
    """
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of any module.

    `with_kwargs` inserts the keyword arguments before the output; `always_call`
    runs the hook also where forward raised. A result other than None replaces
    the output.
    """
    handle = _add(
        _global_forward_hooks, hook, extra=_global_forward_hooks_always_called
    )
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of any module."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in the backward of any module.

    RuntimeError where a hook of `register_module_backward_hook` was set before.
    """
    _decide_global_kind(full=True)
    return _add(_global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older form of `register_module_full_backward_hook`.

    It sees the last autograd node of the module's forward only.
    """
    _decide_global_kind(full=False)
    return _add(_global_backward_hooks, hook)


def _decide_global_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a "
            "global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def full_backward_hooks_are_global() -> bool | None:
    """Whether the global backward hooks are full ones; None where none was set."""
    return _global_is_full_backward_hook


def _has_any_global_hook() -> bool:
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


class WithGlobalHooks(ModuleType):
    """`torch.nn.modules.module`, whose dicts of hooks are those of this file.

    PyTorch's tests forget all hooks by assigning new dicts to its attributes.
    """

    @property
    def _global_is_full_backward_hook(self) -> bool | None:
        return full_backward_hooks_are_global()

    def __setattr__(self, name: str, value: Any) -> None:
        hooks = globals().get(name) if name.startswith("_global_") else None
        if name == "_global_is_full_backward_hook":
            globals()[name] = value
        elif isinstance(hooks, OrderedDict):
            given = list(value.items())
            hooks.clear()
            hooks.update(given)
        else:
            super().__setattr__(name, value)
