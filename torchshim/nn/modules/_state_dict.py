"""Saving a module's parameters and buffers in a dictionary, and loading them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torchshim
from torchshim import _warnings as warnings
from torchshim.__future__ import get_swap_module_params_on_conversion
from torchshim._functions.memory import swap_contents
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor
from torchshim.nn.modules._base import Hooks, ModuleBase
from torchshim.nn.modules._hooks import _WrappedHook
from torchshim.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


def _like(tensor: Any, new: Any) -> Any:
    """What takes the place of `tensor`: a parameter for one."""
    if not isinstance(tensor, Parameter):
        return new
    if isinstance(new, Parameter):
        return new.requires_grad_(tensor.requires_grad)
    return Parameter(new, requires_grad=tensor.requires_grad)


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _add(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class StateDict(ModuleBase):
    """`Module`'s ``state_dict``, ``load_state_dict`` and their hooks."""

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """Every parameter and persistent buffer by its dotted name.

        The tensors are detached and share their storage with the module; with
        `keep_vars` they are the module's own. ``_metadata`` of the result holds
        the version of each submodule. Follows ``torch.nn.Module.state_dict``.

        >>> from torchshim import nn
        >>> list(nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            given: tuple[Any, ...] = (*args, None, None, None)
            destination = given[0] if destination is None else destination
            prefix = given[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = given[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=f"{prefix}{name}.",
                    keep_vars=keep_vars,
                )
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = replaced
        return destination

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        transient = self._non_persistent_buffers_set
        for members, left_out in ((self._parameters, ()), (self._buffers, transient)):
            for name, tensor in members.items():
                if tensor is not None and name not in left_out:
                    saved = tensor if keep_vars else tensor.detach()
                    destination[prefix + name] = saved
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Override to put more into the state dict; see `set_extra_state`."""
        raise RuntimeError(_unreachable("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Override to read what `get_extra_state` put into the state dict."""
        raise RuntimeError(_unreachable("set_extra_state"))

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of `state_dict` into the module's.

        RuntimeError where shapes differ and, with `strict`, where keys are
        missing or not expected; without it the two lists are returned. `assign`
        makes the given tensors themselves the module's. Follows
        ``torch.nn.Module.load_state_dict``.

        >>> from torchshim import nn
        >>> m = nn.Linear(2, 1)
        >>> m.load_state_dict(nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        metadata = getattr(state_dict, "_metadata", None)
        copied: Any = OrderedDict(state_dict)
        if metadata is not None:
            copied._metadata = metadata
        errors: list[str] = []
        keys = _IncompatibleKeys([], [])
        _load(self, copied, "", metadata, assign, keys, errors)
        if strict:
            for kind, names in (
                ("Unexpected", keys.unexpected_keys),
                ("Missing", keys.missing_keys),
            ):
                if names:
                    listed = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        members: dict[str, Tensor | None] = {**self._parameters}
        for name, buffer in self._buffers.items():
            if name not in self._non_persistent_buffers_set:
                members[name] = buffer
        present = {name: t for name, t in members.items() if t is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in present.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_member(name, tensor, key, state_dict[key], assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if _overrides(self, "set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if not strict:
            return
        for key in state_dict:
            if not key.startswith(prefix) or key == extra_key:
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            # A dotted key is its submodule's business, if there is such a one.
            if first not in (self._modules if dot else present):
                unexpected_keys.append(key)

    def _load_member(
        self, name: str, tensor: Any, key: str, loaded: Any, assign: bool
    ) -> str | None:
        """Copy one tensor in, or say what is wrong with it."""
        if not isinstance(loaded, Tensor) and not hasattr(
            type(loaded), "__torch_function__"
        ):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(loaded)}"
            )
        if not is_lazy(tensor):
            # Checkpoints of PyTorch before 0.4 hold scalars with one dimension.
            if len(tensor.shape) == 0 and tuple(loaded.shape) == (1,):
                loaded = loaded[0]
            if loaded.shape != tensor.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape "
                    f"{loaded.shape} from checkpoint, the shape in current model is "
                    f"{tensor.shape}."
                )
        if tensor.is_meta and not loaded.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a "
                "meta parameter in the current model, which is a no-op. (Did you mean "
                "to pass `assign=True` to assign items in the state dictionary to "
                "their corresponding key in the module instead of copying them in "
                "place?)",
                stacklevel=2,
            )
        swap = get_swap_module_params_on_conversion()
        try:
            with torchshim.no_grad():
                if swap:
                    new = tensor.module_load(loaded, assign=assign)
                    if new is loaded or new is tensor:
                        raise RuntimeError(
                            "module_load returned one of self or other, please "
                            ".detach() the result if returning one of the inputs in "
                            "module_load"
                        )
                    swap_contents(tensor, _like(tensor, new))
                elif assign:
                    setattr(self, name, _like(tensor, loaded))
                else:
                    tensor.copy_(loaded)
        except Exception as e:
            action = "swapping" if swap else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the '
                f"model are {tensor.size()} and whose dimensions in the checkpoint are "
                f"{loaded.size()}, an exception occurred : {e.args}."
            )
        return None

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects.

        >>> from torchshim import nn
        >>> m = nn.ReLU()
        >>> _ = m.register_state_dict_pre_hook(lambda *args: print(args[1:]))
        >>> _ = m.state_dict()
        ('', False)
        """
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` afterwards.

        The hook changes the state dict in place; returning something is a
        RuntimeError.

        >>> from torchshim import nn
        >>> m = nn.ReLU()
        >>> _ = m.register_state_dict_post_hook(lambda m, d, *_: d.update(epoch=3))
        >>> m.state_dict()["epoch"]
        3
        """
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that "
                "was previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call `hook` with the module before `load_state_dict` copies into it.

        Its arguments are ``(module, state_dict, prefix, local_metadata, strict,
        missing_keys, unexpected_keys, error_msgs)``.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = _WrappedHook(hook, self if with_module else None)
        return _add(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after `load_state_dict`.

        The hook may change the two lists in place: what it takes out of them is
        no error any more.
        """
        return _add(self._load_state_dict_post_hooks, hook)


def _load(
    module: Any,
    state: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    keys: _IncompatibleKeys,
    errors: list[str],
) -> None:
    """Load a module and those within. Hooks are given `keys`."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, local_metadata, True, *keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = f"{prefix}{name}."
            below = {k: v for k, v in state.items() if k.startswith(inner)}
            _load(child, below, inner, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                "expected to return new values, if incompatible_keys need to be "
                "modified, it should be done inplace."
            )


def _overrides(module: ModuleBase, method: str) -> bool:
    return getattr(type(module), method) is not getattr(StateDict, method)


def _unreachable(method: str) -> str:
    return (
        f"Reached a code path in Module.{method}() that should never be called. Please "
        "file an issue at https://github.com/pytorch/pytorch/issues/new"
        "?template=bug-report.yml to report this bug."
    )
