"""The context of a custom function: what it keeps, and its run in a backward walk."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Mapping, Sequence
from inspect import Parameter
from types import MappingProxyType
from typing import Any

from torchshim import _warnings as warnings
from torchshim._core.dtypes import type_name
from torchshim._core.gradients import brought_to
from torchshim._core.infer import INFERENCE_SAVED
from torchshim._core.leaf_facts import OWN_DTYPE
from torchshim._core.naming import modified_text
from torchshim._core.node import Node
from torchshim._core.record import local
from torchshim._core.saved import SECOND_BACKWARD, was_detached
from torchshim._core.storage import TensorBase, count_of, shown_version
from torchshim._derived import fns
from torchshim._functions.nodes import gradient_edge
from torchshim._functions.saved_values import SavedTensor, with_history
from torchshim._functions.sparse_tensor import SparseTensor
from torchshim._tensor import Tensor
from torchshim.autograd import saving
from torchshim.autograd._composed_operands import Patterns, at_values, put_back
from torchshim.autograd._transformed import fitted


class FunctionCtx:
    """What a custom function notes in its forward for its backward.

    https://docs.pytorch.org/docs/2.13/autograd.html#context-method-mixins
    """

    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    _materialize: bool = True
    # Whether outputs that never get a gradient have zeros among the gradients.
    _materialize_non_diff_grads: bool = True

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


class Parameters:
    """What a forward takes, found out once."""

    def __init__(self, forward: Any) -> None:
        self.forward = forward

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.forward)

    @functools.cached_property
    def full(self) -> int:
        """How many positional arguments leave nothing to be filled in."""
        kinds = [p.kind for p in self.signature.parameters.values()]
        if Parameter.KEYWORD_ONLY in kinds:
            return -1
        return sum(
            kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
            for kind in kinds
        )

    def bound(
        self, separate: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments by position: PyTorch's forward takes no others.

        `separate`: a forward without a context, whose defaults are filled in.
        """
        if separate and (kwargs or len(args) != self.full):
            found = self.signature.bind(*args, **kwargs)
            found.apply_defaults()
            args, kwargs = found.args, found.kwargs
        if not kwargs:
            return args
        code = self.forward.__code__
        names = code.co_varnames[0 if separate else 1 : code.co_argcount]
        given = dict(enumerate(args))
        for name, value in kwargs.items():
            if name not in names:
                raise TypeError(
                    f"forward() got an unexpected keyword argument '{name}'"
                )
            at = names.index(name)
            if at in given:
                raise TypeError(f"forward() got multiple values for argument '{name}'")
            given[at] = value
        for at in range(max(given)):
            if at not in given:
                raise TypeError(
                    f"forward() missing required argument: '{names[at]}' (position "
                    f"{at})"
                )
        return tuple([given[at] for at in range(len(given))])


_ONCE = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
    "is set on the autograd.Function. Either access saved_tensors only once, or set "
    "clear_saved_tensors_on_access=False."
)


