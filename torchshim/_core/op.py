"""What an operator is: one declaration, and the calls that are made of it.

`@op` registers a pure JAX function and returns it unchanged. Everything that a user
sees of the operator (function, method, `name_`, `out=`, signature) is derived from the
declaration by `_bind`. A `Call` is an operator with its static arguments filled in; it
is what a recording holds and what a program runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes, promotion
from torchshim._core.dtypes import dtype as DType

# Roles of parameters, read off the annotation of an operator's function.
ARRAY = "Array"  # a tensor: recorded, differentiable
OPT_ARRAY = "Array | None"
OPERAND = "Operand"  # a tensor or a number
OPT_OPERAND = "Operand | None"
ARRAYS = "Arrays"  # a sequence of tensors
OPT_ARRAYS = "OptArrays"  # a sequence of tensors and None
SCALAR = "Scalar"  # a number: floats are runtime scalars, integers are learnt
OPT_SCALAR = "Scalar | None"
INDEX = "Index"  # an integer that may become a runtime scalar
INDICES = "Indices"  # a tuple of such integers
SHAPE = "Shape"  # integers, or one sequence of them
STATIC = "static"  # anything hashable; part of the key

_ROLES = {
    r: r
    for r in (
        ARRAY,
        OPT_ARRAY,
        OPERAND,
        OPT_OPERAND,
        ARRAYS,
        OPT_ARRAYS,
        SCALAR,
        OPT_SCALAR,
        INDEX,
        INDICES,
        SHAPE,
    )
}

# Annotations of operator functions; what they mean is said above.
Array = jax.Array
Operand = Any
Arrays = Sequence[jax.Array]
OptArrays = Sequence[Any]
Scalar = Any
Index = Any
Indices = Sequence[Any]
Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an operator."""

    name: str
    role: str
    annotation: str
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class View:
    """How an operator's result aliases its first operand.

    `geometry(shape, strides, offset, *args)` gives the result's (shape, strides,
    offset), or None where the result has to be a copy; a list of those for operators
    with several results. `write(base, new, *args)` gives the base with the viewed piece
    replaced by `new`; for several results it also takes `part=`.
    """

    geometry: Callable[..., Any]
    write: Callable[..., Any]
    # The result has the base's memory but none of its history.
    detached: bool = False
    # The result has another dtype than the base, and `write` expects that.
    retyped: bool = False


class Op:
    """An operator: its JAX function and how it differs from the default operator."""

    __slots__ = (
        "aliases",
        "checks",
        "curved",
        "differentiable",
        "doc",
        "fn",
        "grad_fn",
        "inplace",
        "layout",
        "method",
        "module",
        "mutates",
        "name",
        "named_result",
        "namespaces",
        "operands",
        "out",
        "overload",
        "params",
        "promote",
        "public",
        "results",
        "saves",
        "typecheck",
        "view",
        "writes",
    )

    def __init__(self, fn: Callable[..., Any], **fields: Any) -> None:
        self.fn = fn
        for name, value in fields.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> Any:
        return REGISTRY.__getitem__, (self.name,)

    def saved(self, wrt: Sequence[str]) -> tuple[str, ...]:
        """Names of what PyTorch keeps for the gradients of the parameters `wrt`."""
        if isinstance(self.saves, dict):
            names: list[str] = []
            for name in wrt:
                names += [n for n in self.saves.get(name, ()) if n not in names]
            return tuple(names)
        return self.saves


REGISTRY: dict[str, Op] = {}


