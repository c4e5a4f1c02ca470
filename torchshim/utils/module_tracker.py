"""Which modules are running, forward or backward.

https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/module_tracker.py
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from torchshim._core.walk import walking
from torchshim._pytree import tree_leaves
from torchshim._tensor import Tensor
from torchshim.autograd.graph import register_multi_grad_hook
from torchshim.autograd.variable import Variable
from torchshim.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]

_log = logging.getLogger(__name__)
_UNCLEAR = "The module hierarchy is unclear: %s was %s during %s."


class ModuleTracker:
    """A block that knows the modules that run at the moment, by their names.

    `parents` has their names and "Global"; `is_bw` is whether a backward runs.

    >>> import torchshim as torch
    >>> with ModuleTracker() as tracker:
    ...     tracker.parents
    {'Global'}
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str]
        self._names = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet[Module] = weakref.WeakSet()
        self._waits_for_end = False
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return bool(walking.stack)

    def _name_of(self, module: Module) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            self._seen.add(module)
            for inner, child in module.named_children():
                self._names[child] = f"{name}.{inner}"
                self._name_of(child)
        return name

    def _entering(self, name: str, backward: bool) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            if backward and not self._waits_for_end:
                self._waits_for_end = True
                Variable._execution_engine.queue_callback(self._ended)
            if name in self.parents:
                _log.info(_UNCLEAR, name, "entered again", _phase(backward))
            self.parents.add(name)

        return enter

    def _leaving(self, name: str, backward: bool) -> Callable[..., None]:
        def leave(*_: Any) -> None:
            if name not in self.parents:
                _log.info(_UNCLEAR, name, "left but not entered", _phase(backward))
            self.parents.discard(name)

        return leave

    def _ended(self) -> None:
        self.parents = {"Global"}
        self._waits_for_end = False

    def _watch(self, values: Any, hook: Callable[..., None]) -> None:
        tensors = [
            v for v in tree_leaves(values) if isinstance(v, Tensor) and v.requires_grad
        ]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, hook))

    def _before(self, module: Module, inputs: Any) -> None:
        name = self._name_of(module)
        self._entering(name, False)()
        self._watch(inputs, self._leaving(name, True))

    def _after(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self._leaving(name, False)()
        self._watch(output, self._entering(name, True))

    def __enter__(self) -> ModuleTracker:
        self._handles = (
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        )
        return self

    def __exit__(self, *error: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()


def _phase(backward: bool) -> str:
    return "backward" if backward else "forward"
