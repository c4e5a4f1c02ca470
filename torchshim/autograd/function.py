"""Custom differentiable functions: `Function` and its context.

https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-autograd
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.engine import SECOND_BACKWARD, modified_text
from torchshim._core.hooks import version_of
from torchshim._core.node import Node
from torchshim._core.call import PythonCall, intern_call
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._derived import fns
from torchshim._functions.backward import warn_once
from torchshim._tensor import Tensor
from torchshim.autograd import saving
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

_numbers = itertools.count()


class FunctionCtx:
    """What a custom function notes in its forward for its backward.

    https://docs.pytorch.org/docs/2.13/autograd.html#context-method-mixins
    """

    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `saved_tensors` in the backward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for a `jvp`."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should "
                    "save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Says which inputs the forward changes in place."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: shared storages are tracked anyway."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are "
            "automatically tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Says which outputs never get a gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive reach the backward as zeros."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function; the `ctx` of its forward and backward."""

    _forward_cls: Any
    _needs: tuple[bool, ...] = ()
    _saved: tuple[Any, ...] | None = ()
    _freed = False
    # Position of each operand of the recorded event among the arguments of `apply`.
    _positions: tuple[int, ...] = ()
    _n_args = 0
    # Position of each result of the event among what the forward returned.
    _outputs: tuple[int, ...] = ()
    _n_outs = 0
    _where: Any = None
    _at: Any = None

    def __init__(self) -> None:
        self.metadata = {}

    # The graph holds this node, so the node holds the graph only weakly.
    @property
    def _recording(self) -> Any:  # type: ignore[override]
        recording = None if self._where is None else self._where()
        if recording is None:
            raise RuntimeError("Attribute 'next_functions' is invalid: no graph")
        return recording

    @property
    def _event(self) -> Any:  # type: ignore[override]
        return self._at

    def node(self, recording: Any, event: Any) -> BackwardCFunction:
        return self

    def name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {hex(id(self))}>"

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        return self._needs

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept by `save_for_backward`; raises if they were overwritten."""
        if self._freed:
            raise RuntimeError(SECOND_BACKWARD)
        if self._saved is None:
            return tuple(self.to_save or ())
        found = tuple(s if s is None else s.unpack(self) for s in self._saved)
        if self._forward_cls.clear_saved_tensors_on_access:
            self._saved, self._freed = (), True
        return found

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._freed:
            raise RuntimeError(SECOND_BACKWARD)
        return tuple(self._saved or ())

    def _get_user_fn(self) -> Any:
        backward_fn = self._forward_cls.backward
        vjp_fn = self._forward_cls.vjp
        if backward_fn is not Function.backward and vjp_fn is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not "
                "allowed. You should only implement one of them."
            )
        return vjp_fn if vjp_fn is not Function.vjp else backward_fn

    def apply(self, *args: Any) -> Any:
        """Calls the user's backward."""
        user_fn = self._get_user_fn()
        if getattr(self._forward_cls, "boxed_grads_call", False):
            args = (list(args),)
        return user_fn(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Calls the user's forward-mode derivative."""
        return self._forward_cls.jvp(self, *args)

    def __call__(self, *grads: Any) -> Any:
        return self.apply(*grads)

    # -- in a backward walk ------------------------------------------------------------

    def run(
        self, walk: Any, event: Any, grads: Sequence[Any], wrt: Sequence[int]
    ) -> list[Any]:
        """The gradients for the operands `wrt` of the event, from the user's code."""
        given: list[Any] = [None] * self._n_outs
        for k, at in enumerate(self._outputs):
            grad = grads[k]
            if grad is None and self.materialize_grads:
                meta = event.metas[k]
                grad = fns._gradient_zeros(tuple(meta.shape), meta.dtype)
            given[at] = grad
        if self.materialize_grads:
            for at, (shape, dtype) in self._plain_outputs.items():
                given[at] = fns._gradient_zeros(shape, dtype)
        found = self.apply(*given)
        results = self._checked(found)
        outs: list[Any] = []
        for i in wrt:
            at = self._positions[i]
            outs.append(self._fitted(results[at], event.given[i], at))
        if not walk.retain:
            self._saved, self._freed = (), bool(self._saved) or self._freed
            self.to_save = None
        return outs

    # Outputs that are not in the event (not differentiable): position -> shape, dtype
    _plain_outputs: dict[int, tuple[tuple[int, ...], Any]] = {}

    def _checked(self, found: Any) -> tuple[Any, ...]:
        results = found if isinstance(found, tuple) else (found,)
        expected = self._n_args
        name = self.name()
        if len(results) > expected and all(r is None for r in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected "
                f"{expected}, got {len(results)})"
            )
        tensors = set(self._positions)
        for at, result in enumerate(results):
            if at not in tensors:
                if result is not None:
                    raise RuntimeError(
                        f"function {name} returned a gradient different than None at "
                        f"position {at + 1}, but the corresponding forward input was "
                        "not a Variable"
                    )
            elif result is not None and not isinstance(result, TensorBase):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__})"
                )
        return results

    def _fitted(self, grad: Any, meta: Any, at: int) -> Any:
        """A gradient brought to the shape and dtype of its input, as PyTorch does."""
        if grad is None:
            return None
        shape, got = tuple(meta.shape), tuple(grad._meta.shape)
        if shape != got:
            lead = len(got) - len(shape)
            if lead < 0 or any(
                a not in (1, b) for a, b in zip(shape, got[lead:], strict=True)
            ):
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index "
                    f"{at} - got {list(got)} but expected shape compatible with "
                    f"{list(shape)}"
                )
            grad = fns._gradient_sum(grad, shape)
        dtype = grad._meta.dtype
        if dtype is not meta.dtype:
            if not dtype.is_floating_point and (
                dtype.is_complex != meta.dtype.is_complex
            ):
                raise RuntimeError(
                    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex "
                    "== grad_is_complex) to be true, but got false.  (Could this error "
                    "message be improved?  If so, please report an enhancement request "
                    "to PyTorch.)"
                )
            grad = fns._gradient_cast(grad, meta.dtype)
        return grad