def op(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    public: str | None = None,
    promote: str | None = None,
    grad_fn: str | Callable[..., str] | None = None,
    saves: Sequence[str] | dict[str, Sequence[str]] | None = None,
    inplace: bool = False,
    out: bool | None = None,
    method: bool | str = True,
    aliases: Sequence[str] = (),
    namespaces: Sequence[str] = ("torch",),
    differentiable: bool | Sequence[str] = True,
    view: View | None = None,
    layout: str | Callable[..., Any] | None = None,
    named_result: tuple[str, ...] | None = None,
    checks: Callable[..., Any] | None = None,
    overload: bool = False,
    operands: Sequence[str] | None = None,
    mutates: Sequence[str] = (),
    curved: bool = True,
    typecheck: Callable[..., Any] | None = None,
) -> Any:
    """Declares an operator; the decorated function is returned unchanged.

    - `name`: the key in `REGISTRY` (default: the function's name); `public`: the name
      users call (default: `name`). Several operators with one public name and
      `overload=True` are told apart by their arguments, in order of declaration.
    - `promote`: a promotion kind of `_core.promotion`; tensors and numbers reach the
      function in the computation dtype and results leave in the result dtype.
    - `grad_fn`: PyTorch's node name, or a function of the arguments giving it.
    - `saves`: what PyTorch saves for backward: names of parameters or "result"; a dict
      from a differentiated parameter to those it needs. Default: everything.
    - `differentiable`: False, or the names of the parameters gradients flow to.
    - `layout`: "preserve" gives element-wise memory order (the default with promote);
      a function of the operands' (shape, strides) gives strides.
    - `operands`: the parameters that take part in promotion (default: all tensors and
      operands); the others keep their dtype.
    - `curved`: False for operators that are piecewise linear: their gradient does not
      depend on the operands, so that second derivatives do not flow to them.
    - `mutates`: the parameters whose tensors the results replace, see
      `Recorder.mutate`.
    - `checks(*args)`: data-dependent checks, see `_core.checks`.
    - `typecheck(*metas or values)`: raises what PyTorch raises at the call, where the
      operator's own function cannot.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(fn)
        params = tuple(
            Param(
                p.name,
                _ROLES.get(str(p.annotation), STATIC),
                str(p.annotation),
                p.default,
                p.kind is inspect.Parameter.KEYWORD_ONLY,
            )
            for p in signature.parameters.values()
        )
        returns = str(signature.return_annotation)
        results = "tensor"
        if returns.startswith(("tuple", "list")):
            results = "list" if returns.startswith("list") else "tuple"
        key = name or fn.__name__
        if key in REGISTRY:
            raise ValueError(f"operator {key!r} is declared twice")
        roles = [p.role for p in params]
        from_tensors = any(
            r in (ARRAY, OPERAND, ARRAYS, OPT_ARRAY, OPT_OPERAND) for r in roles
        )
        REGISTRY[key] = Op(
            fn,
            name=key,
            public=public or key,
            params=params,
            promote=promote,
            grad_fn=grad_fn,
            saves=saves
            if saves is not None
            else tuple(p.name for p in params if p.role != STATIC),
            inplace=inplace,
            out=(view is None and from_tensors and results == "tensor")
            if out is None
            else out,
            method=method if roles[:1] in ([ARRAY], [OPERAND]) else False,
            aliases=tuple(aliases),
            namespaces=tuple(namespaces),
            differentiable=differentiable,
            view=view,
            layout=layout or ("preserve" if promote else None),
            named_result=named_result,
            checks=checks,
            overload=overload,
            operands=None if operands is None else tuple(operands),
            mutates=tuple(mutates),
            curved=curved,
            typecheck=typecheck,
            results=results,
            writes=False,
            module=fn.__module__,
            doc=inspect.getdoc(fn) or "",
        )
        return fn

    return declare if fn is None else declare(fn)


class Hole:
    """A place in a template that an array fills at run time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "HOLE"


class ScalarHole:
    """A place in a template that a runtime scalar fills."""

    __slots__ = ("integer",)

    def __init__(self, integer: bool) -> None:
        self.integer = integer

    def __repr__(self) -> str:
        return "INT" if self.integer else "FLOAT"


HOLE = Hole()
FLOAT_HOLE = ScalarHole(False)
INT_HOLE = ScalarHole(True)


