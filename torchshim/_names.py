"""The names under which users find operators: methods, aliases, overloads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._arguments import choose, signature_of
from torchshim._bind import in_place, make, methods
from torchshim._core.op import REGISTRY, Op
from torchshim._overrides import dispatch, handler_of, overriding
from torchshim._refusal import refuse, space_of


def renamed(function: Any, name: str) -> Any:
    """The same function under another name, as errors and overrides show it."""
    overloads = getattr(function, "__overloads__", None)
    if overloads is not None:
        return overloaded(name, [renamed(each, name) for each in overloads])
    return make(function.__op__, name, function.__spread__)


def overloaded(
    name: str, functions: Sequence[Callable[..., Any]]
) -> Callable[..., Any]:
    """One public name for several operators, told apart by their arguments."""
    chosen: dict[Any, Callable[..., Any]] = {}
    signatures: list[inspect.Signature] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        key = (*map(type, args), None, *((k, type(v)) for k, v in kwargs.items()))
        found = chosen.get(key)
        if found is None:
            asked = overriding((*args, *kwargs.values()))
            if asked is not None:
                return dispatch(call, asked, args, kwargs or None)
            # Classes that override are asked every time.
            if any(handler_of(type(a)) is not None for a in args):
                key = (None, *key)
            found = chosen.get(key)
        try:
            if found is None:
                if not signatures:
                    signatures.extend(signature_of(f.__op__) for f in functions)
                found, always = choose(name, functions, signatures, args, kwargs)
                if always and len(chosen) < 1000:
                    chosen[key] = found
            return found(*args, **kwargs)
        except Exception:
            op: Op = functions[0].__op__
            refuse(space_of(op, name, call in methods), name, args, kwargs)
            raise

    call.__name__ = call.__qualname__ = name
    call.__module__ = "torchshim"
    call.__doc__ = "\n\n".join(f.__doc__ or "" for f in functions)
    call.__overloads__ = tuple(functions)
    for function in functions:
        function.__globals__["_func"] = call
    return call


class Derived:
    """Everything users call: name -> function, for each namespace, and the methods."""

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, Any]] = {}
        self.methods: dict[str, Any] = {}
        self.by_name: dict[str, Callable[..., Any]] = {}
        self._aliases: dict[tuple[Any, str], Any] = {}

    def add(self, ops: Sequence[Op]) -> None:
        groups: dict[str, list[Op]] = {}
        for op in ops:
            groups.setdefault(op.public, []).append(op)
        for public, group in groups.items():
            self._group(public, group)

    def _group(self, public: str, group: Sequence[Op]) -> None:
        made = {op.name: make(op) for op in group}
        self.by_name |= made
        pairs = [(op, make(op, spread=True)) for op in group if op.method]
        own = Overloads(public, pairs)
        names = [public, *(a for op in group for a in op.aliases)]
        functions = Overloads(public, [(op, made[op.name]) for op in group])
        for space in dict.fromkeys(s for op in group for s in op.namespaces):
            function = functions.of(lambda op, s=space: s in op.namespaces)
            self.namespaces.setdefault(space, {}).update(self._under(names, function))
        method = own.of(lambda op: True)
        if method is not None:
            self.methods |= self._under(names, method)
            for op in group:
                if isinstance(op.method, str):
                    self.methods[op.method] = method
        twins = [in_place(op) for op in group if op.inplace]
        writers = Overloads(f"{public}_", [(twin, make(twin)) for twin in twins])
        self.by_name |= {twin.name: writer for twin, writer in writers.pairs}
        written = [f"{name}_" for name in names]
        for space in dict.fromkeys(s for op in twins for s in op.namespaces):
            function = writers.of(lambda op, s=space: s in op.namespaces)
            self.namespaces[space].update(self._under(written, function))
        pairs = [(twin, make(twin, spread=True)) for twin in twins if twin.method]
        writer = Overloads(f"{public}_", pairs).of(lambda op: True)
        if writer is not None:
            self.methods |= self._under(written, writer)

    def _under(self, names: Sequence[str], function: Any) -> dict[str, Any]:
        """The function under its own name, and under its aliases."""
        found = {names[0]: function}
        for name in names[1:]:
            key = function, name
            if key not in self._aliases:
                self._aliases[key] = renamed(function, name)
            found[name] = self._aliases[key]
        return found


class Overloads:
    """The functions that share one public name."""

    def __init__(
        self, public: str, pairs: Sequence[tuple[Op, Callable[..., Any]]]
    ) -> None:
        self.public = public
        self.pairs = pairs
        self._made: dict[tuple[str, ...], Callable[..., Any]] = {}

    def of(self, chosen: Callable[[Op], bool]) -> Any:
        """One function for the chosen operators; None if there is none."""
        pairs = [(op, function) for op, function in self.pairs if chosen(op)]
        if len(pairs) < 2:
            return pairs[0][1] if pairs else None
        key = tuple(op.name for op, _ in pairs)
        if key not in self._made:
            self._made[key] = overloaded(self.public, [f for _, f in pairs])
        return self._made[key]


def derive() -> Derived:
    """Functions and methods of every registered operator."""
    derived = Derived()
    derived.add(list(REGISTRY.values()))
    return derived
