"""The graph that autograd recorded, and hooks on it.

https://docs.pytorch.org/docs/2.13/autograd.html#autograd-graph
"""

from __future__ import annotations

import abc
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torchshim._core import node as _core_node
from torchshim._core.node import GradientEdge
from torchshim._core.noted import watch
from torchshim._core.record import local
from torchshim._core.storage import shown_version
from torchshim._core.walk import walking
from torchshim._functions.nodes import gradient_edge
from torchshim._functions.reshape_in_place import count_write
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor
from torchshim.autograd import saving
from torchshim.autograd._tasks import will_execute
from torchshim.autograd.variable import Variable as Variable

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """What all nodes of a graph are; no node is made of it.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.Node
    """

    @abc.abstractmethod
    def name(self) -> str:
        """What the node is called."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node and the number of its output that each gradient goes to."""

    @abc.abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """What anybody noted at the node."""

    @abc.abstractmethod
    def _sequence_nr(self) -> int:
        """The larger, the later the node was made."""

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Hangs a tensor's hooks on the node."""

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> list[Any]:
        """Shape, dtype and device of the gradients that the node takes."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_inputs, grad_outputs)` after each run of the node."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_outputs)` before each run of the node."""

    @classmethod
    def __subclasshook__(cls, subclass: type, /) -> bool:
        if cls is Node and issubclass(subclass, _core_node.Node):
            return True
        return NotImplemented


class saved_tensors_hooks:
    """Within it `pack_hook` gets what operators keep for backward.

    What it returns is kept instead; `unpack_hook` turns that into a tensor again when
    the backward needs it.
    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.saved_tensors_hooks

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.item(), lambda v: torch.tensor(v)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        saving.push_checked(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        saving.pop()


class save_on_cpu(saved_tensors_hooks):
    """Within it what operators keep for backward is kept in the host's memory.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.save_on_cpu

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            return tensor.device, tensor.cpu()

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within it using saved-tensor hooks raises an error with this message.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.disable_saved_tensors_hooks

    >>> with disable_saved_tensors_hooks("not here"):
    ...     pass
    """
    if not isinstance(error_message, str):
        raise TypeError(
            "_saved_tensors_hooks_disable(): incompatible function arguments. The "
            "following argument types are supported:\n    1. (error_message: str, "
            "fail_if_non_empty: bool = True) -> None\n\nInvoked with: "
            f"{error_message!r}"
        )
    with saving.forbidden(error_message):
        yield


class _Kept:
    """One value that was kept, and whether its tensor was written to since."""

    __slots__ = ("__weakref__", "tensor", "value", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)
        self.version = shown_version(tensor)
        self.value = tensor.clone()

    def written(self) -> bool:
        tensor = self.tensor()
        return tensor is not None and shown_version(tensor) != self.version


class _AllowMutationOnSavedContext:
    """What is kept within `allow_mutation_on_saved_tensors`."""

    def __init__(self) -> None:
        self._kept: weakref.WeakValueDictionary[Any, _Kept] = (
            weakref.WeakValueDictionary()
        )
        # All of them; a key may be another tensor's by now.
        self._all: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def pack(self, tensor: Tensor) -> _Kept:
        watch(local.rec)
        key = id(tensor), shown_version(tensor)
        kept = self._kept.get(key)
        if kept is None or kept.tensor() is not tensor:
            kept = self._kept[key] = _Kept(tensor)
            self._all.add(kept)
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        if kept not in self._all or _Mutation.allowed is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' "
                "contextin which the graph was originally recorded."
            )
        return kept.value

    @property
    def tid_to_weakhandle(self) -> dict[Any, _Kept]:
        """What is kept, by tensor and version."""
        return dict(self._kept)

    @property
    def cloned(self) -> dict[Any, Tensor]:
        """The values whose tensors were written to since they were kept."""
        return {kept: kept.value for kept in self._all if kept.written()}

    @property
    def original(self) -> dict[Any, Tensor]:
        """The other values."""
        return {kept: kept.value for kept in self._all if not kept.written()}

    def clear(self) -> None:
        """Forgets everything."""
        self._kept.clear()
        self._all.clear()


class _Mutation:
    allowed: _AllowMutationOnSavedContext | None = None


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Within it tensors kept for backward may be written to: a copy is kept.

    The backward must be within it, too (AssertionError); it does not nest
    (RuntimeError).
    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors

    >>> import torchshim as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y**2
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor(4.)
    """
    if _Mutation.allowed is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        _Mutation.allowed = context
        try:
            yield context
        finally:
            context.clear()
            _Mutation.allowed = None