class Number:
    """A static number among the operands (kept apart from a plain static argument)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash((self.value.__class__, self.value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Number)
            and other.value.__class__ is self.value.__class__
            and other.value == self.value
        )

    def __repr__(self) -> str:
        return repr(self.value)


Outputs = tuple[jax.Array, ...]


class Call:
    """An operator with its static arguments: a function of arrays and scalars.

    `template` has one entry a parameter: `HOLE`, a tuple of `HOLE`/None, a
    `ScalarHole`, a `Number` or a static value. Calls are interned.
    """

    __slots__ = (
        "_inferred",
        "default_dtype",
        "n_arrays",
        "n_scalars",
        "op",
        "owners",
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
        self.n_scalars = sum(
            isinstance(e, ScalarHole)
            for entry in template
            for e in (entry if isinstance(entry, tuple) else (entry,))
        )
        self._inferred: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"{self.op.name}{'_' if self.write else ''}{self.template}"

    def placeholders(self) -> list[Any]:
        """Stand-ins for runtime scalars where only their kind matters."""
        return [
            1 if e.integer else 0.0
            for entry in self.template
            for e in (entry if isinstance(entry, tuple) else (entry,))
            if isinstance(e, ScalarHole)
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
                args.append(next(scalars_left))
            elif isinstance(entry, Number):
                args.append(entry.value)
            elif isinstance(entry, tuple):
                args.append(_fill(entry, arrays_left, scalars_left))
            else:
                args.append(entry)
        return args

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        """Runs the operator on arrays (or tracers); always a tuple of results."""
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
        for arg, entry, param in zip(
            args, self.template, self.op.params, strict=True
        ):
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
                elif entry is None:
                    continue
                else:
                    kind = promotion.scalar_dtype(entry.value, self.default_dtype)
                kinds.append((kind, promotion.SCALAR))
        return kinds

    def _promoted(self, args: list[Any]) -> tuple[list[Any], Any]:
        compute, result = promotion.resolve(
            self.op.promote, self._operand_kinds(args), self.default_dtype
        )
        np_dtype = compute.np
        cast: list[Any] = []
        takes_part = self.op.operands
        for arg, entry, param in zip(
            args, self.template, self.op.params, strict=True
        ):
            if takes_part is not None and param.name not in takes_part:
                cast.append(arg)
            elif entry is HOLE:
                cast.append(arg if arg.dtype == np_dtype else arg.astype(np_dtype))
            elif isinstance(entry, tuple) and HOLE in entry:
                cast.append([a if a is None else a.astype(np_dtype) for a in arg])
            elif (
                param.role in (OPERAND, OPT_OPERAND, SCALAR, OPT_SCALAR)
                and arg is not None
            ):
                cast.append(number(arg, np_dtype))
            else:
                cast.append(arg)
        return cast, result.np

    def promoted(self, metas: Sequence[Any]) -> DType:
        """The dtype that operands of these metas promote to."""
        args = self.arguments(metas, self.placeholders())
        kinds = self._operand_kinds(args)
        return promotion.resolve(self.op.promote, kinds, self.default_dtype)[1]

    # -- inference ---------------------------------------------------------------

    def infer(
        self, avals: tuple[tuple[tuple[int, ...], DType], ...]
    ) -> tuple[tuple[tuple[int, ...], DType], ...]:
        """Shapes and dtypes of the results; raises what the operator raises."""
        found = self._inferred.get(avals)
        if found is None:
            if len(self._inferred) > 256:
                self._inferred.clear()
            if self.op is not None and self.op.layout == "preserve":
                broadcast_shape([shape for shape, _ in avals])
            found = self._inferred[avals] = infer_avals(self, avals)
        return found

    # -- differentiation -----------------------------------------------------------

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        """Names of what PyTorch keeps for the gradients of the operands `wrt`."""
        return self.op.saved([self.owners[i] for i in wrt])

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        """Operands whose values the gradients for `wrt` may depend on."""
        saved = self.saved(wrt)
        if not saved:
            return ()
        if "result" in saved:
            # The result is a function of the operands; those are what we keep.
            return tuple(range(self.n_arrays))
        return tuple(i for i, name in enumerate(self.owners) if name in saved)

    def differentiable(self, i: int) -> bool:
        """Whether gradients flow to operand `i` at all."""
        flows = self.op.differentiable
        return flows if isinstance(flows, bool) else self.owners[i] in flows

    def linearize(
        self, arrays: Sequence[Any], scalars: Sequence[Any], wrt: Sequence[int]
    ) -> tuple[Outputs, Callable[[Sequence[Any]], Outputs]]:
        """The results, and the function from cotangents to gradients for `wrt`."""
        return linearize(self.apply, arrays, scalars, wrt)


def _operand_kind(arg: Any) -> tuple[DType, int]:
    """What an array or a meta weighs in promotion."""
    kind = arg.dtype
    if not isinstance(kind, DType):
        kind = dtypes.from_array_dtype(kind)
    return kind, promotion.DIMENSIONED if arg.shape else promotion.ZERO_DIM


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


def number(value: Any, np_dtype: Any) -> Any:
    """A Python number or runtime scalar as a 0-dim array of the given dtype."""
    if isinstance(value, jax.Array):
        return value.astype(np_dtype)
    if (
        isinstance(value, int)
        and np.issubdtype(np_dtype, np.integer)
        and not isinstance(value, bool)
    ):
        # As C converts: modulo 2**bits.
        bits = np.dtype(np_dtype).itemsize * 8
        value = int(value) & ((1 << bits) - 1)
        if np.issubdtype(np_dtype, np.signedinteger) and value >> (bits - 1):
            value -= 1 << bits
    return np.asarray(value, dtype=np_dtype)


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of element-wise operands; PyTorch's error if there is none."""
    common: tuple[int, ...] = ()
    for shape in shapes:
        ndim = max(len(common), len(shape))
        a = (1,) * (ndim - len(common)) + tuple(common)
        b = (1,) * (ndim - len(shape)) + tuple(shape)
        for dim, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y and x != 1 and y != 1:
                raise RuntimeError(
                    f"The size of tensor a ({x}) must match the size of tensor b "
                    f"({y}) at non-singleton dimension {dim}"
                )
        common = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return common


