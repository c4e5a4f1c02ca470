"""Derives what users call from the operators' declarations.

For every operator this makes a function whose hot path is one look-up in the trie: the
source that `_hot_path` gives, registered with `linecache` so that tracebacks read well.
Methods, in-place forms, `out=` and overloads follow from it.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from torchshim import _hot_path
from torchshim._arguments import (
    MISSING,
    OTHER_NAMES,
    is_number_for_tensor,
    is_numpy_scalar,
    is_star,
    normalise,
    sequence,
    sizes,
    takes_dims,
    type_name,
)
from torchshim._core import dtypes, record
from torchshim._core.callers import GENERATED
from torchshim._core.device import device
from torchshim._core.handlers import error_expected
from torchshim._core.op import (
    ARRAY,
    OPERAND,
    REGISTRY,
    Op,
)
from torchshim._core.storage import (
    TensorBase,
    check_memory,
    plain_classes,
    tensor_class,
)
from torchshim._core.write import autograd_sees
from torchshim._out import (
    check_outs,
    refuse_dual,
    refuse_leaf,
    refuse_mapped,
    refuse_tracked,
)
from torchshim._overrides import ORDINARY, dispatch, handle, overloaded, overriding
from torchshim._refusal import (
    METHODS_IN_PYTHON,
    call_form,
    other_form,
    overridden_form,
    refuse_operator,
    space_of,
    usual,
)
from torchshim._structseq import result_type

_ordinary = ORDINARY.issuperset
# The functions that are methods; `Derived` adds them.
methods: set[Any] = set()
# What `tensor == operand` gives for operands that are no tensor and no number.
equals_array: list[Callable[[Any, Any], Any]] = []
# What `number += tensor` gives, or None where it is recorded as any other sum.
begin_sum: list[Callable[[Any, Any, Any], Any]] = []


def _used_names(op: Op) -> dict[str, Any]:
    """What the source of an operator's function calls by name."""
    return {
        "_op": op,
        "_local": record.local,
        "_slow": slow,
        "_slow_operator": slow_operator,
        "_again": again,
        "_error_expected": error_expected,
        "_write": write,
        "_results_of": results_of,
        "_new": object.__new__,
        "_ref": weakref.ref,
        "_sizes": sizes,
        "_sequence": sequence,
        "_Tensor": tensor_class[0],
        "_plain": plain_classes,
    }


def again(
    op: Op,
    extra: tuple[Any, ...],
    named: dict[str, Any],
    args: tuple[Any, ...],
    out: Any,
    func: Any,
) -> Any:
    """A call with keywords under other names, or for the variadic parameter.

    `extra`: more positional arguments than there are parameters.
    """
    if extra and not named:
        if takes_dims(op) and func in methods:
            return slow(record.local.rec, op, (args[0], (args[1], *extra)), out, func)
        meant = other_form(op, called(op, func), args, extra, out)
        if meant is not None:
            found = overriding((*meant, out))
            if found is not None:
                pairs = zip(op.params, args, strict=True)
                written = (*(v for p, v in pairs if not p.keyword_only), *extra)
                more = None if out is None else {"out": out}
                return dispatch(func, found, written, more)
            return slow(record.local.rec, op, meant, out, func)
    given = dict(zip((p.name for p in op.params), args, strict=True))
    wrong = bool(extra)
    for name, value in named.items():
        own = OTHER_NAMES.get(name, name)
        param = next((p for p in op.params if p.name == own), None)
        if param and any(given[own] is v for v in (MISSING, (), param.default)):
            given[own] = sequence(value) if is_star(op, param) else value
        else:
            wrong = True
    if wrong:
        refuse_operator(op, called(op, func), args, out, extra, named)
        unknown = next((n for n in named if OTHER_NAMES.get(n, n) not in given), "")
        many = "was given too many arguments"
        text = f"got an unexpected keyword argument '{unknown}'" if unknown else many
        raise TypeError(f"{op.public}() {text}")
    return slow(record.local.rec, op, tuple(given.values()), out, func)