def region_activation_memory_budget(
    budget: float,
) -> contextlib.AbstractContextManager[None]:
    """Chooses what a compiled region keeps; raises RuntimeError outside of one.

    XLA decides that here, and `torch.utils.checkpoint` for parts of a program.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in "
        "eager mode."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn of streams that do not match: XLA has none, so none ever do."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What to do about streams outside of a capture: XLA has none."""


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge that the gradient of `tensor` flows through.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.graph.get_gradient_edge.html

    >>> import torchshim as torch
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    return gradient_edge(tensor)


def _get_grad_fn_or_grad_acc(t: Any) -> Any:
    """The node that a tensor's gradient goes to; that of an edge."""
    if isinstance(t, GradientEdge):
        return t.node
    node = get_gradient_edge(t).node if t.requires_grad else None
    if node is None:
        raise AssertionError("Expected gradient function to be set")
    return node


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells autograd that the memory of a tensor was written to behind its back.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.graph.increment_version.html

    >>> import torchshim as torch
    >>> x = torch.tensor(1.0)
    >>> increment_version(x)
    >>> x._version
    1
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                "increment_version expects each element of the iterable to be a tensor"
            )
        count_write(each)


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors at once."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Calls `fn` when a backward pass has the gradients of several tensors.

    With mode "all" `fn` gets the list of them (None for those that the pass does not
    reach); with "any" it gets the first one.
    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.register_multi_grad_hook

    >>> import torchshim as torch
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> y = torch.tensor(2.0, requires_grad=True)
    >>> handle = register_multi_grad_hook([x, y], lambda g: print(len(g)))
    >>> (x * y).backward()
    2
    """
    supported_modes = ("all", "any")
    if mode not in supported_modes:
        raise ValueError(f"Expects mode to be one of {supported_modes} but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        # (By the walk itself, which may end in an error: a number is used again.)
        ran: weakref.WeakSet[Any] = weakref.WeakSet()

        @functools.wraps(fn)
        def first(grad: Tensor) -> None:
            walk = _running_walk()
            with lock:
                before = walk in ran
                ran.add(walk)
            if not before:
                fn(grad)

        return _MultiHandle(
            tuple(t.register_hook(first) for t in tensors if t.requires_grad)
        )
    size = len(tensors)
    nodes = [_get_grad_fn_or_grad_acc(tensor) for tensor in tensors]
    pending: weakref.WeakKeyDictionary[Any, tuple[int, list[Any], list[int]]] = (
        weakref.WeakKeyDictionary()
    )

    def hook_of(position: int) -> Callable[[Tensor], None]:
        def inner(grad: Tensor) -> None:
            walk = _running_walk()
            with lock:
                entry = pending.get(walk)
                if entry is None:
                    expected = sum(will_execute(node) for node in nodes)
                    entry = pending[walk] = expected, [None] * size, []
            entry[1][position] = grad
            entry[2].append(position)
            if len(entry[2]) == entry[0]:
                # What comes after it, if PyTorch counted too few, counts anew.
                pending[walk] = entry[0], [None] * size, []
                fn(entry[1])

        return inner

    return _MultiHandle(
        tuple(t.register_hook(hook_of(i)) for i, t in enumerate(tensors))
    )


def _running_walk() -> Any:
    stack = walking.stack
    if not stack:
        raise AssertionError("expected this hook to be called inside a backward call")
    return stack[-1]
