"""Functions traced once for arrays of many sizes.

What grows has other sizes in each iteration, and tracing is most of what it takes to
compute it by NumPy. JAX traces with sizes that are symbols, too ("shape polymorphism"
of `jax.export`): a question that has not the same answer for all sizes is an error
there, but for equality, which is refused. So a symbol never stands for a size that
another symbol or dimension of the same arrays has, nor for 0 or 1.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations_with_replacement
from operator import itemgetter
from types import CodeType
from typing import Any, NamedTuple

import jax
from jax import export

from torchshim._core.interpret import (
    Equations,
    NoRule,
    Plan,
    equations,
    functions_in,
)
from torchshim._core.numpy_rules import SIZELESS

Shape = tuple[int, ...]
# A number, the name of a symbol, or a product of these ("4*size_a*size_b").
Size = int | str
# What a symbol may stand for: sizes that are no reason to broadcast, and that indices
# of 32 bits reach.
_LEAST, _MOST = 2, 2**31 - 2
_NAMES = tuple(f"size_{letter}" for letter in "abcdefgh")
_NAMED = re.compile(r"\bsize_[a-h]\b")
_FUNCTIONS = {
    "__builtins__": {},
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max,
    "min": min,
}


# Of a function's own sizes and of its arrays: the shapes of some of these.
Derive = Callable[[tuple[Any, ...], Sequence[Any]], Sequence[tuple[Any, ...]]]


def symbols_between(
    shapes: Sequence[Shape], others: Sequence[Shape]
) -> tuple[tuple[Size, ...], ...] | None:
    """Shapes with a symbol for each pair of sizes in which two lists of shapes differ.

    None where symbols cannot stand for these.
    """
    names: dict[tuple[int, int], str] = {}
    found: list[tuple[Size, ...]] = []
    for shape, other in zip(shapes, others, strict=True):
        made: list[Size] = []
        for pair in zip(shape, other, strict=True):
            if pair[0] == pair[1]:
                made.append(pair[0])
                continue
            if pair not in names:
                if len(names) == len(_NAMES) or min(pair) < _LEAST:
                    return None
                names[pair] = _NAMES[len(names)]
            made.append(names[pair])
        found.append(tuple(made))
    return tuple(found)


def sizes_in(
    symbols: Sequence[Sequence[Size] | None], shapes: Sequence[Shape]
) -> dict[str, int] | None:
    """The sizes that symbols stand for in shapes; None where they cannot.

    Where there is None in place of symbols, any shape may stand.
    """
    found: dict[str, int] = {}
    numbers: set[int] = set()
    for shape, form in zip(shapes, symbols, strict=True):
        for size, known in () if form is None else zip(shape, form, strict=True):
            if isinstance(known, str):
                known = found.setdefault(known, size)
            else:
                numbers.add(known)
            if known != size:
                return None
    values = {*found.values()}
    if not values or min(values) < _LEAST or max(values) > _MOST:
        return None
    if len(values) < len(found) or values & numbers:
        return None
    return found


def least_of(
    symbols: Sequence[Sequence[Size]], *known: Sequence[Shape]
) -> dict[str, int]:
    """Powers of two that the sizes are at least that symbols stand for in these.

    Whether a kernel fits into an image is known from then on.
    """
    found = [sizes_in(symbols, shapes) for shapes in known]
    names: set[str] = set().union(*(sizes or {} for sizes in found))
    return {
        name: 1 << (min(sizes[name] for sizes in found if sizes).bit_length() - 1)
        for name in names
    }


def with_products(
    shapes: Sequence[Shape],
    others: Sequence[Shape],
    symbols: tuple[tuple[Size, ...], ...],
) -> tuple[tuple[Size, ...], ...] | None:
    """What `symbols_between` gave, where symbols are products of others in both lists.

    None if none is. Of reshapes they are.
    """
    places = zip(shapes, others, symbols, strict=True)
    pairs = {name: pair for place in places for *pair, name in zip(*place, strict=True)}
    named = {name: pair for name, pair in pairs.items() if isinstance(name, str)}
    products: dict[Size, Size] = {}
    kept: list[str] = []
    for name, pair in sorted(named.items(), key=itemgetter(1)):
        found = _product(pair, kept, named)
        if found is None:
            kept.append(name)
        else:
            products[name] = found
    if not products:
        return None
    return tuple([tuple([products.get(n, n) for n in shape]) for shape in symbols])


def _product(
    pair: Sequence[int], names: Sequence[str], named: Mapping[str, Sequence[int]]
) -> str | None:
    """A pair of sizes as a product of one or two pairs, and of a number."""
    for count in (2, 1):
        for chosen in combinations_with_replacement(names, count):
            factors = [math.prod(named[name][k] for name in chosen) for k in (0, 1)]
            whole = [divmod(n, f) for n, f in zip(pair, factors, strict=True)]
            if whole[0] == whole[1] and not whole[0][1] and whole[0][0]:
                return "*".join([str(whole[0][0]), *chosen])
    return None


class Polymorphic:
    """What a function does with arrays whose shapes have symbols in them.

    `make` gives the function of its own sizes. The last of `shapes` has these, the
    others are those of arrays. `derive` gives shapes of some arrays, by their numbers,
    of those of the others.
    """

    __slots__ = (
        "_codes",
        "_derived",
        "_equations",
        "_fillers",
        "_least",
        "_names",
        "_products",
        "_results",
        "shapes",
    )

    def __init__(
        self,
        make: Callable[[tuple[Any, ...]], Callable[..., Any]],
        shapes: tuple[tuple[Size, ...], ...],
        dtypes: Sequence[Any],
        least: Mapping[str, int] | None = None,
        derive: Derive | None = None,
        derived: Sequence[int] = (),
    ) -> None:
        """Raises `NoRule` where NumPy cannot compute it, or not for all sizes.

        `least`: what the sizes that symbols stand for are at least. `derived`: the
        numbers of the arrays whose shapes `derive` gives.
        """
        self.shapes = [None if i in derived else s for i, s in enumerate(shapes)]
        sizes = [size for shape in self.shapes for size in shape or ()]
        texts = {size for size in sizes if isinstance(size, str)}
        self._products = sorted(text for text in texts if "*" in text)
        self._names = sorted(texts - {*self._products})
        factors = {name for text in self._products for name in text.split("*")[1:]}
        if not self._names or not factors <= {*self._names}:
            raise NoRule  # the arrays do not tell what they stand for
        self._least = {n: k for n, k in (least or {}).items() if n in self._names}
        above = [f"{n} >= {self._least.get(n, _LEAST)}" for n in self._names]
        below = [f"{n} <= {_MOST}" for n in self._names]
        scope = export.SymbolicScope(above + below)
        symbols = export.symbolic_shape(",".join(self._names), scope=scope)
        known: dict[Size, Any] = dict(zip(self._names, symbols, strict=True))
        for text in self._products:
            known[text] = _multiplied(text, known)
        *given, own = [tuple(known.get(n, n) for n in shape) for shape in shapes]
        avals = [
            jax.ShapeDtypeStruct(shape, dtype)
            for shape, dtype in zip(given, dtypes, strict=True)
        ]
        made: list[tuple[int, tuple[Any, ...]]] = []
        closed: Any = None
        failed = ""
        with _letting_go(), jax.enable_x64(True):
            try:
                if derive is not None:
                    made = [*zip(derived, derive(own, avals), strict=True)]
                for i, shape in made:
                    avals[i] = jax.ShapeDtypeStruct(shape, dtypes[i])
                closed = jax.make_jaxpr(make(own))(*avals)
            except Exception as error:
                # Whatever it does with a symbol, it is traced for each size then.
                failed = repr(error)
        if failed:
            raise NoRule(failed)
        self._equations: Equations = equations(closed)
        dims: dict[str, int] = {}
        self._fillers = [_filled(each.eqn, dims) for each in self._equations.list]
        self._results = [
            (tuple(out.shape), _fill_of(out.shape, dims), out.dtype)
            for out in closed.out_avals
        ]
        self._derived = [(i, shape, _fill_of(shape, dims)) for i, shape in made]
        self._codes = [_compiled(text) for text in dims]

    def sizes_in(self, shapes: Sequence[Shape]) -> dict[str, int] | None:
        """The symbols' sizes in shapes that these may be; None for others."""
        found = sizes_in(self.shapes, shapes)
        if found is None:
            return None
        if any(_multiplied(text, found) != found[text] for text in self._products):
            return None
        if any(found[name] < least for name, least in self._least.items()):
            return None
        values = self._values(found) if self._derived else []
        for i, shape, fill in self._derived:
            if shapes[i] != (shape if fill is None else fill(values)):
                return None
        return found

    def _values(self, sizes: dict[str, int]) -> list[int]:
        return [eval(code, _FUNCTIONS, sizes) for code in self._codes]

    def results(self, sizes: dict[str, int]) -> list[tuple[Shape, Any]]:
        """The results' shapes and dtypes for these sizes."""
        values = self._values(sizes)
        return [
            (shape if fill is None else fill(values), dtype)
            for shape, fill, dtype in self._results
        ]

    def plan(self, sizes: dict[str, int]) -> Plan:
        """What NumPy computes for these sizes; raises `NoRule` where it cannot."""
        try:
            values = self._values(sizes)
            given = [e.eqn for e in self._equations.list]
            eqns = [
                eqn if fill is None else fill(values)
                for eqn, fill in zip(given, self._fillers, strict=True)
            ]
            return Plan(self._equations, eqns)
        except NoRule:
            raise
        except Exception as error:
            raise NoRule(f"{error!r}") from error