# -- the way around the hot path -------------------------------------------------------


def called(op: Op, func: Any) -> tuple[str, str]:
    """The namespace and name of the function that was called, for its errors."""
    name = op.public if func is None else func.__name__
    return space_of(op, name, func in methods), name


def slow(
    rec: Any, op: Op, args: tuple[Any, ...], out: Any = None, func: Any = None
) -> Any:
    """An operator's call that the trie does not know, or with unusual arguments.

    `func`: what was called, for classes and modes that override it.
    """
    if rec.intercepted or not _ordinary(map(type, args)) or out is not None:
        found = overriding(args if out is None else (*args, out))
        if found is not None:
            given, named = overridden_form(op, args, out, func in methods)
            if func in methods and op.public in METHODS_IN_PYTHON:
                return _handle_in_python(func, args, given, named)
            return dispatch(func, found, given, named)
    # Methods count positions without the tensor itself.
    first = -1 if func in methods else 0
    given = args
    if args and not first and is_number_for_tensor(op, args[0]):
        args = (number_tensor(rec, args[0], args[1]), *args[1:])
    if not usual(op, args):
        refuse_operator(op, called(op, func), args, out)
    try:
        args = tuple(
            normalise(op, i, p, a)
            for i, (p, a) in enumerate(zip(op.params, args, strict=False), first)
        )
        if out is not None:
            return write_out(rec, op, args, out)
        if rec.autocast is not None and not op.writes:
            args = rec.autocast.operands(op, args)
        return record_call(rec, op, args)
    except Exception:
        refuse_operator(op, called(op, func), given, out)
        raise


def _handle_in_python(func: Any, args: Any, given: Any, named: Any) -> Any:
    """Calls the handlers of a method that PyTorch writes in Python."""
    return handle(func, overloaded(args, True, True), given, named or {})


def number_tensor(rec: Any, number: Any, other: Any) -> Any:
    """A number as a tensor, of the dtype it has in an operation with another."""
    kind = dtypes.int64
    if isinstance(number, bool):
        kind = dtypes.bool_
    elif isinstance(number, float):
        kind = dtypes.get_default_dtype()
    elif isinstance(number, complex):
        kind = dtypes.get_default_complex_dtype()
    where = device("cpu")
    if isinstance(other, TensorBase):
        meta = other._tmeta
        where = meta.device
        if kind is dtypes.bool_:
            pass  # promotes nothing as it is; differences refuse it
        elif kind.category <= meta.dtype.category:
            kind = meta.dtype
        elif meta.dtype is dtypes.float64:
            kind = dtypes.complex128
    return record_call(rec, REGISTRY["full"], ((), number, kind, where))


def record_call(rec: Any, op: Op, args: tuple[Any, ...]) -> Any:
    """Records an operator with arguments that are in order."""
    if op.view is not None:
        made = rec.shared_views(op, args)
        if made is not None:
            return made[0] if op.results == "tensor" else as_results(op, made)
    rec.cut(args)
    outdated = rec.enter_outdated(op, args)
    try:
        return _recorded(rec, op, args)
    finally:
        for tensor in outdated:
            tensor._slot = -1  # derived again as soon as gradients are wanted


def _recorded(rec: Any, op: Op, args: tuple[Any, ...]) -> Any:
    at_once = op.checks is not None and rec.trace is None and not rec.levels
    if at_once:
        metas = [a._tmeta for a in args if isinstance(a, TensorBase)]
        at_once = op.is_checked(metas) and error_expected()
    if op.writes:
        target = args[0]
        rec.check_writable(target, op, args)
        check_memory(op, target, args)
        if at_once:  # a write that fails must not have been made
            rec.call_entering(op, (rec.derived_anew(target), *args[1:]))
            rec.flush()
            rec.raise_failed_checks()
        args = (rec.derived_anew(target), *args[1:])
    depth = rec.state.depth
    state = rec.call_entering(op, args)
    result = (
        write(rec, state, target) if op.writes else results_of(rec, op, state, args)
    )
    for watch in record.watchers:
        watch(rec, depth)
    if at_once and not op.writes:
        rec.flush()
        rec.raise_failed_checks()
    return result


