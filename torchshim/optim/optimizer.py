"""`Optimizer`: parameter groups, state, hooks; what every optimizer is built on."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core.dtypes import float32
from torchshim._core.record import local
from torchshim._hooks import RemovableHandle, naming
from torchshim._tensor import Tensor
from torchshim.nn.modules._base import typename
from torchshim.optim._parts import (  # noqa: F401 -- found here in PyTorch
    Args,
    DeviceDict,
    DeviceDtypeDict,
    Kwargs,
    StateDict,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _view_as_real,
)
from torchshim.utils._foreach_utils import (  # noqa: F401
    Indices,
    TensorListList,
    _foreach_supported_types,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT = Iterable[Any]
Hooks = OrderedDict[int, Callable[..., Any]]

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """Stands in `defaults` for an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


class grad_mode:
    """Sets whether operators are tracked, and puts it back."""

    __slots__ = ("_before", "_mode")

    def __init__(self, mode: bool) -> None:
        self._mode = bool(mode)

    def __enter__(self) -> None:
        rec = local.rec
        self._before = rec.grad
        rec.set_grad(self._mode)

    def __exit__(self, *exc_info: object) -> None:
        local.rec.set_grad(self._before)


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a `step` without tracking, or with it where the optimizer says so."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with grad_mode(self.defaults.get("differentiable", False)):
            return func(self, *args, **kwargs)

    return step


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """The loss that a step's closure computes, with gradients tracked."""
    if closure is None:
        return None
    with grad_mode(True):
        return closure()


