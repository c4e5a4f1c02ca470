"""Calling a module, and the hooks that run around a call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from torchshim import _warnings as warnings
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor
from torchshim.nn.modules._backward_hooks import BackwardHook
from torchshim.nn.modules._base import Hooks, ModuleBase
from torchshim.nn.modules._global_hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    full_backward_hooks_are_global,
)


class _WrappedHook:
    """A hook that gets its module as first argument without keeping it alive."""

    __module__ = "torchshim.nn.modules.module"  # as files name it

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError(
                    "You are trying to revive the hook of a dead Module!"
                )
            self.module = weakref.ref(state["module"])


def _add(
    hooks: Hooks, hook: Callable[..., Any], prepend: bool = False, extra: Any = None
) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Calling(ModuleBase):
    """`Module`'s call and its ``register_*_hook`` methods."""

    # What Module.compile() made; a module that is not compiled has none of its own.
    _compiled_call_impl: Callable[..., Any] | None = None

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        # Every layer of every step passes here. Reading self.__dict__ once is
        # cheaper than an attribute look-up for each kind of hook.
        fields = self.__dict__
        try:
            plain = not (
                fields["_backward_hooks"]
                or fields["_backward_pre_hooks"]
                or fields["_forward_hooks"]
                or fields["_forward_pre_hooks"]
                or _global_backward_pre_hooks
                or _global_backward_hooks
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or "_compiled_call_impl" in fields
            )
        except KeyError:  # Module.__init__ did not run: _call_impl says so
            plain = False
        if plain:
            if kwargs:
                return self.forward(*args, **kwargs)
            return self.forward(*args)
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    __call__: Callable[..., Any] = _wrapped_call_impl

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        call = _HookedCall(self, args, kwargs)
        try:
            return call.run()
        except Exception:
            call.run_always_called()
            raise

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward.

        A result other than None replaces the arguments. With `with_kwargs` the
        hook is called as ``hook(module, args, kwargs)`` and may return a pair of
        both. `prepend` puts it before the hooks that are there. Follows
        ``torch.nn.Module.register_forward_pre_hook``.

        >>> from torchshim import nn
        >>> m = nn.Identity()
        >>> _ = m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        >>> m(2)
        3
        """
        extra = self._forward_pre_hooks_with_kwargs
        handle = _add(self._forward_pre_hooks, hook, prepend, extra)
        if with_kwargs:
            extra[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward.

        A result other than None replaces the output. With `with_kwargs` the hook
        is called as ``hook(module, args, kwargs, output)``; with `always_call`
        also where forward raised. Follows
        ``torch.nn.Module.register_forward_hook``.

        >>> from torchshim import nn
        >>> m = nn.Identity()
        >>> _ = m.register_forward_hook(lambda module, args, output: output * 10)
        >>> m(2)
        20
        """
        handle = _add(
            self._forward_hooks,
            hook,
            prepend,
            [self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward.

        A result other than None replaces the gradients of the output. Follows
        ``torch.nn.Module.register_full_backward_pre_hook``.

        >>> import torchshim as torch
        >>> m = torch.nn.ReLU()
        >>> _ = m.register_full_backward_pre_hook(lambda module, g: (g[0] * 2,))
        >>> x = torch.ones(1, requires_grad=True)
        >>> m(x).backward(torch.ones(1))
        >>> x.grad
        tensor([2.])
        """
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the backward.

        Both are tuples with a place for each positional argument and result,
        None where it is no tensor. A result other than None replaces
        `grad_input`. RuntimeError where a hook of `register_backward_hook` is
        set. Follows ``torch.nn.Module.register_full_backward_hook``.

        >>> import torchshim as torch
        >>> m = torch.nn.ReLU()
        >>> _ = m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
        >>> x = torch.ones(1, requires_grad=True)
        >>> m(x).backward(torch.ones(1))
        >>> x.grad
        tensor([3.])
        """
        self._decide_backward_kind(full=True)
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of `register_full_backward_hook`.

        It sees only the autograd node that made the output. RuntimeError where a
        full backward hook is set. Follows ``Module.register_backward_hook``.
        """
        self._decide_backward_kind(full=False)
        return _add(self._backward_hooks, hook)

    def _decide_backward_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """The full backward hooks, then the others; global ones first."""
        by_kind: dict[bool, list[Any]] = {True: [], False: []}
        for kind, hooks in (
            (full_backward_hooks_are_global(), _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            if kind is not None:
                by_kind[kind] += hooks.values()
        return by_kind[True], by_kind[False]

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [
            *_global_backward_pre_hooks.values(),
            *self._backward_pre_hooks.values(),
        ]


class _HookedCall:
    """One call of a module that has hooks."""

    def __init__(self, module: Any, args: Any, kwargs: Any) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()  # hooks with always_call that have run

    def run(self) -> Any:
        module = self.module
        full_hooks, other_hooks = module._get_backward_hooks()
        pre_hooks = module._get_backward_pre_hooks()
        self._run_pre_hooks()
        watch = None
        if full_hooks or pre_hooks:
            watch = BackwardHook(module, full_hooks, pre_hooks)
            self.args = watch.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self._run_forward_hooks()
        if watch is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor "
                    f"or a tuple of Tensors but received {type(self.result)}",
                    stacklevel=2,
                )
            self.result = watch.setup_output_hook(self.result)
        if other_hooks:
            self._attach_non_full(other_hooks)
        return self.result

    def _run_pre_hooks(self) -> None:
        module = self.module
        for hook_id, hook in (
            *_global_forward_pre_hooks.items(),
            *module._forward_pre_hooks.items(),
        ):
            if hook_id not in module._forward_pre_hooks_with_kwargs:
                replaced = hook(module, self.args)
                if replaced is not None:
                    is_tuple = isinstance(replaced, tuple)
                    self.args = replaced if is_tuple else (replaced,)
                continue
            replaced = hook(module, self.args, self.kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, "
                    f"new_kwargs), but got {replaced}."
                )
            self.args, self.kwargs = replaced

    def _run_forward_hooks(self) -> None:
        module = self.module
        for hook_id, hook in (
            *_global_forward_hooks.items(),
            *module._forward_hooks.items(),
        ):
            # Marked before the call: a hook that raises is not called again.
            self.called.add(hook_id)
            with_kwargs = (
                hook_id in module._forward_hooks_with_kwargs
                or hook_id in _global_forward_hooks_with_kwargs
            )
            self._run_forward_hook(hook, with_kwargs)

    def _run_forward_hook(self, hook: Callable[..., Any], with_kwargs: bool) -> None:
        if with_kwargs:
            replaced = hook(self.module, self.args, self.kwargs, self.result)
        else:
            replaced = hook(self.module, self.args, self.result)
        if replaced is not None:
            self.result = replaced

    def run_always_called(self) -> None:
        """After an error: the hooks that want to run nonetheless."""
        module = self.module
        for where, hooks, always, with_kwargs in (
            (
                "global module",
                _global_forward_hooks,
                _global_forward_hooks_always_called,
                {},  # PyTorch passes no keywords to global hooks here
            ),
            (
                "module",
                module._forward_hooks,
                module._forward_hooks_always_called,
                module._forward_hooks_with_kwargs,
            ),
        ):
            for hook_id, hook in hooks.items():
                if hook_id not in always or hook_id in self.called:
                    continue
                try:
                    self._run_forward_hook(hook, hook_id in with_kwargs)
                except Exception as e:
                    warnings.warn(
                        f"{where} forward hook with ``always_call=True`` raised an "
                        "exception that was silenced as another error was raised in "
                        f"forward: {e}",
                        stacklevel=2,
                    )

    def _attach_non_full(self, hooks: list[Any]) -> None:
        first = self.result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        node = first.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, self.module))
        missing = _what_a_non_full_hook_misses(self.args, self.result, node)
        if missing is not None:
            warnings.warn(missing, FutureWarning, stacklevel=2)


_USE_FULL = " Please use register_full_backward_hook to get the documented behavior."


def _what_a_non_full_hook_misses(inputs: Any, result: Any, node: Any) -> str | None:
    """The warning that this call deserves, if any."""
    results = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        return (
            "Using non-full backward hooks on a Module that does not return a single "
            "Tensor or a tuple of Tensors is deprecated and will be removed in future "
            "versions. This hook will be missing some of the grad_output." + _USE_FULL
        )
    args = (inputs,) if isinstance(inputs, Tensor) else inputs
    if not (isinstance(args, tuple) and all(isinstance(a, Tensor) for a in args)):
        return (
            "Using non-full backward hooks on a Module that does not take as input a "
            "single Tensor or a tuple of Tensors is deprecated and will be removed in "
            "future versions. This hook will be missing some of the grad_input."
            + _USE_FULL
        )
    nodes = {r.grad_fn for r in results if r.grad_fn is not None}
    if not nodes or (len(nodes) == 1 and node not in nodes):
        return (
            "Using a non-full backward hook when outputs are nested in python data "
            "structure is deprecated and will be removed in future versions. This hook "
            "will be missing some grad_output."
        )
    if len(nodes) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different "
            "autograd Nodes is deprecated and will be removed in future versions. This "
            "hook will be missing some grad_output." + _USE_FULL
        )
    input_nodes = {a.grad_fn for a in args if a.grad_fn is not None}
    if input_nodes != {following for following, _ in node.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple "
            "autograd Nodes is deprecated and will be removed in future versions. This "
            "hook will be missing some grad_input." + _USE_FULL
        )
    return None
