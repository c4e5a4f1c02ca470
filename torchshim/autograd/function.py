"""Custom differentiable functions: `Function` and its context.

https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-autograd
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from torchshim import _warnings as warnings
from torchshim._core.call import PythonCall
from torchshim._core.dtypes import type_name
from torchshim._core.levels import GRAD, JVP, VMAP
from torchshim._core.meta import Meta
from torchshim._core.node import Node
from torchshim._core.record import ForwardInputs, local, watchers
from torchshim._core.state import State
from torchshim._core.storage import TensorBase, base_of, set_version, version_of
from torchshim._core.views import differentiable
from torchshim.autograd import saving
from torchshim.autograd._composed_operands import (
    put_back,
    recorded_inputs,
    take_values,
)
from torchshim.autograd._context import (
    BackwardCFunction,
    FunctionCtx,
    Parameters,
    save,
)
from torchshim.autograd._marks import check_marked, check_saved, ids
from torchshim.autograd._transformed import (
    NEEDS_SETUP_CONTEXT,
    acting,
    behind_rule,
    forward_of,
    push_tangents,
    tangents_of,
)
from torchshim.autograd.grad_mode import no_grad

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

# PyTorch's bases of `Function`, and of its context.
_ContextMethodMixin = FunctionCtx

_numbers = itertools.count()
_new = object.__new__
_F = TypeVar("_F", bound="FunctionMeta")


class FunctionMeta(type):
    """Gives each custom function the class of its node."""

    _backward_cls: Any

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "__module__": "torch.autograd.function"},
        )
        cls._backward_cls._autograd_function_id = next(_numbers)
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom differentiable functions.

    Override `forward` and `backward` as static methods, and call `apply`.
    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.Function

    >>> import torchshim as torch
    >>> class Double(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad.item()
    2.0
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd "
            "functions are all static, so you should invoke them on the class itself. "
            "Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd."
            "Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; the first argument is the context, unless
        `setup_context` is overridden."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Notes what the backward needs, after a forward without a context."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs, one for each argument of `forward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = _missing_backward = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The derivatives of the outputs in the direction of `grad_inputs`."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use "
            "it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """What this function does under `torch.vmap`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )

    _missing_vmap = vmap

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward` and records that `backward` is its gradient."""
        rec = local.rec
        separate = cls.setup_context is not Function.setup_context
        if rec.levels and not separate and rec.transforming():
            raise RuntimeError(NEEDS_SETUP_CONTEXT)
        if separate or kwargs:
            args = _bound(cls, separate, args, kwargs)
        node = cls._backward_cls
        if rec.levels and separate:
            level = acting(rec.levels, args)
            if level is not None and level.kind == VMAP and not cls.generate_vmap_rule:
                # Its rule's own calls are what has a gradient.
                return forward_of(cls, args)
            if level is not None and level.kind in (GRAD, JVP):
                node = _transformed_node(cls)
        ctx = _new(node)
        grad = rec.grad
        tensors: list[Any] = []
        positions: list[int] = []
        needs: list[bool] = []
        metas: list[Meta] = []
        for at, arg in enumerate(args):
            if isinstance(arg, TensorBase):
                meta = arg._tmeta
                tensors.append(arg)
                positions.append(at)
                metas.append(meta)
                needs.append(meta.requires_grad)
            else:
                needs.append(False)
        ctx._needs, ctx._positions = needs, positions
        recorded = grad and True in needs
        # What each input is before the forward, which may change it in place.
        outer = given = rec.forward_inputs
        if recorded:
            slots: list[int] = []
            try:
                for tensor in tensors:  # (a comprehension is a call)
                    slots.append(rec.slot_of(tensor))
            except NotImplementedError:  # sparse tensors have none
                tensors, ctx._patterns = recorded_inputs(tensors, positions)
                slots = [rec.slot_of(tensor) for tensor in tensors]
                metas = [tensor._tmeta for tensor in tensors]
            given = ForwardInputs(tensors, slots, metas, outer)
        forward = rec.forward
        held = tangents_of(rec, args) if forward and rec.recording.duals else ()
        # The tangents of the outputs are what the user's `jvp` says, but for those of
        # levels around a `vmap` with a rule: its calls have them.
        ruled = behind_rule(rec, cls, args) if held and separate else ()
        rec.forward_inputs = given
        rec.forward = bool(ruled)
        rec.set_grad(False)
        try:
            if separate:
                output = forward_of(cls, args)
                rec.forward = False
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        finally:
            rec.forward = forward
            rec.set_grad(grad)
            rec.forward_inputs = outer
        single = not isinstance(output, tuple)
        outputs: list[Any] = [output] if single else list(output)
        known = tangents_of(rec, outputs) if ruled else ()
        marked = ctx.dirty_tensors or ctx.non_differentiable
        if marked:
            check_marked(ctx, recorded, {*map(id, tensors)}, outputs)
        if separate:
            check_saved(ctx, recorded, {*map(id, tensors)}, outputs)
        if recorded:
            if marked or not single or not _repeat(rec, ctx, given, output):
                _record(rec, ctx, given, outputs)
        else:
            outputs = _unrecorded(ctx, {*map(id, tensors)}, outputs)
        if held:
            push_tangents(rec, ctx, args, outputs, held, ruled, known)
        if ctx.to_save is not None:
            _save(ctx, recorded, outputs)
        return outputs[0] if single else tuple(outputs)


def _transformed_node(cls: Any) -> Any:
    """The class of a function's nodes within the transforms of `torch.func`."""
    found = cls.__dict__.get("_transformed_cls")
    if found is None:
        name, node = f"{cls.__name__}GeneratedBackward", cls._backward_cls
        found = type(name, (node,), {"__module__": node.__module__})
        cls._transformed_cls = found
    return found


def _bound(
    cls: Any, separate: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments by position, as the forward takes them."""
    node, forward = cls._backward_cls, cls.forward
    if node._parameters is None or node._parameters.forward is not forward:
        node._parameters = Parameters(forward)
    return node._parameters.bound(separate, args, kwargs)


@functools.lru_cache(4096)
def _event(node: type[Any], n_inputs: int, n_outputs: int) -> PythonCall:
    """What stands in recordings for the code of a function."""
    return PythonCall(node.__name__, n_inputs, n_outputs)


def _constant(out: Any, given: bool, dirty: bool) -> Any:
    """An output that gets no history; `given`: whether it is an input."""
    if out._tmeta.requires_grad:
        if given:
            return out.detach()
        if not out._is_view():
            out.detach_()
    elif given and not dirty:
        with no_grad():
            out = out.view_as(out)
    if out._is_view() and not (given and dirty):
        out._view_note = "custom"
    return out


def _unrecorded(ctx: Any, inputs: set[int], outputs: list[Any]) -> list[Any]:
    """The outputs where no history is kept."""
    dirty = ids(ctx.dirty_tensors)
    for k, out in enumerate(outputs):
        if isinstance(out, TensorBase):
            outputs[k] = _constant(out, id(out) in inputs, id(out) in dirty)
    return outputs


def _repeat(rec: Any, ctx: Any, given: ForwardInputs, out: Any) -> bool:
    """As `_record`, where this was recorded here before: one new output, not marked."""
    tensors, slots = given.tensors, given.slots
    if given.kept or watchers or not isinstance(out, TensorBase) or out._composed:
        return False
    if out._array is not None or out._storage is not None or out._tmeta.requires_grad:
        return False
    if out._node is not None or out._hist is not None or out._view_note is not None:
        return False
    for tensor in tensors:  # `all` takes twice as long
        if out is tensor:
            return False
    call = _event(type(ctx), len(slots), 1)
    state = rec.state.next.get((call, rec.bits, *slots, out._slot))
    if state is None:
        return False
    recording, rec.state = rec.recording, state
    recording.python[state.depth] = ctx
    ctx._where, ctx._at = weakref.ref(recording), state
    out._slot, out._tmeta = state.slot, state.metas[0]
    return True


def _record(rec: Any, ctx: Any, given: ForwardInputs, outputs: list[Any]) -> None:
    """Records the event whose backward is the user's code, and gives it the outputs."""
    rec.forward_inputs = given
    patterns = take_values(outputs)
    try:
        _record_each(rec, ctx, given, outputs)
    finally:
        rec.forward_inputs = given.outer
    if patterns:
        ctx._made_patterns = patterns
        put_back(outputs, patterns)


def _record_each(rec: Any, ctx: Any, given: ForwardInputs, outputs: list[Any]) -> None:
    """Sorts the outputs, records the event and gives each what it becomes."""
    inputs = {*map(id, given.tensors)}
    dirty, constant = ids(ctx.dirty_tensors), ids(ctx.non_differentiable)
    raws: list[Any] = []
    values: list[Any] = []
    aliases: set[int] = set()
    places: list[int] = []
    plain: dict[int, tuple[tuple[int, ...], Any, Any]] = {}
    for k, out in enumerate(outputs):
        if not isinstance(out, TensorBase):
            continue
        meta = out._tmeta
        if id(out) in constant or not differentiable(meta):
            plain[k] = tuple(meta.shape), meta.dtype, meta.device
            outputs[k] = _constant(out, id(out) in inputs, id(out) in dirty)
            continue
        if id(out) in inputs and id(out) not in dirty:
            # An input given back as it is becomes another tensor on its memory.
            with no_grad():
                alias = outputs[k] = outputs[k].detach()
            base = base_of(out)
            alias._made_on = out if base is None else base
            aliases.add(id(alias))
            out = alias
        raws.append(out)
        values.append(_untracked(rec, out) if out._tmeta.requires_grad else out)
        places.append(k)
    ctx._n_outs, ctx._outputs, ctx._plain_outputs = len(outputs), tuple(places), plain
    if not raws:
        return
    state = _attach(rec, ctx, given, values)
    for k, out in enumerate(raws):
        if id(out) in dirty and id(out) in inputs and out._view_of is not None:
            # Its base and the other views get the history, too.
            set_version(out, version_of(out) - 1)  # which this counts again
            rec.write(out, rec.result(state, k))
            continue
        view = out._view_of is not None or out._view_note is not None
        _adopt(rec, ctx, out, state, k, view or id(out) in aliases)
    for out in raws:
        if out._storage is not None and out._view_note is None and out._view_of is None:
            rec.let_views_inherit(out, True)
    if len(raws) > 1:
        for out in outputs:
            if isinstance(out, TensorBase) and out._view_note is not None:
                out._view_note = "multi"


def _attach(rec: Any, ctx: Any, given: ForwardInputs, values: Sequence[Any]) -> State:
    """Records the event, from the inputs to the values of the outputs."""
    slots = given.slots
    if given.kept:
        slots = [rec.slot_of(tensor) for tensor in given.kept]
    call = _event(type(ctx), len(slots), len(values))
    state = rec.python_event(call, slots, given.metas, values)
    for watch in watchers:
        watch(rec, state.depth - 1)
    recording = rec.recording
    recording.python[state.depth] = ctx
    ctx._where, ctx._at = weakref.ref(recording), state
    return state


def _untracked(rec: Any, out: Any) -> Any:
    """The value of an output without any history."""
    meta = out._tmeta.plain
    return rec.tensor_on(rec.identity(rec.slot_of(out), meta), meta, TensorBase)


def _adopt(rec: Any, ctx: Any, out: Any, state: Any, k: int, view: bool) -> None:
    """Gives an output the recorded event as its history."""
    out._slot = state.slot + k
    meta, own = state.metas[k], out._tmeta
    if meta.strides != own.strides or meta.offset != own.offset:
        meta = meta.replace(strides=own.strides, offset=own.offset)
    out._tmeta = meta
    if out._node is not None:
        out._node = None
    if out._hist is not None:
        out._hist = None
    if out._storage is not None:
        rec.live.append(weakref.ref(out))
    elif out._array is not None:  # what is pending is known to be alive
        out._array = None
        rec.live.append(weakref.ref(out))
    if view:
        if out._view_of is not None:
            out._made_on, out._view_of = base_of(out), None
        out._inherits = False
        out._view_note = "custom"
        out._made_by = type(ctx).__name__.removesuffix("Backward"), ctx._outputs[k]
        out._versions = version_of(out)


def _save(ctx: Any, recorded: bool, outputs: Sequence[Any]) -> None:
    """Keeps what the forward asked to save, now that the outputs have a history."""
    to_save, ctx.to_save = ctx.to_save, None
    if not isinstance(to_save, tuple):
        raise RuntimeError(
            "autograd internal error: to_save attribute is expected to be a tuple but "
            "is "
        )
    if not recorded:
        return
    made = {id(o): k for k, o in enumerate(outputs) if isinstance(o, TensorBase)}
    levels = 1 if ctx._at is None else ctx._at.metas[0].levels or 1
    saved: list[Any] = []
    for i, tensor in enumerate(to_save):
        if tensor is None:
            saved.append(None)
        elif not isinstance(tensor, TensorBase):
            raise TypeError(
                "save_for_backward can only save variables, but argument "
                f"{i} is of type {type_name(type(tensor))}"
            )
        else:
            k = made.get(id(tensor))
            own = k is not None and k in ctx._outputs
            saved.append(save(tensor, k if own else None, not levels & 1))
    # Only now: a hook that reads ends the recording, whose places all of these have.
    if saving.current() is not None:
        for kept, tensor in zip(saved, to_save, strict=True):
            if kept is not None:
                kept.pack(tensor)
    ctx._saved = tuple(saved)


_SingleLevelFunction = Function


def custom_function_call(autograd_function: Any, *args: Any, **kwargs: Any) -> Any:
    """`apply` of a custom function."""
    return autograd_function.apply(*args, **kwargs)


def _is_setup_context_defined(fn: Any) -> bool:
    return fn != Function.setup_context


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a backward that cannot itself be differentiated: doing so raises.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.function.once_differentiable.html

    >>> once_differentiable(lambda ctx, grad: grad).__name__
    '<lambda>'
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args, **kwargs)
        # Within transforms PyTorch takes them for constants.
        if (
            not local.rec.grad
            or local.rec.transforming()
            or not any(
                isinstance(arg, TensorBase) and arg._tmeta.requires_grad for arg in args
            )
        ):
            return outputs
        single = not isinstance(outputs, tuple)
        values = (outputs,) if single else outputs
        fakes = []
        for value in values:
            fake = None if value is None else value.detach()
            if fake is not None:
                fake.requires_grad_()
            fakes.append(fake)
        raised = _DelayedError.apply(*fakes)
        return raised

    return wrapper


def built_in(name: str) -> Callable[[_F], _F]:
    """Has a function's node be called as one that is no Python function in PyTorch."""

    def named(function: _F) -> _F:
        node = function._backward_cls
        node.__name__ = node.__qualname__ = name
        node.__module__, node.__repr__ = "builtins", Node.__repr__
        return function

    return named


@built_in("Error")
class _DelayedError(Function):
    """Passes tensors on; differentiating them raises."""

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        copies: list[Any] = [None if v is None else v.detach() for v in values]
        return tuple(copies) if len(copies) > 1 else copies[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with "
            "@once_differentiable"
        )


def _all_edges(node: Any) -> tuple[tuple[Any, int], ...]:
    """An edge for each argument: PyTorch's node is none of a Python function."""
    found: list[tuple[Any, int]] = [(None, 0)] * len(node._needs)
    edges = Node.next_functions.fget(node)  # type: ignore[attr-defined]
    for at, edge in zip(node._positions, edges, strict=True):
        found[at] = edge
    return tuple(found)


_DelayedError._backward_cls.next_functions = property(_all_edges)


class InplaceFunction(Function):
    """The old base class of functions that may work in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """PyTorch's private base class of functions of nested structures."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "torch.autograd.function.NestedIOFunction is not supported"
        )


def __getattr__(name: str) -> Any:
    # Helpers of old functions, of which few programs know.
    if not name.startswith("__"):
        nested = import_module("torchshim.autograd._nested")
        if hasattr(nested, name):
            return getattr(nested, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