def slow_operator(
    rec: Any, op: Op, args: tuple[Any, ...], func: Any, name: str, reflected: bool
) -> Any:
    """As `slow`, for Python's operators: operands it cannot take are left to Python."""
    if rec.intercepted or not _ordinary(map(type, args)):
        found = overriding(args)
        if found is not None:
            given, named = call_form(op, args)
            if reflected:
                given = (given[1], given[0], *given[2:])
            try:
                if name in METHODS_IN_PYTHON:
                    return _handle_in_python(func, args, given, named)
                return dispatch(func, found, given, named)
            except TypeError:
                return NotImplemented
    own = args[1 if reflected else 0]
    if not isinstance(own, TensorBase):
        raise TypeError(
            f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a "
            f"'{type(own).__name__}' object"
        )
    for param, arg in zip(op.params, args, strict=True):
        if param.role in (ARRAY, OPERAND) and not isinstance(arg, TensorBase):
            number = isinstance(arg, (bool, int, float, complex))
            if param.role == ARRAY or not (number or is_numpy_scalar(arg)):
                return equals_array[0](own, arg) if name == "__eq__" else NotImplemented
    if name == "__invert__" and own._tmeta.dtype.category >= dtypes.FLOATING:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type "
            "tensors"
        )
    if name == "__radd__":
        begun = begin_sum[0](rec, own, args[1])
        if begun is not None:
            return begun
    return slow(rec, op, args)


def results_of(rec: Any, op: Op, state: Any, args: tuple[Any, ...]) -> Any:
    """The results of an event as users get them."""
    if op.results == "tensor":
        tensor = rec.result(state)
        if state.view:
            rec.link(tensor, args[0], op, args[1:])
        return tensor
    tensors = rec.results(state)
    if state.view:
        for k, tensor in enumerate(tensors):
            rec.link(tensor, args[0], op, args[1:], k)
    return as_results(op, tensors)


def as_results(op: Op, tensors: list[Any]) -> Any:
    """Several results as the list, tuple or named tuple that users get."""
    if op.results == "list":
        return tensors
    if op.named_result:
        return tuple.__new__(result_type(op), tensors)
    return tuple(tensors)


def write(rec: Any, state: Any, target: Any) -> Any:
    """Ends an in-place operator: its result becomes the target's value."""
    if state.parent is rec.state:
        rec.state = state
    new = rec.result(state)
    tracked = rec.grad and target._tmeta.requires_grad
    if tracked and not new._tmeta.requires_grad and not autograd_sees(state.call.op):
        rec.set_grad(False)
        try:
            rec.write(target, new)
        finally:
            rec.set_grad(True)
    else:
        rec.write(target, new)
    return target


def _refuse_followed(rec: Any, op: Op, given: Sequence[Any]) -> None:
    refuse_mapped(rec, op.parsed, given)
    if op.unfollowed:
        refuse_leaf(rec, op.parsed, given[-1])
    elif op.differentiable is not False:
        refuse_tracked(rec, op.parsed, given)
    refuse_dual(rec, op.parsed, given)


def write_out(rec: Any, op: Op, args: tuple[Any, ...], out: Any) -> Any:
    """`out=`: the result replaces the value of a tensor the caller gives."""
    if op.results != "tensor":
        check_outs(op.parsed, out, len(op.named_result or out), len(op.params))
        _refuse_followed(rec, op, (args, out))
        for each in out:
            check_memory(op, each, args)
        written = out_writer[0](op, record_call(rec, op, args), tuple(out), args)
        if op.named_result:
            return result_type(op, "_out")(written)
        return as_results(op, written)
    if not isinstance(out, TensorBase):
        raise TypeError(
            f"{op.parsed}(): argument 'out' must be Tensor, not {type_name(out)}"
        )
    _refuse_followed(rec, op, (args, out))
    check_memory(op, out, args)
    return out_writer[0](op, (record_call(rec, op, op.to(args, out)),), (out,), args)[0]


