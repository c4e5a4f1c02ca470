"""The source of an operator's function: one look-up in the trie, and the result.

Source is generated, as `dataclasses` does, since what a call costs is decided here.
`_bind` compiles it, and provides the functions that the source calls. For `exp`::

    def exp(input=None, *, out=None):
        rec = _local.rec
        try:
            if out is not None: raise AttributeError
            state = rec.state.next[_op, rec.mode, input._key,]
        except KeyError:
            state = rec.enter_known((_op, rec.mode, input._key,), (input,))
        except (AttributeError, TypeError):
            state = None
        if state is None: return _slow(rec, _op, (input,), out, _func)
        rec.state = state
        tensor = _new(_Tensor)
        tensor._slot = state.slot
        tensor._tmeta = state.meta
        tensor._array = None
        rec.live.append(_ref(tensor))
        return tensor
"""

from __future__ import annotations

from torchshim._arguments import is_star, takes_more, takes_other_names
from torchshim._core.op import (
    ARRAY,
    ARRAYS,
    OPERAND,
    OPT_ARRAY,
    OPT_ARRAYS,
    OPT_OPERAND,
    SCALAR_ROLES,
    Op,
    Param,
)

_NONE_OF = (("extra", "()"), ("named", "{}"))
_LISTS = (ARRAYS, OPT_ARRAYS)


def source(
    op: Op,
    function: str,
    operator: str | None = None,
    reflected: bool = False,
    spread: bool = True,
) -> str:
    """Source of an operator's function, under the name `function`.

    `operator`: it is the method of one of Python's operators, which answers
    NotImplemented to operands it does not know; `reflected`: with operands swapped.
    `spread`: sizes may be given one by one, as to methods.
    """
    # Keywords under other names, and more positional arguments than parameters.
    named = operator is None and takes_other_names(op)
    more = named or (operator is None and takes_more(op))
    has_out = bool(op.out) and operator is None
    signature = _signature(op, more, named, has_out, spread)
    if reflected:
        signature[0], signature[1] = signature[1], signature[0]
    lines = [f"def {function}({', '.join(signature)}):"]
    if more:
        lines.append(_again(op, signature, has_out))
    for p in op.params:
        if is_star(op, p) and spread:
            lines += [
                f"    if len({p.name}) == 1 and {p.name}[0].__class__ is not int:",
                f"        {p.name} = _sizes({p.name}[0])",
            ]
        elif is_star(op, p):
            lines += [
                f"    if {p.name}.__class__ is not tuple:",
                f"        {p.name} = _sequence({p.name})",
            ]
    lines += _look_up(op, has_out, operator, reflected)
    lines += _scalars(op)
    if op.writes:
        lines += _written(op.params[0].name)
    elif op.results == "tensor":
        lines += _result(op)
    else:
        args = ", ".join(p.name for p in op.params)
        lines += [
            "    rec.state = state",
            f"    return _results_of(rec, _op, state, ({args},))",
        ]
    return "\n".join(lines) + "\n"


def _signature(
    op: Op, more: bool, named: bool, has_out: bool, spread: bool
) -> list[str]:
    signature: list[str] = []
    star = False
    for p in op.params:
        if is_star(op, p) and spread:
            signature.append(f"*{p.name}")
            star = True
            continue
        if p.keyword_only and not star:
            signature.append("*extra" if more else "*")
            star = True
        # The code is shared between operators: `_bind.generate` gives the defaults.
        signature.append(f"{p.name}=None")
    if not star and (named or has_out):
        signature.append("*extra" if more else "*")
    if has_out:
        signature.append("out=None")
    if named:
        signature.append("**named")
    return signature


def _again(op: Op, signature: list[str], has_out: bool) -> str:
    """The line that leaves unusual arguments to `_bind.again`."""
    args = ", ".join(p.name for p in op.params)
    unusual = [n for n in ("extra", "named") if f"*{n}" in " ".join(signature)]
    extra, other = (n if n in unusual else e for n, e in _NONE_OF)
    return (
        f"    if {' or '.join(unusual)}: return _again(_op, {extra}, {other}, "
        f"({args},), {'out' if has_out else 'None'}, _func)"
    )