def infer_avals(call: Any, avals: Sequence[Any]) -> Any:
    """Shapes and dtypes of a call's results through `jax.eval_shape`."""
    structs = [jax.ShapeDtypeStruct(shape, dtype.np) for shape, dtype in avals]
    scalars = [
        jax.ShapeDtypeStruct((), np.int64 if h.integer else np.float64)
        for entry in call.template
        for h in (entry if isinstance(entry, tuple) else (entry,))
        if isinstance(h, ScalarHole)
    ]
    with jax.enable_x64(True):
        outs = jax.eval_shape(lambda a, s: call.apply(a, s), structs, scalars)
    return tuple((tuple(o.shape), dtypes.from_array_dtype(o.dtype)) for o in outs)


def linearize(
    apply: Callable[..., Outputs],
    arrays: Sequence[Any],
    scalars: Sequence[Any],
    wrt: Sequence[int],
) -> tuple[Outputs, Callable[[Sequence[Any]], Outputs]]:
    """`jax.vjp` of a call with PyTorch's conventions.

    PyTorch's gradient of a complex value is the conjugate of JAX's.
    """
    wrt = tuple(wrt)

    def restricted(*chosen: Any) -> Outputs:
        full = list(arrays)
        for i, value in zip(wrt, chosen, strict=True):
            full[i] = value
        return apply(full, scalars)

    outs, pull = jax.vjp(restricted, *(arrays[i] for i in wrt))

    def backward(cotangents: Sequence[Any]) -> Outputs:
        cts = []
        for out, ct in zip(outs, cotangents, strict=True):
            if not jnp.issubdtype(out.dtype, jnp.inexact):
                ct = np.zeros(out.shape, jax.dtypes.float0)
            elif ct is None:
                ct = jnp.zeros(out.shape, out.dtype)
            elif jnp.iscomplexobj(out):
                ct = jnp.conj(ct.astype(out.dtype))
            else:
                if jnp.iscomplexobj(ct):
                    ct = ct.real
                ct = ct.astype(out.dtype)
            cts.append(ct)
        grads = pull(tuple(cts))
        return tuple(jnp.conj(g) if jnp.iscomplexobj(g) else g for g in grads)

    return outs, backward


