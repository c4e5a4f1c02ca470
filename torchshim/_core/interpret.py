"""Functions of JAX run by NumPy, without being compiled.

XLA takes milliseconds for each operator, which pays where a program runs again. What
runs once, or with other shapes each time, is traced (once for each kind of operands)
and its equations are computed one after the other; `stepwise` says what is run so.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from torchshim._core import numpy_shapes, numpy_windows
from torchshim._core.numpy_linalg import FACTORIZATIONS
from torchshim._core.numpy_rules import RULES, SIZELESS, NoRule, known

assert numpy_shapes and numpy_windows  # declare rules

# Primitives that call a function, and the parameters that hold it.
_CALLS = frozenset(
    "call checkpoint closed_call core_call custom_jvp_call custom_vjp_call "
    "custom_vjp_call_jaxpr jit pjit remat remat2".split()
)
_HELD_AS = ("jaxpr", "call_jaxpr", "fun_jaxpr")


class Equation(NamedTuple):
    """An equation of JAX's, the places of what it takes and of what it gives, and those
    that nothing needs after it."""

    eqn: Any
    operands: tuple[int, ...]
    results: tuple[int, ...]
    dead: tuple[int, ...]


class Equations:
    """A jaxpr and what it calls, as one list of the equations that results need."""

    __slots__ = ("_steps", "inputs", "list", "outputs", "start")

    def __init__(self, closed: Any) -> None:
        # The values that are known; places of the others are None.
        self.start: list[Any] = []
        places: dict[Any, int] = {}
        jaxpr = closed.jaxpr
        self.inputs = [self._place(places, v, None) for v in jaxpr.invars]
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            self._place(places, var, np.asarray(value))
        found: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = []
        self._add(jaxpr, places, found)
        self.outputs = [self._read(places, v) for v in jaxpr.outvars]
        self.list = _living(found, self.outputs)
        # Of those that are the same for all sizes; None: not known.
        self._steps: list[Any] = [None] * len(self.list)

    def step(self, k: int, eqn: Any) -> Any:
        """What computes the k-th equation, the places of what it takes and gives,
        whether these are several, and places that nothing needs after it.

        `eqn`: that equation, or what stands for it with its sizes filled in.
        """
        if self._steps[k] is not None:
            return self._steps[k]
        own, operands, results, dead = self.list[k]
        several = own.primitive.multiple_results
        step = function_of(eqn), operands, results, several, dead
        if eqn is own or own.primitive.name in SIZELESS:
            self._steps[k] = step
        return step

    def _place(self, places: dict[Any, int], var: Any, value: Any) -> int:
        places[var] = len(self.start)
        self.start.append(value)
        return places[var]

    def _read(self, places: dict[Any, int], var: Any) -> int:
        if not hasattr(var, "val"):  # no literal
            return places[var]
        aval: Any = var.aval
        self.start.append(np.asarray(var.val, aval.dtype))
        return len(self.start) - 1

    def _add(self, jaxpr: Any, places: dict[Any, int], found: list[Any]) -> None:
        for eqn in jaxpr.eqns:
            operands = [self._read(places, v) for v in eqn.invars]
            inner = _called_by(eqn)
            if inner is not None:
                within = dict(zip(inner.jaxpr.invars, operands, strict=True))
                for var, value in zip(inner.jaxpr.constvars, inner.consts, strict=True):
                    self._place(within, var, np.asarray(value))
                self._add(inner.jaxpr, within, found)
                given = [self._read(within, v) for v in inner.jaxpr.outvars]
                places.update(zip(eqn.outvars, given, strict=True))
                continue
            if eqn.effects:
                raise NoRule(eqn.primitive.name)
            made = tuple(self._place(places, v, None) for v in eqn.outvars)
            found.append((eqn, tuple(operands), made))


def _living(found: Sequence[Any], outputs: Sequence[int]) -> list[Equation]:
    """The equations that outputs depend on, and what each is the last to need."""
    needed = set(outputs)
    living: list[Equation] = []
    for eqn, operands, results in reversed(found):
        if needed.isdisjoint(results):
            continue
        dead = tuple({*operands, *results} - needed)
        needed.update(operands)
        living.append(Equation(eqn, operands, results, dead))
    return living[::-1]


class Plan:
    """Equations that NumPy computes; called with arrays, gives the list of results.

    `eqns`: what stands for the equations, if sizes in them were not known. They are not
    kept: thousands of plans may be, and each object is one more for Python's collector.
    """

    __slots__ = ("_equations", "facts", "seconds", "steps")

    def __init__(self, equations: Equations, eqns: Sequence[Any] | None = None) -> None:
        self._equations = equations
        if eqns is None:
            eqns = [each.eqn for each in equations.list]
        # What a run takes, estimated.
        self.seconds = sum(map(seconds_of, eqns))
        self.steps = [equations.step(k, eqn) for k, eqn in enumerate(eqns)]
        # Of each equation: its name, the kind of its first result's dtype, and how many
        # elements the largest value has that it takes or gives.
        self.facts = tuple([_facts_of(eqn) for eqn in eqns])

    @property
    def start(self) -> list[Any]:
        """The values that are known; None at the places of the others."""
        return self._equations.start

    @property
    def inputs(self) -> list[int]:
        """The places of what it is called with."""
        return self._equations.inputs

    @property
    def outputs(self) -> list[int]:
        """The places of the results."""
        return self._equations.outputs

    def __call__(self, *given: Any) -> list[Any]:
        equations = self._equations
        env = equations.start.copy()
        for place, value in zip(equations.inputs, given, strict=True):
            env[place] = value
        for function, operands, results, several, dead in self.steps:
            made = function(*[env[place] for place in operands])
            if several:
                for place, value in zip(results, made, strict=True):
                    env[place] = value
            else:
                env[results[0]] = made
            for place in dead:
                env[place] = None
        return [env[place] for place in equations.outputs]


def _facts_of(eqn: Any) -> tuple[str, str, int]:
    made = eqn.outvars
    elements = max(math.prod(v.aval.shape) for v in (*eqn.invars, *made))
    return eqn.primitive.name, made[0].aval.dtype.kind, elements


def _called_by(eqn: Any) -> Any:
    """The function that an equation calls; None if it calls none."""
    # Newer releases of JAX have some (`searchsorted`) of which they know a function.
    primitive = eqn.params.get("_prim")
    if hasattr(primitive, "expand") and hasattr(primitive, "in_avals_flat"):
        with jax.enable_x64(True):
            return jax.make_jaxpr(primitive.expand)(*primitive.in_avals_flat)
    if eqn.primitive.name not in _CALLS:
        return None
    for name in _HELD_AS:
        inner = eqn.params.get(name)
        if hasattr(inner, "jaxpr"):
            return inner
        if hasattr(inner, "eqns"):
            # Here, as it brings Pallas with it, and few programs come here.
            from jax.extend.core import ClosedJaxpr

            return ClosedJaxpr(inner, ())
    return None


def functions_in(eqn: Any) -> list[Any]:
    """The functions (closed jaxprs) that are among an equation's parameters."""
    inner = _called_by(eqn)
    if inner is not None:
        return [inner]
    held: list[Any] = []
    for value in eqn.params.values():
        held += value if isinstance(value, tuple) else (value,)
    return [each for each in held if hasattr(each, "jaxpr")]


