"""What users do with the nodes of the graph: hooks and calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.batching import alone
from torchshim._core.hooks import place_of
from torchshim._core.meta import Meta
from torchshim._core.naming import (
    REPLACED_NONE,
    check_replacement,
    flows_of,
    grad_name,
    keeps_transpose,
    outputs_of,
)
from torchshim._core.node import AccumulateGrad, GradientEdge, Node, edge_of
from torchshim._core.record import local
from torchshim._core.walk import Walk
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor


def _named(hook: Any) -> str:
    name = getattr(hook, "__name__", None)
    return f"'{name}'" if name is not None else repr(hook)


def _replacement(hook: Any, given: tuple[Any, ...], result: Any) -> Any:
    """What a node's hook returned, checked against what it stands in for."""
    if result is None:
        return None
    if not isinstance(result, tuple):
        kind = "Tensor" if isinstance(result, Tensor) else type(result).__name__
        raise TypeError(f"expected tuple, but hook returned '{kind}'")
    if len(result) != len(given):
        raise RuntimeError(
            f"hook {_named(hook)} has returned an incorrect number of values (got "
            f"{len(result)}, but expected {len(given)})"
        )
    for before, after in zip(given, result, strict=True):
        if after is None:
            continue
        if before is None:
            raise RuntimeError(REPLACED_NONE)
        check_replacement(hook, before, after)
    return result


def _hook_tables(node: Node) -> tuple[Any, Any]:
    recording, event = node._recording, node._event
    tables = recording.node_hooks.get(event.depth)
    if tables is None:
        tables = recording.node_hooks[event.depth] = OrderedDict(), OrderedDict()
        local.rec.mark("node hook", event.slot)
    return tables


def register_hook(self: Node, fn: Callable[..., Any]) -> RemovableHandle:
    """Calls `fn(grad_inputs, grad_outputs)` after each run of this node's backward."""
    table = _hook_tables(self)[1]
    handle = RemovableHandle(table)
    turned = _of_transposed(self)

    def hook(inputs: Any, outputs: Any) -> Any:
        return _replacement(fn, inputs, fn(inputs, outputs))

    def hook_of_turned(inputs: Any, outputs: Any) -> Any:
        return _turned(turned, hook(_turned(turned, inputs), outputs))

    table[handle.id] = hook if turned is None else hook_of_turned
    return handle


def _of_transposed(self: Node) -> int | None:
    """Which gradient is of a matrix that PyTorch's node has transposed, if one is."""
    event = self._event
    call = alone(event.call)
    if grad_name(event) not in ("AddmmBackward0", "MmBackward0"):
        return None
    for k, i in enumerate(flows_of(event)):
        if i is not None and keeps_transpose(call, call.owners[i]):
            return k
    return None


def _turned(k: Any, grads: Any) -> Any:
    """The gradients with the one at `k` transposed."""
    if grads is None or grads[k] is None:
        return grads
    return (*grads[:k], grads[k].t(), *grads[k + 1 :])


def register_prehook(self: Node, fn: Callable[..., Any]) -> RemovableHandle:
    """Calls `fn(grad_outputs)` before each run of this node's backward."""
    table = _hook_tables(self)[0]
    handle = RemovableHandle(table)
    table[handle.id] = lambda outputs: _replacement(fn, outputs, fn(outputs))
    return handle


def _leaf_register_hook(self: AccumulateGrad, fn: Any) -> RemovableHandle:
    """Calls `fn((), grad_outputs)` after each accumulation."""
    if not isinstance(self.post, OrderedDict):
        self.post = OrderedDict()
    handle = RemovableHandle(self.post)
    self.post[handle.id] = lambda inputs, outputs: _replacement(
        fn, inputs, fn(inputs, outputs)
    )
    self.variable._node = self
    return handle


def _leaf_register_prehook(self: AccumulateGrad, fn: Any) -> RemovableHandle:
    """Calls `fn(grad_outputs)` before each accumulation."""
    if not isinstance(self.pre, OrderedDict):
        self.pre = OrderedDict()
    handle = RemovableHandle(self.pre)
    self.pre[handle.id] = lambda outputs: _replacement(fn, outputs, fn(outputs))
    self.variable._node = self
    return handle