def _key_part(op: Op, p: Param) -> str:
    """What stands for an argument in the key of a look-up."""
    n = p.name
    if p.role == ARRAY:
        return f"{n}._key"
    if p.role == OPT_ARRAY:
        return f"None if {n} is None else {n}._key"
    if p.role in _LISTS:
        return f"tuple([None if t is None else t._key for t in {n}])"
    if p.role in (OPERAND, OPT_OPERAND):
        return (
            f"{n}._key if (c_{n} := {n}.__class__) is _Tensor "
            f"or c_{n} in _plain else float if c_{n} is float{_but_own(op, p)} else "
            f"None if {n} is None else (c_{n}, {n})"
        )
    if p.role in SCALAR_ROLES:
        return (
            f"float if (c_{n} := {n}.__class__) is float{_but_own(op, p)} else "
            f"None if {n} is None else (c_{n}, {n})"
        )
    return n


def _look_up(op: Op, has_out: bool, operator: str | None, reflected: bool) -> list[str]:
    """Finds the state of the event, or leaves the call to the slow path."""
    lines = ["    rec = _local.rec", "    try:"]
    unusual = ["out is not None"] if has_out else []
    if op.checks is not None:
        # On a line that expects errors the slow path makes the checks at once.
        unusual.append("_error_expected()")
    if unusual:
        lines.append(f"        if {' or '.join(unusual)}: raise AttributeError")
    parts = ", ".join(_key_part(op, p) for p in op.params)
    key = f"_op, rec.mode, {parts},"
    args = ", ".join(p.name for p in op.params)
    if operator is None:
        out = "out" if has_out else "None"
        slow_path = f"return _slow(rec, _op, ({args},), {out}, _func)"
    else:
        slow_path = (
            f"return _slow_operator(rec, _op, ({args},), _func, {operator!r}, "
            f"{reflected})"
        )
    # Tensors that enter with this operator: the key is in order, and made again.
    each = [f"*{p.name}" if p.role in _LISTS else p.name for p in op.params]
    # ValueError: what stands for a sequence in `torch.fx` cannot be iterated over.
    wrong = "AttributeError, TypeError"
    wrong += ", ValueError" * any(p.role in _LISTS for p in op.params)
    return [
        *lines,
        f"        state = rec.state.next[{key}]",
        "    except KeyError:",
        f"        state = rec.enter_known(({key}), ({', '.join(each)},))",
        f"    except ({wrong}):",
        "        state = None",
        # Out of the handlers: an operator's error is to follow from nothing.
        f"    if state is None: {slow_path}",
    ]


def _but_own(op: Op, p: Param) -> str:
    """What a float has to be besides, to be a runtime scalar."""
    own = op.own_floats.get(p.name)
    return f" and {p.name} not in {own!r}" if own else ""


def _scalars(op: Op) -> list[str]:
    """Fills in the runtime scalars of the event."""
    given = {
        p.name: f"    if c_{p.name} is float{_but_own(op, p)}: "
        for p in op.params
        if p.role in SCALAR_ROLES
    }
    if len(given) < 2:
        return [f"{test}rec.scalars[state.scalar] = {n}" for n, test in given.items()]
    return [
        "    at = state.scalar",
        *[f"{test}rec.scalars[at] = {n}; at += 1" for n, test in given.items()],
    ]


def _written(first: str) -> list[str]:
    """Of an in-place form: the result is the new value of its first operand."""
    return [
        f"    if {first}._storage is not None or {first}._raw >= 0 or "
        f"state.meta.requires_grad is not {first}._tmeta.requires_grad:",
        f"        return _write(rec, state, {first})",
        "    rec.state = state",
        f"    rec.live.append(_ref({first}))",
        f"    {first}._slot = state.slot",
        f"    {first}._array = None",
        f"    {first}._versions += 1",
        f"    return {first}",
    ]


def _result(op: Op) -> list[str]:
    """A new tensor, linked to its base if it is a view."""
    lines = [
        "    rec.state = state",
        "    tensor = _new(_Tensor)",
        "    tensor._slot = state.slot",
        "    tensor._tmeta = state.meta",
        "    tensor._array = None",
        "    rec.live.append(_ref(tensor))",
    ]
    if op.view is not None:
        tail = f"({''.join(f'{p.name}, ' for p in op.params[1:])})"
        lines.append(
            f"    if state.view: rec.link(tensor, {op.params[0].name}, _op, {tail})"
        )
    return [*lines, "    return tensor"]