def _edge(tensor: Any) -> tuple[Any, int]:
    if not tensor.requires_grad:
        return None, 0
    edge = gradient_edge(tensor)
    return edge[0], edge[1]


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function; the `ctx` of its forward and backward."""

    _forward_cls: Any
    # Those of the forward, once that is called in a way that needs them.
    _parameters: Parameters | None = None
    # Which arguments of `apply` are tensors that require grad.
    _needs: Sequence[bool] = ()
    # What the function says of itself, which decides nothing.
    _told: Mapping[str, Any] = MappingProxyType({})
    _saved: tuple[Any, ...] = ()
    # What a `jvp` sees in place of these.
    _saved_for_forward: tuple[Any, ...] | None = None
    _freed = False
    # Whether `saved_tensors` was read, of a class that clears them then.
    _spent = False
    # Position of each operand of the recorded event among the arguments of `apply`.
    _positions: Sequence[int] = ()
    # Position of each result of the event among what the forward returned.
    _outputs: tuple[int, ...] = (0,)
    _n_outs = 1
    _where: Any = None
    # The inputs and the outputs that are sparse, by position.
    _patterns: Patterns = MappingProxyType({})
    _made_patterns: Patterns = MappingProxyType({})
    # What the backward returned last, while hooks look at it.
    _returned: Sequence[Any] = ()
    _at: Any = None

    def __init__(self) -> None:
        """In no graph: `apply` makes those that are."""

    @functools.cached_property
    def metadata(self) -> dict[Any, Any]:
        return {}

    # The graph holds this node, so the node holds the graph only weakly.
    @property
    def _recording(self) -> Any:
        recording = None if self._where is None else self._where()
        if recording is None:
            raise RuntimeError("Attribute 'next_functions' is invalid: no graph")
        return recording

    @property
    def _event(self) -> Any:
        return self._at

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where gradients go next; within the forward, where they will go."""
        if self._at is not None:
            return Node.next_functions.fget(self)  # type: ignore[attr-defined]
        given = local.rec.forward_inputs
        tensors = () if given is None else given.tensors
        return tuple([_edge(each) for each in tensors])

    def __dir__(self) -> list[str]:
        return sorted(object.__dir__(self))

    def _set_materialize(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - "
                "got (), but expected (bool)"
            )
        self._materialize = value

    materialize_grads = property(None, _set_materialize)

    def __getattr__(self, name: str) -> Any:
        if name == "materialize_grads":
            raise AttributeError(
                "attribute 'materialize_grads' of 'torch._C._FunctionBase' objects is "
                "not readable"
            )
        return Node.__getattr__(self, name)  # type: ignore[attr-defined]

    def _slot_of(self, number: int) -> int:
        return self._at.slot + self._outputs.index(number)

    def _number_of(self, slot: int) -> int:
        return self._outputs[slot - self._at.slot]

    def _node_for(self, recording: Any, event: Any) -> BackwardCFunction:
        return self

    def name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return (
            f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"
        )

    @property
    def needs_input_grad(self) -> Any:
        """Which inputs get a gradient; what was assigned, if anything was."""
        return self._told.get("needs_input_grad", tuple(self._needs))

    @needs_input_grad.setter
    def needs_input_grad(self, value: Any) -> None:
        self._told = {"needs_input_grad": value}

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors kept by `save_for_backward`; raises if they were overwritten."""
        if self._spent:
            raise RuntimeError(_ONCE)
        if self._freed:
            raise RuntimeError(SECOND_BACKWARD)
        if self._saved_for_forward is not None:
            return self._saved_for_forward
        found = tuple([s if s is None else s.unpack(self) for s in self._saved])
        if self._forward_cls.clear_saved_tensors_on_access:
            self._saved, self._spent = (), True
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
        return tuple([SavedTensor.of(_Held(self, i)) for i in range(len(self._saved))])

    def _get_user_fn(self) -> Any:
        cls = self._forward_cls
        missing = cls._missing_backward
        if cls.vjp is missing:
            return cls.backward
        if cls.backward is not missing:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not "
                "allowed. You should only implement one of them."
            )
        return cls.vjp

    def apply(self, *args: Any) -> Any:
        """Calls the user's backward."""
        cls = self._forward_cls
        unusual = cls.vjp is not cls._missing_backward
        user_fn = self._get_user_fn() if unusual else cls.backward
        if cls.boxed_grads_call:
            args = (list(args),)
        return user_fn(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Calls the user's forward-mode derivative."""
        return self._forward_cls.jvp(self, *args)

    def __call__(self, *grads: Any) -> Any:
        return self.apply(*grads)

    def _spread(self, grads: Sequence[Any]) -> list[Any]:
        """Gradients of the event's results at the places of the forward's outputs."""
        given: list[Any] = [None] * self._n_outs
        for k, at in enumerate(self._outputs):
            given[at] = grads[k]
        return given

    def _gathered(self, given: Sequence[Any]) -> list[Any]:
        """The other way round."""
        return [given[at] for at in self._outputs]

    # -- in a backward walk ------------------------------------------------------------

    def _run_backward(
        self,
        walk: Any,
        recording: Any,
        event: Any,
        grads: Sequence[Any],
        wrt: Sequence[int],
    ) -> list[Any]:
        """The gradients for the operands `wrt` of the event, from the user's code."""
        if self._n_outs == 1 and grads[0] is not None and not self._made_patterns:
            given = grads
        else:
            given = self._materialized(event, grads)
        results: Any = self.apply(*given)
        if not isinstance(results, tuple):
            results = (results,)
        if not (
            len(self._needs) == len(self._positions) == len(results) == 1
            and isinstance(results[0], TensorBase)
        ):
            results = self._checked(results)
        if self._patterns:
            results = at_values(results, self._patterns)
        if event.depth in recording.node_hooks:
            self._returned = [results[at] for at in self._positions]
        fit: list[Any] = []
        for i in event.wrt:
            at = self._positions[i]
            out = results[at]
            if out is not None:
                meta, got = event.given[i], out._tmeta
                if got.batch:
                    out = fitted(out, event, meta, walk.outside)
                    got = out._tmeta
                if got is not meta and (
                    got.shape != meta.shape
                    or got.dtype is not meta.dtype
                    or got.device is not meta.device
                ):
                    leaf = recording.entered.get(event.operands[i])
                    hooks = None if leaf is None else leaf._hooks
                    if hooks is not None and hooks.grad_dtype is not OWN_DTYPE:
                        meta = meta.replace(dtype=hooks.grad_dtype or got.dtype)
                    out = self._fitted(out, meta, at)
            fit.append(out)
        if not walk.retain:
            self._saved, self._freed = (), True
        if wrt == event.wrt:
            return fit
        return [fit[event.wrt.index(i)] for i in wrt]

    def _materialized(self, event: Any, grads: Sequence[Any]) -> list[Any]:
        """The gradients of what the forward returned, zeros where none has come."""
        given: list[Any] = [None] * self._n_outs
        for k, at in enumerate(self._outputs):
            grad = grads[k]
            if grad is None and self._materialize:
                meta = event.metas[k]
                kind = meta.dtype, meta.device
                grad = fns._gradient_zeros(tuple(meta.shape), *kind)
            given[at] = grad
        if self._plain_outputs:
            if self._materialize and self._materialize_non_diff_grads:
                for at, output in self._plain_outputs.items():
                    given[at] = fns._gradient_zeros(*output)
        put_back(given, self._made_patterns)
        return given

    # Outputs that are not in the event (not differentiable): position -> shape, dtype,
    # device
    _plain_outputs: Mapping[int, tuple[tuple[int, ...], Any, Any]] = {}

    def _checked(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the user's code gave, if it may."""
        expected = len(self._needs)
        if len(results) > expected and all(r is None for r in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(results)})"
            )
        for at, result in enumerate(results):
            if result is None:
                continue
            if at not in self._positions:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None "
                    f"at position {at + 1}, but the corresponding forward input was "
                    "not a Variable"
                )
            if not isinstance(result, TensorBase):
                raise RuntimeError(
                    f"expected Variable or None (got {type_name(type(result))})"
                )
        return results

    def _fitted(self, grad: Any, meta: Any, at: int) -> Any:
        """A gradient brought to the shape, dtype and device of its input, if it can."""
        grad = brought_to(local.rec, grad, meta, type(self).__name__, at)
        device = grad._tmeta.device
        if device is not meta.device:
            if grad._tmeta.shape:
                raise RuntimeError(
                    f"Function {type(self).__name__} returned an invalid gradient at "
                    f"index {at} - expected device {meta.device} but got {device}"
                )
            grad = grad.to(meta.device)
        return grad


