"""Calls: operators with their static arguments, as recordings hold them.

A `Call` is a function of arrays and runtime scalars. `VjpCall` is the gradient of a
call, and a call itself. `PythonCall` stands for a function with a backward in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes, promotion
from torchshim._core.avals import Avals, infer_avals
from torchshim._core.declared import DERIVED
from torchshim._core.dtypes import dtype as DType
from torchshim._core.linearize import Outputs, linearize
from torchshim._core.meta import broadcast_shape, contiguous_strides
from torchshim._core.op import (
    ARRAYS,
    IN_RANGE,
    INDEX,
    INDICES,
    OPERAND,
    OPT_OPERAND,
    OPT_SCALAR,
    SCALAR,
    Op,
    bends,
)
from torchshim._core.template import HOLE, Number, ScalarHole, scalar_holes

# Numbers of levels of `vmap`, rising.
Levels = tuple[int, ...]
# A call keeps its inferred results for at most so many kinds of operands.
_KINDS_BOUND = 256
# Operators without operands, and their arguments but the size -> the result's dtype.
_SIZED: dict[Any, DType] = {}


class AnyCall:
    """What all kinds of calls have: results that are inferred once, and derivatives."""

    __slots__ = ("_inferred",)

    op: Any
    _inferred: dict[Any, Any]
    # The level of `grad` that begins to differentiate the result, if any.
    starts = 0
    # Levels of `vmap` whose dimensions the call's own function handles.
    levels: frozenset[int] = frozenset()
    # Of a gradient: whether there are data-dependent checks (`_core.checks`) to make.
    checked = False
    # Operands whose gradient may be the one that arrives, see `Op.passes`.
    passing: tuple[int, ...] = ()
    # Where the results are, if that is an argument.
    device: Any = None

    @property
    def moves(self) -> bool:
        """Whether the operands are moved to `device`."""
        return False

    @property
    def convolves(self) -> bool:
        """Whether it is a convolution, or made of one."""
        if self.op is not None:
            return self.op.convolves
        inner = getattr(self, "inner", None)
        return inner is not None and inner.convolves

    def levels_of(self, i: int) -> Levels:
        """The levels of operand `i` that the call handles itself."""
        return ()

    def levels_of_result(self, k: int) -> Levels:
        """The levels of result `k` that the call handles itself."""
        return ()

    def infer(self, avals: Avals) -> Avals:
        """Shapes and dtypes of the results; raises what the operator raises."""
        found = self._inferred.get(avals)
        if found is None:
            if len(self._inferred) >= _KINDS_BOUND:
                self._inferred.clear()
            if self.op is not None and self.op.layout == "preserve":
                broadcast_shape([shape for shape, _ in avals])
            found = self._inferred[avals] = infer_avals(self, avals)
        return found

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        """Runs the call on arrays (or tracers); always a tuple of results."""
        raise NotImplementedError

    def linearize(
        self, arrays: Sequence[Any], scalars: Sequence[Any], wrt: Sequence[int]
    ) -> tuple[Outputs, Callable[[Sequence[Any]], Outputs]]:
        """The results, and the function from cotangents to gradients for `wrt`."""
        return linearize(self.apply, arrays, scalars, wrt)


class Call(AnyCall):
    """An operator with its static arguments: a function of arrays and scalars.

    `template` has one entry a parameter: `HOLE`, a tuple of `HOLE`/None, a
    `ScalarHole`, a `Number` or a static value. Calls are interned.
    """

    __slots__ = (
        "_result_dtypes",
        "default_dtype",
        "device",
        "levels",
        "n_arrays",
        "n_scalars",
        "op",
        "owners",
        "passing",
        "template",
        "write",
    )

    def __init__(
        self, op: Op, template: tuple[Any, ...], default_dtype: DType, write: bool
    ) -> None:
        self.op = op
        self.template = template
        self.default_dtype = default_dtype
        self.write = write
        owners: list[str] = []
        for param, entry in zip(op.params, template, strict=True):
            if entry is HOLE:
                owners.append(param.name)
            elif isinstance(entry, tuple):
                owners += [param.name for e in entry if e is HOLE]
        self.owners = tuple(owners)
        self.n_arrays = len(owners)
        self.n_scalars = len(scalar_holes(template))
        names = [p.name for p in op.params]
        self.device = template[names.index("device")] if "device" in names else None
        self.levels = frozenset()
        if op.level is not None:
            at = next(i for i, p in enumerate(op.params) if p.name == "level")
            self.levels = frozenset((template[at],))
        passes: Any = op.passes
        if callable(passes):
            unknown = [math.nan] * self.n_scalars
            passes = passes(*self.arguments([None] * self.n_arrays, unknown))
        self.passing = tuple(i for i, p in enumerate(self.owners) if p in passes)
        self._inferred = {}
        # Operands' numbers of dimensions, emptiness and dtypes -> the results' dtypes.
        self._result_dtypes: dict[Any, tuple[DType, ...]] = {}

    @property
    def moves(self) -> bool:
        return self.device is not None and self.n_arrays > 0

    def __repr__(self) -> str:
        return f"{self.op.name}{self.template}"

    def infer(self, avals: Avals) -> Avals:
        """As `AnyCall.infer`; without a trace where shapes alone tell the results.

        The first operands of a kind are traced: that raises what the operator refuses.
        """
        if avals in self._inferred:
            return super().infer(avals)
        if self.op.view is not None:
            return self._viewed(avals) or super().infer(avals)
        if not avals and self.op.shape is not None:
            return self._sized()
        kinds = tuple((len(shape), 0 in shape, dtype) for shape, dtype in avals)
        known = self._result_dtypes.get(kinds)
        if known is not None:
            shape = self._shape([shape for shape, _ in avals])
            if shape is not None:
                return tuple((shape, dtype) for dtype in known)
        found = super().infer(avals)
        if known is None and len(self._result_dtypes) < _KINDS_BOUND:
            self._result_dtypes[kinds] = tuple(dtype for _, dtype in found)
        return found

    def _shape(self, shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
        """The shape of each result, if it can be told without a trace."""
        if self.op.shape is not None:
            return self.op.shape(*self.arguments(shapes, self.placeholders()))
        return broadcast_shape(shapes) if self.op.layout == "preserve" else None

    def _sized(self) -> Avals:
        """As `infer`, of an operator without operands: its first argument is a size."""
        kind = self.op, self.template[1:], self.default_dtype
        if (known := _SIZED.get(kind)) is None:
            if len(_SIZED) >= _KINDS_BOUND:
                _SIZED.clear()
            found = super().infer(())
            _SIZED[kind] = found[0][1]
            return found
        shape = self._shape([])
        return super().infer(()) if shape is None else ((shape, known),)

    def _viewed(self, avals: Avals) -> Avals | None:
        """The results of a view, by its geometry; None where a trace has to tell."""
        view = self.op.view
        if view.retyped or self.levels:
            return None
        shape, dtype = tuple(avals[0][0]), avals[0][1]
        args = self.arguments([None] * self.n_arrays, [0] * self.n_scalars)[1:]
        try:
            found = view.geometry(shape, contiguous_strides(shape), 0, *args)
        except Exception:
            return None
        each = [found] if isinstance(found, tuple) else found or ()
        return tuple((tuple(shape), dtype) for shape, _, _ in each)

    def levels_of(self, i: int) -> Levels:
        return tuple(self.levels) if self.op.level == self.owners[i] else ()

    def levels_of_result(self, k: int) -> Levels:
        # What is written to keeps the level that it has.
        return tuple(self.levels) if self.op.level in ("result", "base") else ()

    def placeholders(self) -> list[Any]:
        """Stand-ins for runtime scalars where only their kind matters."""
        return [
            1 if hole.integer else IN_RANGE if hole.plain else 0.0
            for hole in scalar_holes(self.template)
        ]

    # -- running ---------------------------------------------------------------

    def arguments(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The template with its holes filled."""
        arrays_left, scalars_left = iter(arrays), iter(scalars)
        args: list[Any] = []
        for entry in self.template:
            if entry is HOLE:
                args.append(next(arrays_left))
            elif isinstance(entry, ScalarHole):
                value = next(scalars_left)
                args.append(_plain(value) if entry.plain else value)
            elif isinstance(entry, Number):
                args.append(entry.value)
            elif isinstance(entry, tuple):
                args.append(_fill(entry, arrays_left, scalars_left))
            else:
                args.append(entry)
        return args

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        args = self.arguments(arrays, scalars)
        if self.op.promote is None:
            out = self.op.fn(*self._positional(args), **self._keywords(args))
            outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        else:
            args, result = self._promoted(args)
            out = self.op.fn(*self._positional(args), **self._keywords(args))
            outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
            outs = tuple(o if o.dtype == result else o.astype(result) for o in outs)
        if self.write:
            target = arrays[0]
            outs = tuple(
                o if o.dtype == target.dtype else o.astype(target.dtype) for o in outs
            )
        return outs

    def check(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The operator's data-dependent checks (`_core.checks`)."""
        return self.op.checks(*self.arguments(arrays, scalars))

    def _positional(self, args: list[Any]) -> list[Any]:
        return [
            a for a, p in zip(args, self.op.params, strict=True) if not p.keyword_only
        ]

    def _keywords(self, args: list[Any]) -> dict[str, Any]:
        return {
            p.name: a
            for a, p in zip(args, self.op.params, strict=True)
            if p.keyword_only
        }

    def _operand_kinds(self, args: list[Any]) -> list[tuple[DType, int]]:
        kinds: list[tuple[DType, int]] = []
        takes_part = self.op.operands
        for arg, entry, param in zip(args, self.template, self.op.params, strict=True):
            if takes_part is not None and param.name not in takes_part:
                continue
            if entry is HOLE:
                kinds.append(_operand_kind(arg))
            elif isinstance(entry, tuple) and HOLE in entry:
                for a in arg:
                    if a is not None:
                        kinds.append(_operand_kind(a))
            elif param.role in (OPERAND, OPT_OPERAND):
                if isinstance(entry, ScalarHole):
                    kind = dtypes.int64 if entry.integer else self.default_dtype
                elif isinstance(entry, Number):
                    kind = promotion.scalar_dtype(entry.value, self.default_dtype)
                else:
                    continue  # None
                kinds.append((kind, promotion.SCALAR))
        return kinds

    def _promoted(self, args: list[Any]) -> tuple[list[Any], Any]:
        compute, result = promotion.resolve(
            self.op.promote, self._operand_kinds(args), self.default_dtype
        )
        np_dtype, made = compute.np, dtypes.array_dtype(result)
        cast: list[Any] = []
        takes_part = self.op.operands
        for arg, entry, param in zip(args, self.template, self.op.params, strict=True):
            if takes_part is not None and param.name not in takes_part:
                cast.append(arg)
            elif entry is HOLE:
                cast.append(promotion.converted(arg, np_dtype))
            elif isinstance(entry, tuple) and HOLE in entry:
                cast.append(
                    [a if a is None else promotion.converted(a, np_dtype) for a in arg]
                )
            elif (
                param.role in (OPERAND, OPT_OPERAND, SCALAR, OPT_SCALAR)
                and arg is not None
            ):
                fits = param.name in self.op.fits
                cast.append(promotion.number(arg, np_dtype, fits))
            else:
                cast.append(arg)
        return cast, made

    def promoted(self, metas: Sequence[Any]) -> DType:
        """The dtype that operands of these metas promote to."""
        args = self.arguments(metas, self.placeholders())
        kinds = self._operand_kinds(args)
        return promotion.resolve(self.op.promote, kinds, self.default_dtype)[1]

    # -- differentiation -----------------------------------------------------------

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        """Names of what PyTorch keeps for the gradients of the operands `wrt`."""
        return self.op.saved([self.owners[i] for i in wrt])

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        """Operands whose values the gradients for `wrt` may depend on."""
        saved = self.saved(wrt)
        if not saved:
            return ()
        if not DERIVED.isdisjoint(saved):
            return tuple(range(self.n_arrays))
        return tuple(i for i, name in enumerate(self.owners) if name in saved)

    def differentiable(self, i: int) -> bool:
        """Whether gradients flow to operand `i` at all."""
        flows: Any = self.op.differentiable
        if callable(flows):
            arrays = [None] * self.n_arrays
            flows = flows(*self.arguments(arrays, self.placeholders()))
        return flows if isinstance(flows, bool) else self.owners[i] in flows


def _operand_kind(arg: Any) -> tuple[DType, int]:
    """The dtype of an array or a meta, and how much it counts in promotion."""
    kind = arg.dtype
    if not isinstance(kind, DType):
        kind = dtypes.from_array_dtype(kind)
    return kind, promotion.DIMENSIONED if arg.shape else promotion.ZERO_DIM


def _plain(value: Any) -> Any:
    """A runtime scalar that counts in promotion as a Python number does."""
    if isinstance(value, (int, float)):
        return float(value)
    # (`lax.convert_element_type` does not take `weak_type`.)
    return jax.lax.convert_element_type_p.bind(
        value, new_dtype=np.dtype(np.float64), weak_type=True, sharding=None
    )


def _fill(entry: tuple[Any, ...], arrays: Any, scalars: Any) -> Any:
    """A tuple in a template: operands (a list), integers to index with, or static."""
    if HOLE in entry:
        return [next(arrays) if e is HOLE else e for e in entry]
    return tuple(
        next(scalars)
        if isinstance(e, ScalarHole)
        else e.value
        if isinstance(e, Number)
        else e
        for e in entry
    )


# Operators, and kinds of shapes, whose gradients were traced without an error.
_DIFFERENTIATED: set[Any] = set()


def _kind(shape: tuple[int, ...]) -> tuple[int, bool, bool, bool]:
    """What of a shape it may depend on whether an operator has a derivative."""
    rows, columns = shape[-2:] if len(shape) > 1 else (0, 0)
    return len(shape), 0 in shape, rows < columns, rows > columns


# Stands for a list of operands, of whatever length.
_ANY_NUMBER = object()
_ERASED = {ARRAYS: _ANY_NUMBER, INDEX: None, INDICES: None}


def _unplaced(call: Call) -> tuple[Any, ...]:
    """A call's template without indices, and without the lengths of lists, on which it
    doesn't depend whether there is a gradient. Each view has one."""
    if call.op.view is not None and not call.op.view.retyped:
        return ()
    return tuple(
        _ERASED.get(param.role, entry)
        for param, entry in zip(call.op.params, call.template, strict=True)
    )


class VjpCall(AnyCall):
    """The gradient of a call: a call itself, so it can be differentiated again.

    Operands: those of `inner` whose value its gradient needs, then the cotangents that
    are given. Results: one gradient for each operand in `wrt`.
    """

    __slots__ = (
        "absent",
        "checked",
        "cts",
        "grad_name",
        "inner",
        "kept",
        "levels",
        "n_arrays",
        "template",
        "wrt",
    )

    op: Any = None
    write = False

    def __init__(
        self,
        inner: Any,
        wrt: tuple[int, ...],
        cts: tuple[bool, ...],
        absent: tuple[Any, ...],
        checked: bool,
    ) -> None:
        self.inner = inner
        self.checked = checked
        self.wrt = wrt
        self.cts = cts
        # The aval of each operand whose value is not passed, None for the others.
        self.absent = absent
        self.kept = tuple(i for i, a in enumerate(absent) if a is None)
        self.n_arrays = len(self.kept) + sum(cts)
        self.template = inner.template
        self.levels = inner.levels
        self.grad_name: str | None = None
        self._inferred = {}

    def __repr__(self) -> str:
        return f"vjp[{self.inner!r}]"

    def around(self, inner: Any) -> VjpCall:
        """The same gradient of another call."""
        return interned_vjp(inner, self.wrt, self.cts, self.absent, self.checked)

    def levels_of(self, i: int) -> Levels:
        if i < len(self.kept):
            return self.inner.levels_of(self.kept[i])
        given = [k for k, there in enumerate(self.cts) if there]
        return self.inner.levels_of_result(given[i - len(self.kept)])

    def levels_of_result(self, k: int) -> Levels:
        return self.inner.levels_of(self.wrt[k])

    def _primals(self, arrays: Sequence[Any]) -> list[Any]:
        given = iter(arrays)
        return [
            next(given) if aval is None else jnp.zeros(aval[0], aval[1].np)
            for aval in self.absent
        ]

    def infer(self, avals: Avals) -> Avals:
        """The avals of the operands `wrt`.

        The first gradient of an operator, for each kind of shapes, is traced: that
        raises where there is none.
        """
        if avals in self._inferred or not isinstance(self.inner, Call):
            return super().infer(avals)
        given = iter(avals)
        whole = [next(given) if a is None else a for a in self.absent]
        kinds = tuple((_kind(shape), dtype) for shape, dtype in (*whole, *given))
        form = _unplaced(self.inner)
        key: Any = self.inner.op, form, self.wrt, self.cts, kinds
        if _ANY_NUMBER in form and len(self.wrt) == len(whole):
            key = self.inner.op, form, self.cts, frozenset(kinds)
        if key in _DIFFERENTIATED:
            return tuple(whole[i] for i in self.wrt)
        found = super().infer(avals)
        if len(_DIFFERENTIATED) < _CALLS_BOUND:
            _DIFFERENTIATED.add(key)
        return found

    def cotangents(self, arrays: Sequence[Any]) -> list[Any]:
        given = iter(arrays[len(self.kept) :])
        return [next(given) if there else None for there in self.cts]

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        _, pull = self.inner.linearize(self._primals(arrays), scalars, self.wrt)
        return pull(self.cotangents(arrays))

    def check(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The data-dependent checks of the gradient."""
        results = self.inner.apply(self._primals(arrays), scalars)
        return self.inner.op.gradient_checks(results, self.cotangents(arrays))

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        return ("operands",)

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        return tuple(range(self.n_arrays))

    def differentiable(self, i: int) -> bool:
        if i >= len(self.kept):
            return True
        return bends(self.inner, self.wrt, self.kept[i])


class PythonCall(AnyCall):
    """A function whose backward is Python code: operands (inputs, raw outputs…).

    Its results are the raw outputs with a new autograd identity. What runs in a
    backward is found in the recording (`Recording.python`), not in the call.
    """

    __slots__ = ("grad_name", "n_arrays", "n_inputs", "template")

    op: Any = None
    write = False

    def __init__(self, name: str, n_inputs: int, n_outputs: int) -> None:
        self.grad_name: str | None = name
        self.n_inputs = n_inputs
        self.n_arrays = n_inputs + n_outputs
        self.template: tuple[Any, ...] = ()
        self._inferred = {}

    def __repr__(self) -> str:
        return f"python[{self.grad_name}]"

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        return tuple(arrays[self.n_inputs :])

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        return ()

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        return ()

    def differentiable(self, i: int) -> bool:
        return i < self.n_inputs


_CALLS: dict[Any, Any] = {}
_CALLS_BOUND = 100_000


def intern_call(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """The one call with this key; two equal calls are the same object."""
    call = _CALLS.get(key)
    if call is None:
        if len(_CALLS) >= _CALLS_BOUND:
            _CALLS.clear()  # equal calls made later are only not identical
        call = _CALLS[key] = make()
    return call


def known_call(key: tuple[Any, ...]) -> Any:
    """The call that `intern_call` has with this key, if any."""
    return _CALLS.get(key)


def interned_vjp(
    inner: Any,
    wrt: tuple[int, ...],
    cts: tuple[bool, ...],
    absent: tuple[Any, ...],
    checked: bool,
) -> VjpCall:
    """The one gradient call with these attributes."""
    fields = inner, wrt, cts, absent, checked
    return intern_call(("vjp", *fields), lambda: VjpCall(*fields))