class _Saved:
    """A tensor kept for backward, with the version that it had.

    A tensor with history would hold the graph, which holds this: of such a one the
    value and its place are kept.
    """

    __slots__ = (
        "meta",
        "output",
        "packed",
        "recording",
        "slot",
        "storage",
        "tensor",
        "twin",
        "version",
    )

    def __init__(self, tensor: Tensor, output: int | None) -> None:
        self.version = version_of(tensor)
        self.output = output
        self.packed = self.twin = self.storage = None
        self.meta = tensor._meta
        pair = saving.current()
        if pair is not None:
            self.packed = saving.Packed(pair, tensor)
        elif not self.meta.requires_grad or self.meta.leaf:
            self.tensor: Any = tensor
        else:
            rec = local.rec
            self.slot = rec.slot_of(tensor)
            self.recording = weakref.ref(rec.recording)
            self.tensor = weakref.ref(tensor)
            self.storage = tensor._storage
            plain = self.meta.replace(requires_grad=False, leaf=True)
            self.twin = rec.at(self.slot, plain)

    def unpack(self, ctx: BackwardCFunction) -> Any:
        if self.packed is not None:
            return self.packed.unpack()
        tensor = self.tensor if self.twin is None else self.tensor()
        now = self.version
        if tensor is not None:
            now = version_of(tensor)
        elif self.storage is not None:
            now = self.storage.version
        if now != self.version:
            node = None if tensor is None else tensor.grad_fn
            name = node.name() if node is not None else None
            number = tensor.output_nr if node is not None else 0
            if self.output is not None:
                name, number = ctx.name(), self.output
            raise RuntimeError(
                modified_text(self.meta, name, number, now, self.version)
            )
        return self.rebuilt() if tensor is None else tensor

    def rebuilt(self) -> Tensor:
        """The tensor again, where nothing else kept it."""
        rec, recording = local.rec, self.recording()
        if recording is rec.recording:
            return rec.at(self.slot, self.meta)
        piece = object.__new__(Tensor)
        piece._slot = -1
        piece._meta = self.meta
        piece._array = rec.array_of(self.twin)
        piece._hist = recording, self.slot
        return piece


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
            "Instantiating an autograd function will raise an error in a future version "
            "of PyTorch.",
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

    vjp = backward

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

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward` and records that `backward` is its gradient."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        elif kwargs:
            bound = inspect.signature(cls.forward).bind(None, *args, **kwargs)
            args, kwargs = bound.args[1:], bound.kwargs
        return _apply(cls, separate, args, kwargs)


def _apply(
    cls: Any, separate: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    rec = local.rec
    ctx = cls._backward_cls()
    tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, TensorBase)]
    needs = {i for i, a in tensors if a._meta.requires_grad}
    recorded = rec.grad and bool(needs)
    ctx._needs = tuple(recorded and i in needs for i in range(len(args)))
    ctx._n_args = len(args)
    ctx._saved = None
    # What each input was before the forward, which may change it in place.
    before: list[Any] = []
    versions: dict[int, int] = {}
    if recorded:
        for _, tensor in tensors:
            versions[id(tensor)] = version_of(tensor)
            slot = rec.slot_of(tensor)
            meta = tensor._meta
            twin = meta.requires_grad and not meta.leaf
            before.append(rec.at(slot, meta) if twin else tensor)
    grad, rec.grad = rec.grad, False
    rec.set_mode()
    try:
        if separate:
            output = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args, **kwargs)
    finally:
        rec.grad = grad
        rec.set_mode()
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    if recorded:
        outputs = _record(rec, ctx, cls, tensors, before, list(outputs), versions)
    else:
        given = {id(t) for _, t in tensors} - {id(t) for t in ctx.dirty_tensors or ()}
        outputs = tuple(o.detach() if id(o) in given else o for o in outputs)
    _save(ctx, outputs)
    return outputs[0] if single else tuple(outputs)


def _record(
    rec: Any,
    ctx: Any,
    cls: Any,
    tensors: Sequence[tuple[int, Any]],
    before: Sequence[Any],
    outputs: list[Any],
    versions: dict[int, int],
) -> list[Any]:
    """Records the event whose backward is the user's code."""
    inputs = {id(t): at for at, t in tensors}
    dirty = {id(t) for t in ctx.dirty_tensors or ()}
    constant = {id(t) for t in ctx.non_differentiable or ()}
    returned = {id(o) for o in outputs if isinstance(o, TensorBase)}
    _check_dirty(ctx, tensors, inputs, dirty, returned)
    ctx._n_outs = len(outputs)
    ctx._plain_outputs = {}
    raws: list[Any] = []
    aliases: set[int] = set()
    places: list[int] = []
    for k, out in enumerate(outputs):
        if not isinstance(out, TensorBase):
            continue
        dtype = out._meta.dtype
        flows = id(out) not in constant and (dtype.is_floating_point or dtype.is_complex)
        if id(out) in inputs and id(out) not in dirty:
            # An input given back as it is becomes another tensor on its memory.
            with no_grad():
                view = fns.view_as(out) if hasattr(fns, "view_as") else out.detach()
            if not flows:
                outputs[k] = out.detach()
                continue
            outputs[k] = out = view
            aliases.add(id(view))
        if not flows:
            if out._meta.requires_grad:
                outputs[k] = out.detach()
            ctx._plain_outputs[k] = tuple(out._meta.shape), dtype
            continue
        raws.append(out)
        places.append(k)
    if not raws:
        return outputs
    ctx._positions = tuple(at for at, _ in tensors)
    ctx._outputs = tuple(places)
    flags = (True,) * len(raws)
    key = ("python", type(ctx), len(tensors), flags)
    call = intern_call(
        key, lambda: PythonCall(type(ctx).__name__, len(tensors), len(raws), flags)
    )
    plain = [_untracked(rec, out) for out in raws]
    state = rec.python(call, list(before), plain)
    recording = rec.recording
    recording.python[state.depth] = ctx
    ctx._where, ctx._at = weakref.ref(recording), state
    several = len(outputs) > 1
    for k, out in enumerate(raws):
        if id(out) in dirty and id(out) in inputs:
            increment(out)
        view = out._base is not None or id(out) in aliases
        _adopt(rec, out, state, k, view, several)
    return outputs


def increment(tensor: Any) -> None:
    """Counts a write to the tensor's memory."""
    if tensor._storage is None:
        tensor._versions += 1
    else:
        tensor._storage.version += 1


def _untracked(rec: Any, out: Any) -> Any:
    """The value of an output without any history."""
    meta = out._meta
    slot = rec.slot_of(out)
    if not meta.requires_grad:
        return out
    meta = meta.replace(requires_grad=False, leaf=True)
    return rec.at(rec.identity(slot, meta), meta)


def _adopt(
    rec: Any, out: Any, state: Any, k: int, view: bool, several: bool
) -> None:
    """Gives an output the recorded event as its history."""
    out._slot = state.slot + k
    out._meta = state.metas[k].replace(
        strides=out._meta.strides, offset=out._meta.offset
    )
    out._node = out._hist = None
    if out._storage is None:
        out._array = None
    if view:
        out._base = None
        out._view_note = "multi" if several else "custom"
    rec.live.append(weakref.ref(out))


def _check_dirty(
    ctx: Any,
    tensors: Sequence[tuple[int, Any]],
    inputs: dict[int, int],
    dirty: set[int],
    returned: set[int],
) -> None:
    for tensor in ctx.dirty_tensors or ():
        if id(tensor) not in inputs:
            warn_once(
                "ctx.mark_dirty() received a tensor that was not an input. Only input "
                "Tensors that have been mutated should be passed to ctx.mark_dirty().",
                5,
            )
            continue
        if id(tensor) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not "
                "returned as output. The inputs that are modified inplace must all be "
                "outputs of the Function."
            )
        meta = tensor._meta
        if meta.requires_grad and meta.leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place "
                "operation."
            )


def _save(ctx: Any, outputs: Sequence[Any]) -> None:
    """Keeps what the forward asked to save, now that the outputs have a history."""
    if ctx.to_save is None:
        ctx._saved = ()
        return
    made = {id(o): k for k, o in enumerate(outputs) if isinstance(o, TensorBase)}
    saved: list[Any] = []
    for i, tensor in enumerate(ctx.to_save):
        if tensor is None:
            saved.append(None)
        elif not isinstance(tensor, TensorBase):
            raise TypeError(
                "save_for_backward can only save variables, but argument "
                f"{i} is of type {type(tensor).__name__}"
            )
        else:
            k = made.get(id(tensor))
            own = k is not None and k in ctx._outputs
            saved.append(_Saved(tensor, k if own else None))
    ctx._saved = tuple(saved)
    ctx.to_save = None


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
        if not local.rec.grad or not any(
            isinstance(arg, TensorBase) and arg._meta.requires_grad for arg in args
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


class _DelayedError(Function):
    """Passes tensors on; differentiating them raises."""

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Any:
        copies = tuple(None if v is None else v.detach() for v in values)
        return copies if len(copies) > 1 else copies[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with "
            "@once_differentiable"
        )


_DelayedError._backward_cls.__name__ = "Error"


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