# `_tensor` puts the function here that resizes, casts and copies into `out`.
out_writer: list[Callable[..., Any]] = []


# -- functions ------------------------------------------------------------------------


_CODE: dict[str, CodeType] = {}
_numbers = itertools.count()


def _compiled(source: str) -> CodeType:
    """Operators with the same parameters share one compiled source."""
    code = _CODE.get(source)
    if code is None:
        filename = f"<torchshim operator {next(_numbers)}>"
        lines = source.splitlines(True)
        linecache.cache[filename] = (len(source), None, lines, filename)
        module = compile(source, filename, "exec")
        code = next(c for c in module.co_consts if isinstance(c, CodeType))
        _CODE[source] = code
    return code


def _first_call(*args: Any, **kwargs: Any) -> Any:
    """The code of each operator's function until it is called; see `generate`."""
    return _complete()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def generate(
    op: Op,
    name: str,
    func: Any,
    operator: str | None = None,
    reflected: bool = False,
    spread: bool = True,
) -> Callable[..., Any]:
    """A function of an operator under its own name; see `_hot_path`.

    Most programs call few of the hundreds that an import makes: the source of each is
    written and compiled when it is called first.

    `func`: what overrides see in its place, None: itself; `spread`: it takes sizes one
    by one.
    """
    names: dict[str, Any] = {"__name__": GENERATED}
    made = FunctionType(_first_call.__code__, names, name)
    made.__qualname__ = name
    made.__doc__ = op.doc
    made.__module__ = "torchshim"
    made.__op__ = op
    made.__spread__ = spread
    made.__wrapped__ = op.fn  # for `inspect.signature`

    def complete() -> Callable[..., Any]:
        # Threads may come here at once: each does the same, the code last.
        source = _hot_path.source(op, "operator", operator, reflected, spread)
        code = _compiled(source)
        names.update(_used_names(op))
        # A required argument that is left out reaches the slow path, which knows
        # PyTorch's words for it.
        made.__defaults__ = tuple(
            MISSING if p.required else p.default
            for p in op.params
            if not p.keyword_only and not (spread and is_star(op, p))
        )
        made.__kwdefaults__ = {
            p.name: MISSING if p.required else p.default
            for p in op.params
            if p.keyword_only
        }
        if "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            made.__kwdefaults__["out"] = None
        made.__code__ = code.replace(co_name=name, co_qualname=name)
        return made

    names["_complete"] = complete
    names["_func"] = made if func is None else func
    return made


def make(op: Op, name: str | None = None, spread: bool = False) -> Callable[..., Any]:
    """The function of one operator, under a name of its own or the operator's.

    `spread`: it is for a method, which takes sizes one by one.
    """
    return generate(op, name or op.public, None, spread=spread)


def make_operator(
    op: Op, name: str, reflected: bool, func: Any, in_place_form: bool = False
) -> Callable[..., Any]:
    """The method of one of Python's operators; `func` as `generate` takes it."""
    return generate(in_place(op) if in_place_form else op, name, func, name, reflected)


def in_place(op: Op) -> Op:
    """The in-place form of an operator: same function, result written to `input`."""
    fields = {
        "name": f"{op.name}_",
        "public": f"{op.public}_",
        "writes": True,
        "out": False,
        "results": "tensor",
        # Nothing in `torch.special` writes in place.
        "namespaces": tuple(s for s in op.namespaces if s != "special"),
    }
    if isinstance(op.inplace, Mapping):
        fields |= op.inplace
    return replace(op, **fields)