class VjpCall:
    """The gradient of a call: a call itself, so it can be differentiated again.

    Operands: those of `inner` whose value its gradient needs, then the cotangents that
    are given. Results: one gradient for each operand in `wrt`.
    """

    __slots__ = (
        "_inferred",
        "absent",
        "cts",
        "grad_name",
        "inner",
        "kept",
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
    ) -> None:
        self.inner = inner
        self.wrt = wrt
        self.cts = cts
        # The aval of each operand whose value is not passed, None for the others.
        self.absent = absent
        self.kept = tuple(i for i, a in enumerate(absent) if a is None)
        self.n_arrays = len(self.kept) + sum(cts)
        self.template = inner.template
        self.grad_name: str | None = None
        self._inferred: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"vjp[{self.inner!r}]"

    def _primals(self, arrays: Sequence[Any]) -> list[Any]:
        given = iter(arrays)
        return [
            next(given) if aval is None else jnp.zeros(aval[0], aval[1].np)
            for aval in self.absent
        ]

    def cotangents(self, arrays: Sequence[Any]) -> list[Any]:
        given = iter(arrays[len(self.kept) :])
        return [next(given) if there else None for there in self.cts]

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        _, pull = self.inner.linearize(self._primals(arrays), scalars, self.wrt)
        return pull(self.cotangents(arrays))

    infer = Call.infer
    linearize = Call.linearize

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        return ("operands",)

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        return tuple(range(self.n_arrays))

    def differentiable(self, i: int) -> bool:
        if i >= len(self.kept):
            return True
        op = self.inner.op
        curved = op is None or op.curved
        return curved and self.inner.differentiable(self.kept[i])


_WRITERS: dict[Op, Op] = {}


def write_op(view: Op) -> Op:
    """The operator that puts a new piece back into the base of a view.

    Operands (base, new, …the view's arguments, part): what CopySlices does in PyTorch.
    """
    found = _WRITERS.get(view)
    if found is None:
        found = _WRITERS[view] = _make_write_op(view)
    return found


def _make_write_op(view: Op) -> Op:
    assert view.view is not None
    write, several = view.view.write, view.results != "tensor"

    def written(base: Any, new: Any, *args: Any) -> Any:
        *rest, part = args
        if new.dtype != base.dtype and not view.view.retyped:
            new = new.astype(base.dtype)
        return write(base, new, *rest, **({"part": part} if several else {}))

    empty = inspect.Parameter.empty
    params = (
        Param("base", ARRAY, ARRAY, empty, False),
        Param("new", ARRAY, ARRAY, empty, False),
        # Positional for the writer, however the view takes them.
        *(Param(p.name, p.role, p.annotation, empty, False) for p in view.params[1:]),
        Param("part", STATIC, "int", empty, False),
    )
    fields = {n: getattr(view, n) for n in Op.__slots__ if n != "fn"}
    fields |= {
        "name": f"write_{view.name}",
        "params": params,
        "promote": None,
        "grad_fn": "CopySlices",
        "saves": (),
        "differentiable": ("base", "new"),
        "view": None,
        "layout": None,
        "results": "tensor",
        "checks": None,
        "typecheck": None,
        "curved": False,
    }
    return Op(written, **fields)


class PythonCall:
    """A function whose backward is Python code: operands (inputs, raw outputs…).

    Its results are the raw outputs with a new autograd identity. What runs in a
    backward is found in the recording (`Recording.python`), not in the call.
    """

    __slots__ = ("_inferred", "flows", "grad_name", "n_arrays", "n_inputs", "template")

    op: Any = None
    write = False

    def __init__(
        self, name: str, n_inputs: int, n_outputs: int, flows: tuple[bool, ...]
    ) -> None:
        self.grad_name: str | None = name
        self.n_inputs = n_inputs
        self.n_arrays = n_inputs + n_outputs
        # Which outputs are differentiable.
        self.flows = flows
        self.template: tuple[Any, ...] = ()
        self._inferred: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"python[{self.grad_name}]"

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        return tuple(arrays[self.n_inputs :])

    infer = Call.infer

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