@contextmanager
def _letting_go() -> Generator[None]:
    """Collects the garbage that is made meanwhile.

    JAX catches errors about symbols that refer to their own frames, and so to those of
    the script: its tensors would live on until Python collects garbage.
    """
    collects = gc.isenabled()
    gc.disable()  # (what is made stays in the youngest generation)
    try:
        yield
    finally:
        gc.collect(0)
        if collects:
            gc.enable()


def _multiplied(product: str, sizes: Mapping[Any, Any]) -> Any:
    number, *names = product.split("*")
    return math.prod([sizes[name] for name in names], start=int(number))


def told(text: str, sizes: dict[str, int]) -> str:
    """A text that was made with symbols, for these sizes."""
    return _NAMED.sub(lambda name: str(sizes.get(name[0], name[0])), text)


def _compiled(text: str) -> CodeType:
    """A size as JAX writes it, to be computed of the symbols' sizes."""
    return compile(text.replace("^", "**"), "<size>", "eval")


class Aval(NamedTuple):
    """A shape and a dtype, as a `jax.ShapeDtypeStruct`, which takes longer to make."""

    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Value(NamedTuple):
    """What is known of a value before it is there."""

    aval: Aval


class Filled(NamedTuple):
    """An equation of JAX's whose sizes are known."""

    primitive: Any
    params: dict[str, Any]
    invars: list[Any]
    outvars: list[Any]