class _Held:
    """Where a custom function's node keeps a tensor, or None."""

    transposed = False

    def __init__(self, ctx: BackwardCFunction, at: int) -> None:
        self._ctx, self._kept = ctx, ctx._saved[at]

    @property
    def freed(self) -> bool:
        return self._ctx._freed

    @property
    def packed(self) -> Any:
        return None if self._kept is None else self._kept.packed

    @packed.setter
    def packed(self, packed: Any) -> None:
        self._kept.packed = packed

    def unpack(self) -> Any:
        return None if self._kept is None else self._kept.unpack(self._ctx)


class SavedForBackward:
    """A tensor kept for backward, with the version that it had.

    A tensor with history would hold the graph, which holds this: of such a one the
    value and its place are kept.
    """

    __slots__ = (
        "count",
        "counted",
        "meta",
        "output",
        "packed",
        "recording",
        "slot",
        "tensor",
        "twin",
        "version",
    )

    packed: Any
    twin: Any

    def __init__(
        self, tensor: Any, output: int | None, transformed: bool = False
    ) -> None:
        """`transformed`: for a derivative of `torch.func`'s, not for autograd's."""
        self.version = shown_version(tensor)
        self.output = output
        self.meta = meta = tensor._tmeta
        if meta.inference and not transformed:
            raise RuntimeError(INFERENCE_SAVED)
        self.packed = self.twin = None
        history = meta.requires_grad and not meta.leaf
        if history:
            rec = local.rec
            self.slot = rec.slot_of(tensor)
            self.recording = weakref.ref(rec.recording)
        pair = saving.current()
        if history:
            self.tensor: Any = weakref.ref(tensor)
        else:
            self.tensor = tensor if pair is None or meta.requires_grad else None
        if history and pair is None:
            self.count = count_of(tensor)
            self.counted = self.count()
            self.twin = local.rec.tensor_on(self.slot, meta.plain, TensorBase)

    def pack(self, tensor: Any) -> None:
        """Shows the tensor to the hooks in force. They may end the recording."""
        pair = saving.current()
        if pair is not None:
            self.packed = saving.Packed(pair, tensor)

    def unpack(self, ctx: BackwardCFunction | None) -> Any:
        """The tensor; raises if it was overwritten. `ctx`: whose output it may be."""
        if self.packed is not None:
            return self._unpacked()
        tensor = self.tensor if self.twin is None else self.tensor()
        now = self.version
        if tensor is not None:
            now = shown_version(tensor)
        elif self.twin is not None:
            now += self.count() - self.counted
        if now != self.version:
            # (What others wrote to its memory since changed nothing of its node.)
            node: Any = (self.rebuilt() if tensor is None else tensor).grad_fn
            name, number = node.name() if node is not None else None, 0
            if self.output is not None and ctx is not None:
                name, number = ctx.name(), self.output
            raise RuntimeError(
                modified_text(self.meta, name, number, now, self.version)
            )
        return self.rebuilt() if tensor is None else tensor

    def was_detached(self) -> bool:
        """Whether the tensor left the graph in place since."""
        if not self.meta.requires_grad or self.meta.leaf:
            return False
        recording = self.recording()
        return recording is not None and was_detached(recording, self.slot)

    def _unpacked(self) -> Any:
        """What a hook gives back, with the history of what was packed."""
        value = self.packed.unpack()
        if not self.meta.requires_grad:
            return value
        if not local.rec.grad:
            return value if value.requires_grad else value.detach().requires_grad_()
        source = self.tensor
        if not self.meta.leaf:
            recording = self.recording()
            if recording is None:
                return value
            source = with_history(recording, self.slot, self.meta)
        return fns._with_history_of(value, source)

    def rebuilt(self) -> Any:
        """The tensor again, where nothing else kept it."""
        rec, recording = local.rec, self.recording()
        if recording is rec.recording:
            return rec.tensor_on(self.slot, self.meta)
        piece = object.__new__(Tensor)
        piece._slot = -1
        piece._tmeta = self.meta
        piece._array = rec.array_of(self.twin)
        piece._hist = recording, self.slot
        return piece


class SavedSparse:
    """A sparse tensor kept for backward by its values; its pattern never changes."""

    __slots__ = ("packed", "pattern", "values")

    def __init__(self, tensor: SparseTensor) -> None:
        self.packed = None
        self.values = SavedForBackward(tensor._v, None)
        self.pattern = tensor._like(tensor._v.detach())

    def pack(self, tensor: SparseTensor) -> None:
        """Shows the values to the hooks in force."""
        self.values.pack(tensor._v)

    def unpack(self, ctx: BackwardCFunction | None) -> Any:
        """The tensor; raises if its values were overwritten."""
        return self.pattern._like(self.values.unpack(ctx))


def save(
    tensor: Any, output: int | None, transformed: bool
) -> SavedForBackward | SavedSparse:
    """A tensor kept for backward; `output`: which of the outputs it is."""
    if isinstance(tensor, SparseTensor):
        return SavedSparse(tensor)
    return SavedForBackward(tensor, output, transformed)