def _register(hooks: Hooks, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have `hook(optimizer, args, kwargs)` called before each step of any optimizer.

    It may return new ``(args, kwargs)``. Follows
    ``torch.optim.optimizer.register_optimizer_step_pre_hook``.

    >>> from torchshim.optim import optimizer
    >>> hook = lambda optimizer, args, kwargs: None
    >>> optimizer.register_optimizer_step_pre_hook(hook).remove()
    """
    return _register(_global_optimizer_pre_hooks, hook, False)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have `hook(optimizer, args, kwargs)` called after each step of any optimizer.

    >>> from torchshim.optim import optimizer
    >>> hook = lambda optimizer, args, kwargs: None
    >>> optimizer.register_optimizer_step_post_hook(hook).remove()
    """
    return _register(_global_optimizer_post_hooks, hook, False)


_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """The base of all optimizers.

    `params`: tensors, pairs of name and tensor, or dicts that describe groups;
    `defaults`: options of groups that do not give them. A subclass defines `step`.
    Follows ``torch.optim.Optimizer``.

    >>> import torchshim as torch
    >>> class Descent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> p = torch.nn.Parameter(torch.tensor([1.0]))
    >>> p.grad = torch.tensor([2.0])
    >>> Descent([p], lr=0.25).step()
    >>> p.tolist()
    [0.5]
    """

    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {typename(params)}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        self._warned_capturable_if_run_uncaptured = True

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(
                f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"
            )
        return text + ")"

    # -- stepping ----------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters once; `closure` computes the loss anew."""
        raise NotImplementedError

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: Any, with_indices: bool = False
    ) -> dict[Any, Any]:
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A `step` with the hooks around it, which ends by running the program."""

        def step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if self._optimizer_step_pre_hooks or _global_optimizer_pre_hooks:
                args, kwargs = _run_pre_hooks(func, self, args, kwargs)
            out = func(*args, **kwargs)
            if self._optimizer_step_post_hooks or _global_optimizer_post_hooks:
                for hook in chain(
                    self._optimizer_step_post_hooks.values(),
                    _global_optimizer_post_hooks.values(),
                ):
                    hook(self, args, kwargs)
            # A training step is one program. What the user differentiates through is
            # left open for what follows.
            if not self.defaults.get("differentiable"):
                local.rec.flush()
            return out

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not naming:
                return step(*args, **kwargs)
            with naming[-1](f"Optimizer.step#{type(args[0]).__name__}.step"):
                return step(*args, **kwargs)

        return wrapper

    def _patch_step_function(self) -> None:
        name = type(self).__name__
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{name}.zero_grad"
        step = type(self).step
        if not getattr(step, "hooked", None):
            wrapped = self.profile_hook_step(step)
            wrapped.hooked = True
            type(self).step = wrapped

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients, or sets them to zero.

        Follows ``torch.optim.Optimizer.zero_grad``.

        >>> import torchshim as torch
        >>> p = torch.nn.Parameter(torch.ones(1))
        >>> p.grad = torch.ones(1)
        >>> torch.optim.SGD([p]).zero_grad()
        >>> print(p.grad)
        None
        """
        if not naming:
            return self._forget_gradients(set_to_none)
        with naming[-1](self._zero_grad_profile_name):
            return self._forget_gradients(set_to_none)

    def _forget_gradients(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    # -- hooks -------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, kwargs)` called before each step.

        It may return new ``(args, kwargs)``; `args` starts with the optimizer.
        """
        return _register(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, kwargs)` called after each step."""
        return _register(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer)` called before `state_dict` collects."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer, state_dict)` change, or replace, what was collected."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer, state_dict)` change, or replace, what is loaded."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer)` called after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # -- state dicts -------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state of each parameter, by its number, and the groups' options.

        The tensors are those of the optimizer, not copies. Follows
        ``torch.optim.Optimizer.state_dict``.

        >>> import torchshim as torch
        >>> p = torch.nn.Parameter(torch.ones(1))
        >>> torch.optim.SGD([p], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        packed_groups: list[dict[str, Any]] = []
        start = 0
        for group in self.param_groups:
            params = group["params"]
            for i, p in enumerate(params, start):
                numbers.setdefault(id(p), i)
            start += len(params)
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in params]
            packed_groups.append(packed)
        state_dict = {
            "state": {
                numbers[id(k)] if isinstance(k, Tensor) else k: v
                for k, v in self.state.items()
            },
            "param_groups": packed_groups,
        }
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replaced = post_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave, of this or another optimizer.

        Parameters correspond by their place in the groups. ValueError where the groups
        differ in number or size. Follows ``torch.optim.Optimizer.load_state_dict``.

        >>> import torchshim as torch
        >>> make = lambda lr: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr)
        >>> a, b = make(0.1), make(0.2)
        >>> a.load_state_dict(b.state_dict())
        >>> a.param_groups[0]["lr"]
        0.2
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups"
            )
        if any(
            len(g["params"]) != len(s["params"])
            for g, s in zip(groups, saved_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the "
                "size of optimizer's group"
            )
        params: dict[Any, Any] = {}
        for group, saved in zip(groups, saved_groups, strict=True):
            params.update(zip(saved["params"], group["params"], strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                param = params[number]
                options = _options_of(number, state_dict["param_groups"])
                state[param] = _cast(param, value, options, None)
            else:
                state[number] = value
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    # -- groups ------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, with options of its own.

        TypeError for what is no tensor, ValueError for tensors that are no leaves or
        stand in a group already. Follows ``torch.optim.Optimizer.add_param_group``.

        >>> import torchshim as torch
        >>> a, b = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
        >>> optimizer = torch.optim.SGD([a], lr=0.1)
        >>> optimizer.add_param_group({"params": b, "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use "
                "a list instead."
            )
        else:
            params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        param_group["params"] = params
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param "
                    "names are missing"
                )
            param_group["param_names"] = names
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + typename(param)
                )
            if not self.defaults.get("differentiable", None) and not (
                param.is_leaf or param.retains_grad
            ):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known: set[int] = set()
        for group in self.param_groups:
            known.update(id(p) for p in group["params"])
            if ("param_names" in param_group) != ("param_names" in group):
                which = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot "
                    f"add param group {which} names to the optimizer"
                )
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _run_pre_hooks(func: Any, self: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    for hook in chain(
        _global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()
    ):
        result = hook(self, args, kwargs)
        if result is None:
            continue
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(
                f"{func} must return None or a tuple of (new_args, new_kwargs), but "
                f"got {result}."
            )
        args, kwargs = result
    return args, kwargs


def _options_of(number: Any, groups: list[dict[str, Any]]) -> dict[str, Any]:
    for group in groups:
        if number in group["params"]:
            return group
    return {}


def _cast(param: Any, value: Any, options: dict[str, Any], key: Any) -> Any:
    """A loaded value with its tensors in the dtype and on the device of `param`."""
    if isinstance(value, Tensor):
        if key == "step":
            # Counted on the host, unless the step itself is to run on the device.
            if options.get("capturable") or options.get("fused"):
                return _to(value, dtype=float32, device=param.device)
            return value
        if param.is_floating_point():
            return _to(value, dtype=param.dtype, device=param.device)
        return _to(value, device=param.device)
    if isinstance(value, dict):
        return {k: _cast(param, v, options, k) for k, v in value.items()}
    if isinstance(value, Iterable):
        return type(value)(_cast(param, v, options, None) for v in value)  # type: ignore[call-arg]
    return value


def _to(value: Any, **target: Any) -> Any:
    return value.to(**target)
