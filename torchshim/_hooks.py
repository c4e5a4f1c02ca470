"""Handles that take a registered hook out again."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from torchshim import _warnings as warnings

_F = TypeVar("_F", bound=Callable[..., Any])

# The number of the next handle. Not in the class: a change of a class slows what uses
# it next.
_handles = [0]


class _CountsHandles(type):
    @property
    def next_id(cls) -> int:
        """The number that the next handle gets."""
        return _handles[0]

    @next_id.setter
    def next_id(cls, number: int) -> None:
        _handles[0] = number


class RemovableHandle(metaclass=_CountsHandles):
    """What a ``register_*hook`` call returns; `remove` undoes the registration.

    Follows ``torch.utils.hooks.RemovableHandle``. Usable as a context manager.

    >>> from collections import OrderedDict
    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    __module__ = "torchshim.utils.hooks"
    id: int
    extra_dict_ref: tuple[Any, ...] = ()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = _handles[0]
        _handles[0] += 1
        if extra_dict is not None:
            extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(weakref.ref(e) for e in extras if e is not None)

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        extras = tuple(ref() for ref in self.extra_dict_ref)
        return self.hooks_dict_ref(), self.id, extras

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks_dict, self.id, *rest = state
        # A dict that died before pickling leaves a handle that removes nothing.
        self.hooks_dict_ref = weakref.ref(
            OrderedDict() if hooks_dict is None else hooks_dict
        )
        extras = rest[0] if rest and rest[0] is not None else ()
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def unserializable_hook(f: _F) -> _F:
    """Mark a tensor hook that pickling may drop without a warning."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn for each backward hook of `tensor` that pickling will lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                "expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


# What names blocks in a profile (`record_function`), while something is profiled.
naming: list[Callable[[str], Any]] = []