Fill = Callable[[Sequence[int]], Any]


def _filled(eqn: Any, dims: dict[str, int]) -> Fill | None:
    """What puts sizes into an equation; None if it has no symbols.

    `dims`: the sizes that symbols stand in, as texts, with their places.
    """
    params = {name: _fill_of(value, dims) for name, value in eqn.params.items()}
    taken = [_fill_of_value(var, dims) for var in eqn.invars]
    given = [_fill_of_value(var, dims) for var in eqn.outvars]
    if not any((*params.values(), *taken, *given)):
        return None
    if any(map(_has_symbols, functions_in(eqn))):
        raise NoRule(eqn.primitive.name)
    static = {name: value for name, value in eqn.params.items() if not params[name]}
    changing = {name: fill for name, fill in params.items() if fill}
    if changing and eqn.primitive.name in SIZELESS:
        raise NoRule(eqn.primitive.name)

    def fill(sizes: Sequence[int]) -> Filled:
        return Filled(
            eqn.primitive,
            static | {name: part(sizes) for name, part in changing.items()},
            [_put(v, f, sizes) for v, f in zip(eqn.invars, taken, strict=True)],
            [_put(v, f, sizes) for v, f in zip(eqn.outvars, given, strict=True)],
        )

    return fill


def _has_symbols(closed: Any) -> bool:
    """Whether a function that an equation holds computes with symbols for sizes."""
    for eqn in closed.jaxpr.eqns:
        for var in (*eqn.invars, *eqn.outvars):
            if any(map(export.is_symbolic_dim, getattr(var.aval, "shape", ()))):
                return True
        if any(map(_has_symbols, functions_in(eqn))):
            return True
    return False


def _put(value: Any, fill: Fill | None, sizes: Sequence[int]) -> Any:
    return value if fill is None else fill(sizes)


def _fill_of_value(var: Any, dims: dict[str, int]) -> Fill | None:
    shape = _fill_of(var.aval.shape, dims)
    if shape is None:
        return None
    dtype = var.aval.dtype
    return lambda sizes: Value(Aval(shape(sizes), dtype))


def _fill_of(value: Any, dims: dict[str, int]) -> Fill | None:
    """What puts sizes into a parameter; None if it has no symbols."""
    if export.is_symbolic_dim(value):
        return itemgetter(dims.setdefault(str(value), len(dims)))
    if not isinstance(value, (tuple, list)):
        return None
    items: Sequence[Any] = value
    fills = [_fill_of(item, dims) for item in items]
    if not any(fills):
        return None
    make: Callable[..., Any] = getattr(type(items), "_make", tuple)
    return lambda sizes: make(
        [_put(item, fill, sizes) for item, fill in zip(items, fills, strict=True)]
    )