def _call(self: Node, *grads: Any) -> Any:
    """Runs the node's backward on gradients of its outputs."""
    recording, event = self._recording, self._event
    known = outputs_of(event)
    _check_given(self, grads, [event.metas[k] for k in known])
    rec = local.rec
    walk = Walk(rec, True, rec.grad, False)
    walk.frozen = None if recording.state else rec.state
    arrived: list[Any] = [None] * len(event.metas)
    for k, grad in zip(known, grads, strict=True):
        arrived[k] = grad
    outs = walk.backward(recording, event, arrived, event.wrt)
    given = dict(zip(event.wrt, outs, strict=True))
    found = tuple(None if i is None else given.get(i) for i in flows_of(event))
    return found[0] if len(found) == 1 else found


def _check_given(node: Node, grads: Sequence[Any], metas: Sequence[Meta]) -> None:
    if len(grads) != len(metas):
        raise TypeError(f"expected {len(metas)} arguments, got {len(grads)} instead")
    for i, (grad, meta) in enumerate(zip(grads, metas, strict=True)):
        if grad is None:
            continue
        if not isinstance(grad, Tensor):
            raise TypeError(f"argument {i} is not a Variable")
        if grad._tmeta.shape != meta.shape:
            raise RuntimeError(
                f"{node.name()} was called with an invalid gradient at index {i} - got "
                f"{list(grad._tmeta.shape)} but expected {list(meta.shape)}"
            )


def _call_accumulator(self: AccumulateGrad, *grads: Any) -> tuple[()]:
    """Adds a gradient to the leaf's `.grad`; of its hooks those after that run."""
    leaf = self.variable
    _check_given(self, grads, [leaf._tmeta])
    if grads[0] is not None:
        leaf._accumulate(grads[0], local.rec.grad, True)
    if leaf._hooks is not None:
        leaf._hooks.accumulated(leaf)
    return ()


class _InputMetadata:
    """What is known of a gradient before it comes."""

    __slots__ = ("device", "dtype", "shape")
    __module__ = "torch._C._autograd"
    # Nested tensors are refused.
    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("torch._C._autograd._InputMetadata: No constructor defined!")

    @classmethod
    def of(cls, meta: Meta) -> _InputMetadata:
        """Of the gradient of a value."""
        self = cls.__new__(cls)
        self.shape, self.dtype = list(meta.shape), meta.dtype
        self.device = meta.device
        return self


def _input_metadata(self: Any) -> tuple[_InputMetadata, ...]:
    """Shape, dtype and device of each value whose gradient comes in."""
    if isinstance(self, AccumulateGrad):
        metas = [self.variable._tmeta]
    else:
        metas = [self._event.metas[k] for k in outputs_of(self._event)]
    return tuple([_InputMetadata.of(meta) for meta in metas])


def gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that a tensor's gradient flows through."""
    if not tensor._tmeta.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    if tensor._view_note is not None:
        local.rec.check_current(tensor)
    if tensor._inherits:  # a view made under `no_grad`: no gradient comes there
        raise AssertionError("Expected gradient function to be set")
    tensor._unaware = False
    return GradientEdge(*edge_of(*place_of(local.rec, tensor)))


Node.register_hook = register_hook  # type: ignore[attr-defined]
Node.register_prehook = register_prehook  # type: ignore[attr-defined]
Node.__call__ = _call
Node._input_metadata = property(_input_metadata)  # type: ignore[attr-defined]
Node.requires_grad = True  # type: ignore[attr-defined]
AccumulateGrad.register_hook = _leaf_register_hook  # type: ignore[attr-defined]
AccumulateGrad.register_prehook = _leaf_register_prehook  # type: ignore[attr-defined]
AccumulateGrad.__call__ = _call_accumulator
AccumulateGrad._input_metadata = property(_input_metadata)  # type: ignore[attr-defined]
AccumulateGrad.requires_grad = True  # type: ignore[attr-defined]
