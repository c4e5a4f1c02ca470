"""Modules whose forward pass is computed again in the backward pass.

>>> import torchshim as torch
>>> from torchshim.distributed.algorithms._checkpoint import checkpoint_wrapper as wrap
>>> list(wrap.checkpoint_wrapper(torch.nn.Linear(1, 1)).state_dict())
['weight', 'bias']
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from torchshim import nn
from torchshim.autograd.graph import save_on_cpu
from torchshim.distributed.fsdp.wrap import (
    _Policy,
    _recursive_wrap,
    _wrap_chosen,
    lambda_auto_wrap_policy,
)
from torchshim.distributed.utils import (
    _pack_kwargs,
    _replace_by_prefix,
    _unpack_kwargs,
)
from torchshim.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(Enum):
    """Which of the two ways of `torch.utils.checkpoint` is taken."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module, ABC):
    """A module around another, whose names of parameters stay as they were."""

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What subclasses compute."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """As without the wrapper."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), param

    @staticmethod
    def _post_state_dict_hook(
        module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> dict[str, Any]:
        _replace_by_prefix(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(
        module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> None:
        _replace_by_prefix(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


class OffloadWrapper(ActivationWrapper):
    """A module that keeps what its backward pass needs in the memory of the host."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose forward pass is computed again in the backward pass."""

    def __init__(
        self,
        mod: nn.Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = checkpoint
            again = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs = {"use_reentrant": again, **checkpoint_fn_kwargs}
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inner = self._checkpoint_wrapped_module
        if not kwargs or self.checkpoint_impl is not CheckpointImpl.REENTRANT:
            return self.checkpoint_fn(inner, *args, **kwargs)
        flat, names = _pack_kwargs(*args, **kwargs)

        def call(*inputs: Any) -> Any:
            given, named = _unpack_kwargs(inputs, names)
            return inner(*given, **named)

        return self.checkpoint_fn(call, *flat)


def offload_wrapper(module: nn.Module) -> nn.Module:
    """The module, with what it keeps for its backward pass on the host."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> nn.Module:
    """The module, with its forward pass computed again in the backward pass."""
    return CheckpointWrapper(
        module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs
    )


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[..., nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
    auto_wrap_policy: Any = None,
) -> None:
    """Wraps the modules of a model that a function or a policy chooses, in place."""
    by_function: Any = partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    policy: Any = by_function if auto_wrap_policy is None else auto_wrap_policy
    if callable(policy):
        _recursive_wrap(
            model,
            policy,  # type: ignore[arg-type]
            checkpoint_wrapper_fn,
            set(),
            set(),
            only_wrap_children=True,
        )
        return
    if not isinstance(policy, _Policy):
        raise ValueError(
            f"Expected {policy} to be callable or be a pre-defined wrap policy"
        )
    _wrap_chosen(model, policy._run_policy(model, set(), {}), checkpoint_wrapper_fn)
