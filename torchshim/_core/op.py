"""What an operator is: one declaration, and the calls that are made of it.

`@op` registers a pure JAX function and returns it unchanged. Everything that a user
sees of the operator (function, method, `name_`, `out=`, signature) is derived from the
declaration by `_bind`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from torchshim._core.declared import check
from torchshim._core.dtypes import INTEGER
from torchshim._core.promotion import cast

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
SCALAR_ROLES = (OPERAND, OPT_OPERAND, SCALAR, OPT_SCALAR)

# Intervals for `varies`, and numbers in them that stay static. Elements of all floating
# types can be such numbers.
ANY = (-(2.0**15), 2.0**15)
POSITIVE = (0.0, 2.0**15)
ORDER = (0.0, 2.0**15, 1.0, 2.0)  # of norms
# One that is in all of them.
IN_RANGE = 0.5

_ROLES = frozenset(
    (*SCALAR_ROLES, ARRAY, OPT_ARRAY, ARRAYS, OPT_ARRAYS, INDEX, INDICES, SHAPE)
)

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
    # The result shows the elements conjugated ("conj") or negated ("neg").
    bit: str | None = None
    # For several results, from (*args, part): the name and the arguments of the view
    # operator that gives one of them alone.
    alone: Callable[..., tuple[str, tuple[Any, ...]]] | None = None

    @property
    def strided(self) -> bool:
        """Whether strides say all of it, so that `as_strided` would do as well."""
        return not self.retyped and self.bit is None


@dataclass(frozen=True, slots=True)
class Arranged:
    """A layout that depends on an operator's arguments, not on its operands alone.

    `strides(shape, *args)` gives the strides of the result (None: contiguous), where
    tensors among `args` are their (shape, strides).
    """

    strides: Callable[..., tuple[int, ...] | None]


@dataclass(slots=True, eq=False, repr=False)
class Op:
    """An operator: its JAX function and how it differs from the default operator."""

    fn: Callable[..., Any]
    name: str
    public: str
    params: tuple[Param, ...]
    promote: str | None
    grad_fn: str | Callable[..., str] | None
    saves: Sequence[str] | Mapping[str, Sequence[str]]
    shape: Callable[..., tuple[int, ...] | None] | None
    static_for: Callable[..., bool] | None
    varies: Mapping[str, tuple[float, ...]]
    own_floats: Mapping[str, tuple[float, ...]]
    sparse_grad: Callable[..., tuple[str, bool] | None] | None
    inplace: bool | Mapping[str, Any]
    inplace_check: Callable[..., Any] | None
    inplace_gradient_check: Callable[..., Any] | None
    out: bool | str | tuple[bool | str, ...] | Callable[..., bool | str]
    castable: str | Callable[..., str] | tuple[str, ...]
    unfollowed: bool
    method: bool | str
    aliases: tuple[str, ...]
    namespaces: tuple[str, ...]
    differentiable: bool | Sequence[str] | Callable[..., Sequence[str]]
    edges: tuple[str | None, ...] | None
    fits: tuple[str, ...]
    view: View | None
    layout: str | Arranged | Callable[..., Any] | None
    named_result: tuple[str, ...] | None
    checks: Callable[..., Any] | None
    checks_for: Callable[..., bool] | None
    convolves: bool
    one_node: bool
    gradient_checks: Callable[..., Any] | None
    overload: bool
    operands: tuple[str, ...] | None
    part: bool | Callable[..., bool]
    passes: Sequence[str] | Callable[..., Sequence[str]]
    mutates: tuple[str, ...]
    curved: bool | Mapping[str, Sequence[str]]
    real_gradients: str | Callable[..., str] | None
    typecheck: Callable[..., Any] | None
    warns: Callable[..., str | None] | None
    level: str | None
    overlaps: bool | tuple[str, str, int]
    apart: tuple[str, ...]
    whole: tuple[str, ...]
    on_stack: Callable[..., Any] | None
    results: str
    writes: bool
    module: str
    doc: str

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def parsed(self) -> str:
        """The name in PyTorch's errors about arguments: `linalg_inv`."""
        spaces = tuple(self.namespaces)
        if spaces in (("linalg",), ("fft",), ("special",)):
            return f"{spaces[0]}_{self.public}"
        return self.public

    def to(self, args: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
        """The arguments of a call whose result `out` is to take."""
        if self.out != "computed":
            return args
        at = [p.name for p in self.params].index("dtype")
        kind = out._tmeta.dtype if args[at] is None else args[at]
        return *args[:at], kind, *args[at + 1 :]

    def __reduce__(self) -> Any:
        return REGISTRY.__getitem__, (self.name,)

    def is_checked(self, metas: Sequence[Any]) -> bool:
        """Whether there are data-dependent checks for tensors of these metas."""
        if self.checks is None:
            return False
        return self.checks_for is None or self.checks_for(metas)

    def saved(self, wrt: Sequence[str]) -> tuple[str, ...]:
        """Names of what PyTorch keeps for the gradients of the parameters `wrt`."""
        if isinstance(self.saves, Mapping):
            names: list[str] = []
            for name in wrt:
                names += [n for n in self.saves.get(name, ()) if n not in names]
            return tuple(names)
        return tuple(self.saves)

    def may_vary(self, name: str, value: Any) -> bool:
        """Whether a static number may be a runtime scalar, see `varies`."""
        if name not in self.varies or value.__class__ not in (float, int):
            return False
        low, high, *special = self.varies[name]
        return low < value < high and value not in special

    @property
    def is_product(self) -> bool:
        """Whether it is one of tensors: each gradient takes all the other factors.

        PyTorch's formula uses these as they are, unless there is a number that it
        multiplies by first.
        """
        if not isinstance(self.saves, Mapping):
            return False
        factors = {name for names in self.saves.values() for name in names}
        return all(
            names == () or {*names} == factors - {name}
            for name, names in self.saves.items()
        ) and not (self.promote and any(p.role == SCALAR for p in self.params))


def bends(call: Any, wrt: Sequence[int], i: int) -> bool:
    """Whether the derivatives of a call by the operands `wrt` flow to operand `i`."""
    curved = True if call.op is None else call.op.curved
    if not isinstance(curved, bool):
        name = call.owners[i]
        curved = any(name in curved.get(call.owners[w], ()) for w in wrt)
    return curved and call.differentiable(i)


REGISTRY: dict[str, Op] = {}


def _narrow(metas: Sequence[Any]) -> bool:
    """Whether integers may be too large for the elements of one of these tensors."""
    kinds = [meta.dtype for meta in metas]
    return all(k.category <= INTEGER for k in kinds) and any(
        k.category == INTEGER and k.itemsize < 8 for k in kinds
    )


def op(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    public: str | None = None,
    promote: str | None = None,
    grad_fn: str | Callable[..., str] | None = None,
    saves: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    inplace: bool | Mapping[str, Any] = False,
    inplace_check: Callable[..., Any] | None = None,
    inplace_gradient_check: Callable[..., Any] | None = None,
    out: bool | str | tuple[bool | str, ...] | Callable[..., bool | str] | None = None,
    castable: str | Callable[..., str] | tuple[str, ...] = (),
    unfollowed: bool = False,
    method: bool | str = True,
    aliases: Sequence[str] = (),
    namespaces: Sequence[str] = ("torch",),
    differentiable: bool | Sequence[str] | Callable[..., Sequence[str]] = True,
    edges: Sequence[str | None] | None = None,
    fits: Sequence[str] = (),
    view: View | None = None,
    layout: str | Arranged | Callable[..., Any] | None = None,
    named_result: tuple[str, ...] | None = None,
    checks: Callable[..., Any] | None = None,
    checks_for: Callable[..., bool] | None = None,
    convolves: bool = False,
    one_node: bool = False,
    gradient_checks: Callable[..., Any] | None = None,
    overload: bool = False,
    operands: Sequence[str] | None = None,
    part: bool | Callable[..., bool] = False,
    passes: Sequence[str] | Callable[..., Sequence[str]] = (),
    mutates: Sequence[str] = (),
    curved: bool | Mapping[str, Sequence[str]] = True,
    real_gradients: str | Callable[..., str] | None = None,
    typecheck: Callable[..., Any] | None = None,
    warns: Callable[..., str | None] | None = None,
    static_for: Callable[..., bool] | None = None,
    varies: Mapping[str, tuple[float, ...]] | None = None,
    own_floats: Mapping[str, tuple[float, ...]] | None = None,
    shape: Callable[..., tuple[int, ...] | None] | None = None,
    sparse_grad: Callable[..., tuple[str, bool] | None] | None = None,
    level: str | None = None,
    overlaps: bool | tuple[str, str, int] = False,
    apart: Sequence[str] = (),
    whole: Sequence[str] = (),
    on_stack: Callable[..., Any] | None = None,
) -> Any:
    """Declares an operator; the decorated function is returned unchanged.

    Names and forms:

    - `name`: the key in `REGISTRY` (default: the function's name); `public`: the name
      users call (default: `name`); `aliases`: further ones. Several operators with one
      public name and `overload=True` are told apart by their arguments, in order of
      declaration.
    - `namespaces`: the modules that have the function ("torch" is torch itself,
      "special" is `torch.special`); `method`: whether tensors have it as a method, or
      that method's name, if it is another.
    - `inplace`: whether there is an in-place form, or a dict of the fields that are
      different for it. `inplace_check` and `inplace_gradient_check` raise what that
      form alone refuses, before all else.
    - `out`: whether there is `out=` (default: for functions of tensors with one
      result). A text: only the result's own dtype is accepted, and this is the error
      otherwise, with `have`, `want` and parameters; a tuple has one for each of several
      results. "exact" and "same" are the texts of most functions, and of PyTorch's
      element-wise loops. "asked": only the dtype that the parameter `dtype` asks for,
      if it does; "computed": if it doesn't, the function is asked for the dtype of
      `out`. Or a function of the arguments that gives True or a text.
    - `castable`: the error for an `out=` of a dtype that the result can't be cast to,
      where PyTorch has another one than usual; or a function that gives it.
    - `unfollowed`: whether autograd takes the form with `out=` for an operator without
      a derivative (of most operators it refuses that form).
    - `named_result`: the names of the fields, for several results.
    - `mutates`: the parameters whose tensors the results replace, see `Writing.mutate`.

    Dtypes and memory:

    - `promote`: a promotion kind of `_core.promotion`. Tensors and numbers reach the
      function in the computation dtype, and results leave in the result dtype.
    - `operands`: the parameters that take part in promotion (default: all tensors and
      operands); the others keep their dtype.
    - `fits`: the parameters for which numbers are refused that the computation dtype,
      or one that the function chooses (`promotion.element`), cannot hold. Without it
      they wrap around or become infinite. See `Inference.noticed`.
    - `view`: a `View`, if the result may share the memory of the first operand.
    - `layout`: "preserve" gives element-wise memory order (the default with `promote`);
      an `Arranged` one that depends on other arguments, too; a function of the
      operands' (shape, strides) gives strides.
    - `part`: whether it replaces a part of its first operand, or a function of the
      arguments (None for tensors) that says so. PyTorch's gradient is then what
      arrives, with zeros in that part, even where that is all of it.
    - `overlaps`: whether the in-place form accepts expanded tensors, in which several
      elements are one in memory; a tuple with a name and an example of a write by
      index: it does, with a warning that shows them.
    - `apart`: the parameters whose memory must not be written to, by `out=` or the
      in-place form; `whole`: those whose memory may be, if it is exactly what is
      written (default: all of element-wise operators).

    Gradients:

    - `grad_fn`: the name of PyTorch's node, or a function of the arguments (metas for
      tensors) that gives it. Default: made from the public name; "": it has no node of
      its own, but that of its operand.
    - `saves`: what PyTorch saves for backward (default: everything). Names of
      parameters; "result" ("result0", "result1": one of two); "intermediate": what it
      computes on the way, which users cannot overwrite; "computed": besides the first
      parameter, what is computed from it. Or a dict from a differentiated parameter to
      those it needs.
    - `differentiable`: False, or the names of the parameters that gradients flow to, or
      a function of the arguments (None for tensors) that gives these names.
    - `edges`: these names in the order of the edges of PyTorch's node, if that is
      another; None stands for an edge that leads nowhere.
    - `passes`: the parameters whose gradient is the very tensor that arrives, if it has
      their shape and dtype, as in PyTorch; or a function of the arguments (None for
      tensors, NaN for runtime scalars) that gives them.
    - `curved`: False for operators that are piecewise linear: second derivatives do not
      flow to the operands, as the gradient does not depend on them. Or a dict from a
      differentiated parameter to those that its gradient depends on.
    - `one_node`: whether PyTorch's gradient of it is one node, too. Then each part of
      the gradient, even a bias's, has the history of everything that the node saved.
    - `sparse_grad`: a function of the arguments (metas for tensors). Where the gradient
      of the first operand is sparse, it gives the name of the operator that makes it,
      and whether that leaves values out (`_ops/sparse_gradients.py`); otherwise None.

    Errors:

    - `real_gradients`: the name by which PyTorch refuses complex results that require
      grad, unless in place; or a function of the arguments that gives it.
    - `typecheck(*metas or values)`: raises what PyTorch raises at the call, where the
      operator's function cannot. `warns(*metas or values)`: the text of PyTorch's
      warning at the call, if there is one; such calls always take the slow path.
    - `checks(*args)`: data-dependent checks, see `_core.checks`; `checks_for(metas)`:
      whether there are any for tensors of these metas (default: always);
      `gradient_checks(results, cotangents)`: those of its gradient, where a cotangent
      may be None.

    Shapes and numbers:

    - `shape`: a function of the arguments (shapes for tensors) that gives the one shape
      of all results; None where a trace of the operator's function has to tell, which
      is also where the function refuses the shapes. Without it, element-wise operators
      broadcast their operands, and others are traced for each shape.
    - `static_for(metas)`: whether integers stay static for tensors of these metas,
      since `typecheck` needs their values (default: they may become runtime scalars).
    - `varies`: static floats that become runtime scalars once they are seen to vary:
      for each an open interval, and numbers in it that stay static. Those, and numbers
      outside, are refused or have an algorithm of their own. The function gets a
      runtime scalar as a 0-dim array that promotes nothing, so that it computes with it
      in double precision, as Python does.
    - `own_floats`: of numbers that may be operands, those with a way of their own:
      they stay static, where all other floats are runtime scalars.

    Programs:

    - `level`: the function itself handles the dimension of the `vmap` whose number is
      the parameter `level`: that of this operand, or of its "result".
    - `convolves`: whether it is a convolution, see `_core.convolutions`.
    - `on_stack`: for an operator that joins tensors, or takes one apart, where these
      are all alike: the linear function of the stack of its operands, or to the stack
      of its results, that does the same, see `_core.stacks`.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(fn)
        params = tuple(
            Param(
                p.name,
                role if (role := str(p.annotation)) in _ROLES else STATIC,
                role,
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
        order = layout or ("preserve" if promote else None)
        element_wise = tuple(p.name for p in params) if order == "preserve" else ()
        made = Op(
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
            inplace_check=inplace_check,
            inplace_gradient_check=inplace_gradient_check,
            out=(view is None and from_tensors and results == "tensor")
            if out is None
            else out,
            castable=castable,
            unfollowed=unfollowed,
            method=method if roles[:1] in ([ARRAY], [OPERAND]) else False,
            aliases=tuple(aliases),
            namespaces=tuple(namespaces),
            differentiable=differentiable,
            edges=None if edges is None else tuple(edges),
            fits=tuple(fits),
            view=view,
            layout=order,
            named_result=named_result,
            checks=checks,
            checks_for=checks_for,
            convolves=convolves,
            one_node=one_node or convolves,
            gradient_checks=gradient_checks,
            overload=overload,
            operands=None if operands is None else tuple(operands),
            part=part,
            passes=passes,
            mutates=tuple(mutates),
            curved=curved,
            real_gradients=real_gradients,
            typecheck=typecheck,
            warns=warns,
            shape=shape,
            sparse_grad=sparse_grad,
            static_for=static_for or (_narrow if fits else None),
            varies=varies or {},
            own_floats=own_floats or {},
            level=level,
            overlaps=overlaps,
            apart=tuple(apart),
            whole=tuple(whole) or element_wise,
            on_stack=on_stack,
            results=results,
            writes=False,
            module=fn.__module__,
            doc=inspect.getdoc(fn) or "",
        )
        check(made)
        REGISTRY[key] = made
        return fn

    return declare if fn is None else declare(fn)


_WRITERS: dict[Op, Op] = {}


def write_op(view: Op) -> Op:
    """The operator that puts a new piece back into the base of a view.

    Operands (base, new, …the view's arguments, part): what CopySlices does in PyTorch.
    """
    found = _WRITERS.get(view)
    if found is None:
        found = _WRITERS[view] = _make_write_op(view)
    return found


_ANEW: dict[Op, Op] = {}


def anew(view: Op) -> Op:
    """A view as it is made anew after a write to its memory.

    PyTorch makes it by `as_strided` then, whose gradient is never the one that arrives.
    """
    assert view.view is not None
    if not view.passes or not view.view.strided:
        return view
    found = _ANEW.get(view)
    if found is None:
        found = _ANEW[view] = replace(view, passes=())
    return found


def alone(op: Op, args: Sequence[Any], part: int) -> tuple[Op, Sequence[Any], int]:
    """The step of a view path that shows one result of a view operator, by itself.

    So the pieces of a tensor are one program, and none makes what it does not show.
    """
    if op.view is None or op.view.alone is None:
        return op, args, part
    name, args = op.view.alone(*args, part)
    return REGISTRY[name], args, 0


def puts_back(op: Op) -> bool:
    """Whether an operator is one that `write_op` gives."""
    return op in _WRITERS.values()


def origin(op: Op) -> tuple[str, Callable[[Op], Op] | None]:
    """The declared operator that one belongs to, and what makes this one of it."""
    for form, made in ((write_op, _WRITERS), (anew, _ANEW)):
        for view, found in made.items():
            if found is op:
                return view.name, form
    return op.name, None


def _make_write_op(view: Op) -> Op:
    assert view.view is not None
    write, several = view.view.write, view.results != "tensor"
    retyped = view.view.retyped

    def written(base: Any, new: Any, *args: Any) -> Any:
        *rest, part = args
        if new.dtype != base.dtype and not retyped:
            new = cast(new, base.dtype)
        return write(base, new, *rest, **({"part": part} if several else {}))

    empty = inspect.Parameter.empty
    params = (
        Param("base", ARRAY, ARRAY, empty, False),
        Param("new", ARRAY, ARRAY, empty, False),
        # Positional for the writer, however the view takes them.
        *(Param(p.name, p.role, p.annotation, empty, False) for p in view.params[1:]),
        Param("part", STATIC, "int", empty, False),
    )
    return replace(
        view,
        fn=written,
        name=f"write_{view.name}",
        params=params,
        promote=None,
        grad_fn="CopySlices",
        saves=(),
        differentiable=("base", "new"),
        part=True,
        passes=(),
        view=None,
        on_stack=None,
        layout=None,
        shape=None,
        results="tensor",
        checks=None,
        gradient_checks=None,
        real_gradients=None,
        typecheck=None,
        inplace_check=None,
        inplace_gradient_check=None,
        warns=None,
        curved=False,
        level={None: None, "result": "new"}.get(view.level, "base"),
    )