def function_of(eqn: Any) -> Callable[..., Any]:
    """What computes an equation."""
    name = eqn.primitive.name
    make = LOOPS.get(name) or RULES.get(name)
    if make is None or not all(known(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        raise NoRule(name)
    try:
        return make(eqn)
    except (AttributeError, KeyError) as error:
        # Another release of JAX may say it otherwise.
        raise NoRule(f"{name}: {error!r}") from error


# Seconds, as measured: what an equation takes, each of its elements, and each product
# that is summed; each matrix that is factorized, and the cube of its sides.
_EQUATION, _ELEMENT, _PRODUCT, _MATRIX, _CUBE = 3e-6, 1e-9, 5e-11, 15e-6, 1e-9
# Those of which an element takes longer.
_SLOW = (
    dict.fromkeys("sort top_k".split(), 1e-7)
    | dict.fromkeys("scatter scatter_add scatter_mul scatter_min".split(), 2e-8)
    | dict.fromkeys("pow atan2 erf erfc erf_inv lgamma digamma gather".split(), 1e-8)
)
# Iterations that a loop is taken to have where only running it tells.
_ITERATIONS = 100


def seconds_of(eqn: Any) -> float:
    """What NumPy takes for an equation, estimated from its sizes."""
    name, params = eqn.primitive.name, eqn.params
    if name == "scan":
        return _EQUATION + params["length"] * _body(params["jaxpr"])
    if name == "while":
        return _ITERATIONS * (_body(params["cond_jaxpr"]) + _body(params["body_jaxpr"]))
    if name == "cond":
        return _EQUATION + max(map(_body, params["branches"]))
    if name == "custom_linear_solve":
        return _EQUATION + _body(params["jaxprs"].solve)
    taken = [v.aval.shape for v in eqn.invars]
    made = max((math.prod(v.aval.shape) for v in eqn.outvars), default=0)
    elements = max(made, *map(math.prod, taken), 0)
    found = _EQUATION + elements * _SLOW.get(name, _ELEMENT)
    if name == "dot_general":
        (summed, _), _ = params["dimension_numbers"]
        found += made * math.prod(taken[0][d] for d in summed) * _PRODUCT
    elif name == "conv_general_dilated":
        kernel = taken[1]
        outputs = kernel[params["dimension_numbers"].rhs_spec[0]]
        found += made * math.prod(kernel) // max(outputs, 1) * _PRODUCT
    elif "window_dimensions" in params:
        found += elements * math.prod(params["window_dimensions"]) * _ELEMENT
    elif name in FACTORIZATIONS:
        side = max(taken[0][-2:])
        found += math.prod(taken[0][:-2]) * (_MATRIX + side**3 * _CUBE)
    return found


def _body(closed: Any) -> float:
    """What a run of a function takes that an equation holds."""
    found = 0.0
    for eqn in closed.jaxpr.eqns:
        inner = _called_by(eqn)
        found += seconds_of(eqn) if inner is None else _body(inner)
    return found


# Of loops whose lengths differ alone the bodies are the same.
_plans: weakref.WeakKeyDictionary[Any, Plan] = weakref.WeakKeyDictionary()


def _plan_of(closed: Any) -> Plan:
    found = _plans.get(closed)
    if found is None:
        found = _plans[closed] = Plan(Equations(closed))
    return found


def _cond(eqn: Any) -> Callable[..., Any]:
    branches = [Plan(Equations(branch)) for branch in eqn.params["branches"]]

    def run(which: Any, *given: Any) -> list[Any]:
        at = min(max(int(which), 0), len(branches) - 1)
        return branches[at](*given)

    return run


def _while(eqn: Any) -> Callable[..., Any]:
    params = eqn.params
    if params["cond_jaxpr"].out_avals[0].shape:
        raise NoRule("while")  # `vmap` made several loops of it
    goes_on, body = (Plan(Equations(params[f"{n}_jaxpr"])) for n in ("cond", "body"))
    first, second = params["cond_nconsts"], params["body_nconsts"]

    def run(*given: Any) -> Sequence[Any]:
        asked, fixed = given[:first], given[first : first + second]
        carried: Sequence[Any] = given[first + second :]
        while goes_on(*asked, *carried)[0]:
            carried = body(*fixed, *carried)
        return carried

    return run


def _scan(eqn: Any) -> Callable[..., Any]:
    params = eqn.params
    jaxpr, length = params["jaxpr"], params["length"]
    body = _plan_of(jaxpr)
    fixed, handed = parts_of_scan(eqn)
    avals = jaxpr.out_avals[handed:]
    order = range(length)[::-1] if params["reverse"] else range(length)

    def run(*given: Any) -> list[Any]:
        same, each = given[:fixed], given[fixed + handed :]
        carried: Sequence[Any] = given[fixed : fixed + handed]
        kept = [np.empty((length, *aval.shape), aval.dtype) for aval in avals]
        for k in order:
            made = body(*same, *carried, *[x[k] for x in each])
            carried = made[:handed]
            for stack, value in zip(kept, made[handed:], strict=True):
                stack[k] = value
        return [*carried, *kept]

    return run


def parts_of_scan(eqn: Any) -> tuple[int, int]:
    """How many operands of a scan are the same in each iteration, how many carried.

    JAX's names for these numbers differ from release to release, the shapes do not:
    what has a dimension more than in an iteration is taken, or made, by all of them.
    """
    body = eqn.params["jaxpr"]
    taken = _longer(eqn.invars, body.in_avals)
    handed = len(eqn.outvars) - _longer(eqn.outvars, body.out_avals)
    return len(eqn.invars) - handed - taken, handed


def _longer(variables: Sequence[Any], avals: Sequence[Any]) -> int:
    return sum(
        len(var.aval.shape) > len(aval.shape)
        for var, aval in zip(variables, avals, strict=True)
    )


def _linear_solve(eqn: Any) -> Callable[..., Any]:
    counts, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
    plan = Plan(Equations(solve))
    before = counts.matvec + counts.vecmat
    used, constants = before + counts.solve, sum(counts)
    return lambda *given: plan(*given[before:used], *given[constants:])


# Primitives of functions that have equations of their own.
LOOPS = {
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "custom_linear_solve": _linear_solve,
}


def equations(closed: Any) -> Equations:
    """What a closed jaxpr does; raises `NoRule` where it has to be compiled."""
    if not all(map(known, closed.in_avals)):
        raise NoRule
    return Equations(closed)


def plan(function: Callable[..., Any], given: Sequence[Any]) -> Plan:
    """How NumPy computes a function of arrays like these; as `equations`."""
    with jax.enable_x64(True):
        return Plan(equations(jax.make_jaxpr(function)(*given)))
