"""Raising what PyTorch's argument parser says of calls that fail.

Calls that fail come here, and those with unusual arguments (`usual`): it finds out how
the call was written, and asks `_parser` whether PyTorch would have refused it.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from torchshim import _parser
from torchshim._arguments import MISSING, OTHER_NAMES, is_star
from torchshim._core.meta import Size
from torchshim._core.op import OPERAND, OPT_OPERAND, Op
from torchshim._core.storage import TensorBase
from torchshim._errors import triggered, warn_once


def space_of(op: Op, name: str, is_method: bool) -> str:
    """The namespace under which the parser knows an operator's function."""
    if is_method:
        return "Tensor"
    return next((s for s in op.namespaces if _parser.signatures(s, name)), "")


def refuse(
    space: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raises what PyTorch's parser says of a call, if it refuses it.

    `space`: the function's namespace; the `args` of methods begin with the tensor.
    """
    if space == "Tensor":
        known = _parser.signatures(space, name)
        if known and args and not isinstance(args[0], TensorBase):
            raise TypeError(
                f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply "
                f"to a '{type(args[0]).__name__}' object"
            ) from None
        args = args[1:]
    reason = _parser.refusal(space, name, args, kwargs)
    if reason is not None:
        raise TypeError(reason) from None
    overflow = _parser.overflow(space, name, args, kwargs)
    if overflow is not None:
        raise overflow from None


def vet(space: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """As `refuse`, where the classes of the arguments alone are wrong.

    What is in sequences, and whether a tensor is a number, does not count: so calls
    with arguments of the same classes need not be looked at again.
    """
    values = [_any_of(value) for value in args[space == "Tensor" :]]
    named = {key: _any_of(value) for key, value in kwargs.items()}
    if _parser.refusal(space, name, values, named) is not None:
        refuse(space, name, args, kwargs)


def _any_of(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return _parser.SOME_TENSOR
    return _parser.SOME_SEQUENCE if isinstance(value, (tuple, list)) else value


def own_form(
    function: Any,
    space: str,
    name: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """A call with keywords that are PyTorch's, as a function of ours takes it.

    NumPy's names (`axis`) become the function's own; names that one of several forms
    has (`sections`), the positions that they have there. None: there are none, or it is
    a function that PyTorch has no parser for.
    """
    known, signature = _parser.signatures(space, name), inspect.signature(function)
    if not known or _binds(signature, args, kwargs):
        return None
    own = signature.parameters
    given = {k if k in own else OTHER_NAMES.get(k, k): v for k, v in kwargs.items()}
    if len(given) == len(kwargs) and _binds(signature, args, given):
        return args, given
    first = 1 if space == "Tensor" else 0
    form = next((f for f in known if f.refusal(args[first:], kwargs) is None), None)
    if form is None:
        return None
    rest, moved = dict(kwargs), list(args)
    for param in form.params[len(args) - first : form.positional]:
        if param.name not in rest:
            break
        moved.append(rest.pop(param.name))
    return (tuple(moved), rest) if _binds(signature, moved, rest) else None


def _binds(
    signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a function can be called so, by the names of its parameters."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def refuse_operator(
    op: Op,
    called: tuple[str, str],
    values: tuple[Any, ...],
    out: Any,
    extra: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
) -> None:
    """As `refuse`, for an operator's call; `values`: one for each parameter.

    `called`: the namespace and name of its function; `extra`, `named`: what that has
    no parameters for.
    """
    named = named or {}
    if not called[0] and not (extra or named):
        for known in _parser.signatures("nn", called[1]):
            refuse("nn", called[1], _handed_on(known, op, values), {})
    is_method = called[0] == "Tensor"
    written = written_call(op, values, out, is_method, extra, named)
    if written is None:
        if is_method and op.params and is_star(op, op.params[-1]):
            # A sequence stands for sizes, however they were given.
            *first, last = values
            args, found = call_form(op, (*first, (_sizes(last),)), out)
        else:
            args, found = call_form(op, values, out, is_method)
            if not extra and _only_by_name(
                op, called, args, {**(found or {}), **named}
            ):
                return
        written = (*args, *extra), {**(found or {}), **named}
    refuse(*called, *written)


def _only_by_name(
    op: Op, called: tuple[str, str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether the parser takes the call only if some of these `args` are named."""
    first = called[0] == "Tensor"
    names = [p.name for p in op.params]

    def taken(size: int) -> bool:
        named = dict(zip(names[size:], args[size:], strict=False))
        return _parser.refusal(*called, args[first:size], {**named, **kwargs}) is None

    return not taken(len(args)) and any(map(taken, range(1, len(args))))


def _handed_on(
    known: _parser.Signature, op: Op, values: tuple[Any, ...]
) -> tuple[Any, ...]:
    """What a function written in Python hands on to the one that has a parser.

    All by position; what the operator has no parameter for is in order, as is how a
    loss is reduced, which is a number by then.
    """
    own = dict(zip((p.name for p in op.params), values, strict=True))
    own.pop("reduction", None)
    others = {"bool": True, "double": 1.0}
    given = [own.get(p.name, others.get(p.kind, 1)) for p in known.params]
    last = max((i for i, p in enumerate(known.params) if p.name in own), default=-1)
    return tuple(given[: last + 1])


def other_form(
    op: Op,
    called: tuple[str, str],
    values: tuple[Any, ...],
    extra: tuple[Any, ...],
    out: Any,
) -> tuple[Any, ...] | None:
    """The arguments that a call in another form means, with PyTorch's warning if it is
    deprecated.

    `extra`: its positional arguments beyond the parameters; None: it is no such form.
    """
    if any(
        p.keyword_only and v is not p.default
        for p, v in zip(op.params, values, strict=True)
    ):
        return None
    given = [v for p, v in zip(op.params, values, strict=True) if not p.keyword_only]
    given += extra
    of_tensor = called[0] == "Tensor"
    known = _parser.signatures(*called)
    keywords = {} if out is None else {"out": out}
    for form in known:
        if form.refusal(given[of_tensor:], keywords) is None:
            break
    else:
        return None
    names = [p.name for p in form.params]
    meant = dict(zip(["input"] * of_tensor + names, given, strict=False))
    if any(value is MISSING for value in meant.values()):
        return None
    if form.hidden:
        _warn_of_deprecated(form, known)
    return tuple(meant.get(p.name, p.default) for p in op.params)


def _warn_of_deprecated(form: Any, known: Sequence[Any]) -> None:
    others = "".join(f"\n\t{each.name}{each}" for each in known if not each.hidden)
    text = (
        f"This overload of {form.name} is deprecated:\n\t{form.name}{form}\nConsider "
        f"using one of the following signatures instead:{others}"
    )
    where = "torch/csrc/utils/python_arg_parser.cpp:1841"
    warn_once(triggered(text, where), key="deprecated overload")


def _sizes(values: tuple[Any, ...]) -> Any:
    """What was given for sizes: a sequence, or what cannot be one."""
    if not isinstance(values, tuple):
        return values  # no sequence, by keyword
    single = len(values) == 1 and type(values[0]) is not int
    return values[0] if single else values


def written_call(
    op: Op,
    values: tuple[Any, ...],
    out: Any,
    is_method: bool,
    extra: tuple[Any, ...],
    named: Mapping[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments of the running call of an operator, as its caller wrote them.

    None where that cannot be seen, as in calls with `*args`.
    """
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("_op") is not op:
        frame = frame.f_back
    caller = frame and frame.f_back
    if frame and caller and caller.f_globals is frame.f_globals:
        caller = caller.f_back  # `_first_call` stands between them
    shape = None if caller is None else call_shape(caller)
    if shape is None:
        return None
    count, keywords = shape
    star = is_method and bool(op.params) and is_star(op, op.params[-1])
    if star and not values[-1] and not (keywords or names_it(caller, op.public, count)):
        return None
    own = dict(zip((p.name for p in op.params), values, strict=True))
    own["out"] = out
    if any(k not in named and k not in own for k in keywords):
        return None
    kwargs = {k: named[k] if k in named else own.pop(k) for k in keywords}
    # Functions of ours hand `out=` on, given or not.
    if out is None:
        kwargs.pop("out", None)
    given: list[Any] = []
    defaults: list[Any] = []
    for p in op.params:
        if p.name not in own or p.keyword_only:
            continue
        if not (is_method and is_star(op, p)):
            given.append(own[p.name])
            defaults.append(MISSING if p.required else p.default)
        else:
            several = list(own[p.name])
            # One sequence was given for the sizes.
            if count + is_method == len(given) + 1:
                several = [_sizes(own[p.name])]
            given += several
            defaults += several
    given += extra
    # Methods that are called as `Tensor.sum(x)` count the tensor itself.
    for size in (count + is_method, count):
        rest = zip(given[size:], defaults[size:], strict=False)
        if len(given) >= size and all(v is d for v, d in rest):
            return tuple(given[:size]), kwargs
    return None


# The classes of the static arguments that every parser takes, by annotation; what is of
# another class, PyTorch's parser is asked about.
_USUAL: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "str": (str,),
    "int | None": (int, type(None)),
    "bool | None": (bool, type(None)),
    "float | None": (float, int, type(None)),
    "str | None": (str, type(None)),
    "Ints": (int,),
    "int | Ints": (int,),
    "Dims": (int, type(None)),
    "tuple[int, ...]": (),
    "int | tuple[int, ...]": (int,),
    "int | tuple[int, ...] | None": (int, type(None)),
    "Index": (int,),
    "Shape": (),
}
_SEQUENCES = ("Ints", "Dims", "tuple[", "Shape")


@functools.lru_cache(maxsize=2048)
def _static(op: Op) -> tuple[tuple[int, tuple[type, ...], bool], ...]:
    """The static parameters: their place, usual classes, whether they are sequences."""
    return tuple(
        (at, _USUAL[p.annotation], any(s in p.annotation for s in _SEQUENCES))
        for at, p in enumerate(op.params)
        if p.annotation in _USUAL
    )


@functools.lru_cache(maxsize=2048)
def _bounds(op: Op) -> tuple[int, ...]:
    """The places of parameters that are all tensors or all numbers: `clamp`'s."""
    found = [at for at, p in enumerate(op.params) if p.role == OPT_OPERAND]
    return tuple(found) if len(found) > 1 else ()


def usual(op: Op, values: tuple[Any, ...]) -> bool:
    """Whether arguments are of the classes that they usually have."""
    if op.params and op.params[0].role == OPERAND:
        # Numbers alone are for Python's own operators.
        if not any(isinstance(v, TensorBase) for v in values):
            return False
    bounds = [values[at] for at in _bounds(op)]
    if len({isinstance(v, TensorBase) for v in bounds if v is not None}) > 1:
        return False
    for at, classes, sequence in _static(op):
        if at >= len(values):
            break
        value = values[at]
        kind = value.__class__
        if value.__class__ is tuple and not value and is_star(op, op.params[at]):
            return False  # left out, or a sequence of none
        if kind in classes or value is op.params[at].default:
            continue
        if not sequence or kind not in (tuple, list, Size):
            return False
        if not all(v.__class__ is int for v in value):
            return False
    return True


def call_form(
    op: Op, args: tuple[Any, ...], out: Any = None, spread: bool = True
) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
    """A call's arguments as they would be written, without those left at defaults.

    `spread`: with sizes one by one, as to methods.
    """
    given: list[Any] = []
    named: dict[str, Any] = {}
    gap = False
    for param, arg in zip(op.params, args, strict=True):
        default = param.default
        if arg is MISSING or (arg is default and not param.required):
            gap = True
        elif type(arg) is type(default) in (int, float, bool, str) and arg == default:
            gap = True
        elif spread and is_star(op, param):
            given.extend(arg)
        elif gap or param.keyword_only:
            named[param.name] = arg
        else:
            given.append(arg)
    if out is not None:
        named["out"] = out
    return tuple(given), named or None


# Operators that PyTorch writes in Python.
OPERATORS_IN_PYTHON = frozenset(
    "cdist layer_norm local_response_norm norm rms_norm".split()
)
# Methods of tensors that PyTorch writes in Python.
METHODS_IN_PYTHON = frozenset(
    "__array__ __array_wrap__ __contains__ __deepcopy__ __dir__ __dlpack__ "
    "__dlpack_device__ __floordiv__ __format__ __ipow__ __len__ __pow__ __rdiv__ "
    "__reduce_ex__ __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ "
    "__rmod__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __setstate__ backward "
    "dim_order is_shared istft lu module_load norm register_hook "
    "register_post_accumulate_grad_hook resize resize_as share_memory_ split stft "
    "storage storage_type unflatten unique unique_consecutive".split()
)


def overridden_form(
    op: Op, args: tuple[Any, ...], out: Any, is_method: bool
) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
    """A call's arguments as handlers get them: as they were written.

    Of functions that PyTorch has in Python, those that must be given by position, all
    others by name.
    """
    in_python = METHODS_IN_PYTHON if is_method else OPERATORS_IN_PYTHON
    if op.name in in_python:
        given: list[Any] = []
        named: dict[str, Any] = {}
        for param, arg in zip(op.params, args, strict=True):
            if param.required:
                given.append(arg)
                continue
            if param.name == "dtype" and op.out and not is_method:
                named["out"] = out
            named[param.name] = arg
        return tuple(given), named
    written = written_call(op, args, out, is_method, (), {})
    if written is None:
        return call_form(op, args, out, is_method)
    return written[0], written[1] or None


# How much of a function's code is looked at before its running call, in bytes.
_WINDOW = 256
# Behind it: Python writes to the caches of an instruction as it makes a code object,
# wherever these would be (ten at most, by now).
_ROOM = bytes([dis.opmap["NOP"], 0]) * 32


def _running(frame: Any) -> list[dis.Instruction]:
    """The instructions up to the one that a frame is at.

    Only the last of them: calls that are in order come here as well, those with a
    sequence of no sizes, and to disassemble a long function takes tens of milliseconds.
    """
    # What is running stands at its instruction, or among the caches behind it.
    code, end = frame.f_code, frame.f_lasti + 2
    last = code.co_code[max(end - _WINDOW, 0) : end]
    tables = {"co_linetable": b"", "co_exceptiontable": b""}
    part = code.replace(co_code=last + _ROOM, **tables)
    return [each for each in dis.get_instructions(part) if each.offset < len(last)]


def names_it(frame: Any, name: str, count: int) -> bool:
    """Whether a running call names its function, and plain arguments behind it.

    Otherwise it may call what has no frame: an extension, a `partial`.
    """
    skipped = ("PRECALL", "CACHE", "PUSH_NULL")
    done = [each for each in _running(frame) if each.opname not in skipped]
    return len(done) > count + 1 and done[-2 - count].argval == name


_Shape = tuple[int, tuple[str, ...]] | None
# (id of the code, place in it) -> the code, and the shape of the call there.
_shapes: dict[tuple[int, int], tuple[Any, _Shape]] = {}


def call_shape(frame: Any) -> _Shape:
    """How many positional arguments a running call was written with, and its keywords.

    The tensor of a method is not counted. None for calls with `*args` or `**kwargs`.
    """
    key = id(frame.f_code), frame.f_lasti
    known = _shapes.get(key)
    if known is None:
        if len(_shapes) >= 4096:
            _shapes.clear()
        known = _shapes[key] = frame.f_code, _read_shape(frame)
    return known[1]


def _read_shape(frame: Any) -> _Shape:
    found: Any = None
    keywords: tuple[str, ...] = ()
    for each in _running(frame):
        if each.opname == "KW_NAMES":
            keywords = frame.f_code.co_consts[each.arg]
        elif each.opname == "CALL_KW":  # Python 3.13
            keywords = found.argval
        elif each.opname not in ("PRECALL", "CALL", "CACHE"):
            keywords = ()
        found = each
    if found is None or found.opname not in ("CALL", "CALL_KW"):
        return None
    return (found.arg or 0) - len(keywords), keywords
