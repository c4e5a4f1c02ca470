"""Functions that their arguments' classes, or modes, override: `__torch_function__`.

A subclass of Tensor is never found by the hot path: its `_key` is an object that no key
contains, so that operators come to `_bind.slow`, which asks here. What is written in
Python is reached in two ways: functions are wrapped by `overridable`, and methods and
attributes stand once more, as calls of the handler, in a class that `TensorMeta` puts
before `Tensor` in the order of such a subclass. Tensor itself pays for neither.

https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.callers import caller
from torchshim._core.device import device
from torchshim._core.extent import raise_lack
from torchshim._core.layout import layout, memory_format
from torchshim._core.storage import TensorBase, plain_classes
from torchshim._errors import Unsupported, warn_always
from torchshim._function_modes import (
    ALL_DISABLED,
    SUBCLASSES_DISABLED,
    disabled,
    mode_enabled,
    mode_popped,
    modes,
    skips,
    state,
)
from torchshim._refusal import METHODS_IN_PYTHON, own_form, refuse, vet

_METHODS_IN_PYTHON = {("torch.Tensor", name) for name in METHODS_IN_PYTHON}


# Classes whose instances override nothing; Tensor is added when it is made.
ORDINARY: set[type] = {
    *(int, float, bool, complex, str, bytes, type(None), dict, type, slice),
    *(type(Ellipsis), dtypes.dtype, device, layout, memory_format),
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType),
}


def disabled_torch_function_impl(
    func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """The handler of classes that override nothing: `__torch_function__` is this."""
    with disabled(SUBCLASSES_DISABLED):
        return func(*args, **(kwargs or {}))


NO_DISPATCH = (
    "__torch_dispatch__ is not supported: torchshim records operators and runs them as "
    "one program, so that there is no dispatcher to intercept; use __torch_function__ "
    "or torch.overrides.TorchFunctionMode"
)


def refuse_dispatch(cls: type) -> None:
    """Refuses tensors of a class that wants to see what the dispatcher calls.

    The class itself may stand in a program that makes none of its tensors.
    """
    handler = getattr(cls, "__torch_dispatch__", None)
    chosen = getattr(handler, "__name__", None)
    if handler is not None and chosen != "_disabled_torch_dispatch_impl":
        raise Unsupported(NO_DISPATCH)


# Who overrides ------------------------------------------------------------------------


def handler_of(cls: type) -> Any:
    """The `__torch_function__` of a class; None where it overrides nothing."""
    if cls in ORDINARY or cls in plain_classes:
        return None
    handler = getattr(cls, "__torch_function__", None)
    if handler is None or handler is disabled_torch_function_impl:
        return None
    if any(base.__module__ == "torch._C" for base in cls.__mro__):
        # PyTorch's handler would call us again, without end.
        raise TypeError(
            "a tensor of PyTorch's was given to torchshim: pass "
            "`torchshim.from_numpy(tensor.numpy())`, or `from_dlpack(tensor)`"
        )
    return handler


def overloaded(
    values: Iterable[Any], nested: bool = True, tensors: bool = False
) -> list[Any]:
    """The values with handlers, one of each class, in the order these are asked.

    From left to right, but subclasses before the classes they come from. `nested`:
    elements of sequences count, too; `tensors`: Tensor itself does.
    """
    found: list[Any] = []
    if state.disabled:
        return found
    for value in values:
        cls = type(value)
        if tensors and cls is TensorMeta.tensor[0]:
            _insert(found, value)
        elif cls in ORDINARY:
            continue
        elif nested and isinstance(value, (tuple, list)):
            for inner in overloaded(value, False, tensors):
                _insert(found, inner)
        elif handler_of(cls) is not None:
            _insert(found, value)
    if len(found) > 1:
        # Sparse tensors override nothing in PyTorch: what a program has overrides them.
        there = [value for value in found if not is_plain_kind(type(value))]
        if any(type(value) is not TensorMeta.tensor[0] for value in there):
            return there
    return found


def is_plain_kind(cls: type) -> bool:
    """Whether tensors of this class (sparse ones) are of class Tensor in PyTorch."""
    return issubclass(cls, TensorBase) and cls._composed and cls.__module__ == "torch"


def _insert(found: list[Any], value: Any) -> None:
    cls = type(value)
    if any(type(other) is cls for other in found):
        return
    at = next((i for i, o in enumerate(found) if issubclass(cls, type(o))), len(found))
    found.insert(at, value)


def overriding(args: Iterable[Any]) -> list[Any] | None:
    """As `overloaded`; None where neither an argument nor a mode overrides.

    Nor where the one function that is called is skipped (`_function_modes.skip_one`).
    """
    if (state.disabled and not state.stack) or skips():
        return None
    found = overloaded(args)
    return found if found or mode_enabled() else None


# Calling them -------------------------------------------------------------------------

_PLAIN_METHOD = (
    "Defining your `__torch_function__{} as a plain method is deprecated and will be "
    "an error in future, please define it as a classmethod."
)
_told: set[str] = set()


def _warn_of_method(python: bool) -> None:
    """PyTorch's two warnings: functions in C++ say it once."""
    if python:
        text, category = _PLAIN_METHOD.format(""), DeprecationWarning
    else:
        where = "/__w/pytorch/pytorch/torch/csrc/utils/python_arg_parser.cpp:359.)"
        text = f"{_PLAIN_METHOD.format('`')} (Triggered internally at {where}"
        category = UserWarning
        if not warn_always[0]:
            if text in _told:
                return
            _told.add(text)
    file, line = caller() or ("<unknown>", 0)
    warnings.warn_explicit(text, category, file, line)


def call(
    func: Any,
    found: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    python: bool = False,
) -> Any:
    """Asks the mode on top, then the handlers; NotImplemented if none has an answer."""
    types = tuple(type(value) for value in found)
    if mode_enabled():
        with mode_popped() as mode:
            handler = mode.__torch_function__
            if not python and getattr(handler, "__self__", None) is not mode:
                raise RuntimeError(
                    "Defining your mode's `__torch_function__` as a classmethod is not "
                    "supported, please make it a plain method"
                )
            result = handler(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in found:
        handler = value.__torch_function__
        if getattr(handler, "__self__", None) is value:
            _warn_of_method(python)
        result = handler(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def dispatch(
    func: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Any:
    """As `call`, for the functions that PyTorch writes in C++: raises TypeError."""
    result = call(func, found, args, kwargs)
    if result is not NotImplemented:
        return result
    asked = [f"  - tensor subclass {type(value)}\n" for value in found]
    if mode_enabled():
        asked.insert(0, f"  - mode object {state.stack[-1]}\n")
    raise TypeError(
        f"Multiple dispatch failed for '{name_of(func)}'; all __torch_function__ "
        f"handlers returned NotImplemented:\n\n{''.join(asked)}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def handle(
    func: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """As `call`, for the functions that PyTorch writes in Python: raises TypeError."""
    result = call(func, found, args, kwargs, True)
    if result is not NotImplemented:
        return result
    module = getattr(func, "__overrides__", func.__module__)
    if vars(TensorMeta.tensor[0]).get(func.__name__) is func:
        module = "torch._tensor"
    text = (
        f"no implementation found for '{module}.{func.__name__}' on types "
        f"that implement __torch_function__: {[type(value) for value in found]}"
    )
    if mode_enabled():
        text += f" nor in mode {state.stack[-1]}"
    raise TypeError(text)


def name_of(func: Any) -> str:
    """What errors call a function."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property):  # the `__get__` of an attribute
        return f"torch.Tensor.{attribute_name(owner)}.{func.__name__}"
    name = func.__name__
    if vars(TensorMeta.tensor[0]).get(name) is func:
        return f"torch.Tensor.{name}"
    return f"{getattr(func, '__overrides__', 'torch')}.{name}"


def attribute_name(attribute: property) -> str:
    """The name of an attribute of tensors."""
    names = vars(TensorMeta.tensor[0])
    return next((n for n, member in names.items() if member is attribute), "?")


def overridable(
    function: Callable[..., Any],
    namespace: str = "torch",
    *,
    python: bool = False,
    arguments: bool = True,
) -> Callable[..., Any]:
    """A Python function that modes, and its `arguments`' classes, may override.

    `python`: PyTorch writes it in Python, too, with a text of its own where no handler
    has an answer.
    """
    ordinary = ORDINARY.issuperset
    python = python or (namespace, function.__name__) in _METHODS_IN_PYTHON
    if not arguments:

        @functools.wraps(function)
        def seen(*args: Any, **kwargs: Any) -> Any:
            if modes and mode_enabled():
                if not skips():
                    return dispatch(seen, [], args, kwargs or None)
                with disabled(ALL_DISABLED):
                    return function(*args, **kwargs)
            try:
                if ordinary(map(type, args)) and ordinary(map(type, kwargs.values())):
                    return function(*args, **kwargs)
                with disabled(SUBCLASSES_DISABLED):
                    return function(*args, **kwargs)
            except (MemoryError, ValueError) as error:
                raise_lack(error)
                raise

        seen.__overrides__ = namespace  # type: ignore[attr-defined]
        return seen

    space = namespace.removeprefix("torch.")
    if not python and _takes_bools(function):
        function = _vetted(function, lambda: (space, wrapped.__name__))

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            if not modes and ordinary(map(type, args)):
                if not kwargs:
                    return function(*args)
                if ordinary(map(type, kwargs.values())):
                    return function(*args, **kwargs)
            found = overriding((*args, *kwargs.values()))
            if found is None:
                if python or not mode_enabled():
                    return function(*args, **kwargs)
                with disabled(ALL_DISABLED):  # it is skipped, with what it calls
                    return function(*args, **kwargs)
        except Exception as error:
            raise_lack(error)
            refuse(space, wrapped.__name__, args, kwargs)
            given = own_form(function, space, wrapped.__name__, args, kwargs)
            if given is None:
                raise
            return wrapped(*given[0], **given[1])
        if python:
            return handle_form(wrapped, function, args, kwargs)
        return dispatch(wrapped, found, args, kwargs or None)

    wrapped.__overrides__ = namespace  # type: ignore[attr-defined]
    return wrapped


# Of one function, how many kinds of calls are remembered.
_MOST_MET = 128


def _takes_bools(function: Callable[..., Any]) -> bool:
    kinds = function.__annotations__.items()
    return any("bool" in str(kind) for name, kind in kinds if name != "return")


def _vetted(
    function: Callable[..., Any], called: Callable[[], tuple[str, str]]
) -> Callable[..., Any]:
    """A function that arguments of wrong classes do not reach, a number for a bool.

    `called`: its namespace and name there.
    """
    met: set[tuple[Any, ...]] = set()

    @functools.wraps(function)
    def vetted(*args: Any, **kwargs: Any) -> Any:
        key: tuple[Any, ...] = tuple(map(type, args))
        if kwargs:
            key = (*key, *kwargs, *map(type, kwargs.values()))
        if key not in met:
            vet(*called(), args, kwargs)
            if len(met) < _MOST_MET:
                met.add(key)
        return function(*args, **kwargs)

    return vetted


def handle_form(func: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Calls the handlers of a function that PyTorch writes in Python."""
    found = overloaded((*args, *kwargs.values()), True, True)
    return handle(func, found, *python_form(function, args, kwargs))


@functools.lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


# Parameters that PyTorch's function does not hand on.
_KEPT = {"chain_matmul": "out", "dim_order": "ambiguity_check", "l1_loss": "weight"}


def python_form(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments as handlers get them of functions that PyTorch has in Python.

    What must be given is given by position, all else by name, defaults included.
    """
    try:
        bound = _parameters(function).bind(*args, **kwargs)
    except TypeError:  # the function says so itself
        return args, kwargs
    bound.apply_defaults()
    given: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if name == _KEPT.get(function.__name__):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            # `einsum` takes a list of its operands apart first.
            if function.__name__ == "einsum" and len(value) == 2:
                if isinstance(value[1], (list, tuple)):
                    value = value[0], *value[1]
            given.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty and not named:
            given.append(value)
        else:
            named[name] = value
    return tuple(given), named


def overridable_all(
    names: dict[str, Any],
    namespace: str,
    source: str = "",
    compiled: Sequence[str] = (),
    plain: Sequence[str] = (),
) -> None:
    """Makes the functions of a namespace overridable that are written in Python.

    `source`: the start of the names of the modules they are written in; `compiled`:
    those that PyTorch writes in C++; `plain`: those that only call what can be
    overridden.
    """
    source = source or f"torchshim{namespace.removeprefix('torch')}"
    in_python = namespace == "torch.nn.functional"
    for name, function in list(names.items()):
        if (
            inspect.isfunction(function)
            and function.__module__.startswith(source)
            and name[0] != "_"
            and name not in plain
        ):
            python = in_python and name not in compiled
            made = names[name] = overridable(function, namespace, python=python)
            # Where `pickle` finds it.
            made.__module__ = names["__name__"]


# Subclasses of Tensor -----------------------------------------------------------------


class TensorMeta(type):
    """The class of Tensor: finds which of its subclasses override functions."""

    tensor: ClassVar[list[type]] = []
    # The class of the calls of handlers, once there is one.
    overriding: ClassVar[list[type]] = []

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **named: Any
    ) -> TensorMeta:
        if mcs.tensor:
            # Bases before Tensor would show the recorder's fields as attributes.
            namespace.setdefault("__dict__", vars(mcs.tensor[0])["__dict__"])
            # Of a class that is made by a call Python takes this from the frame, too.
            caller = sys._getframe(1).f_globals
            namespace.setdefault("__module__", caller.get("__name__", "builtins"))
        return super().__new__(mcs, name, bases, namespace, **named)

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if cls in TensorMeta.tensor:
            override(name, value)

    def mro(cls) -> list[type]:
        order = super().mro()
        tensor, overriding = cls.tensor, cls.overriding
        if not overriding or cls.__name__ == OVERRIDING:
            return order
        order = [each for each in order if each is not overriding[0]]
        handler = next(
            vars(each)["__torch_function__"]
            for each in order
            if "__torch_function__" in vars(each)
        )
        handler = getattr(handler, "__func__", handler)
        if handler is disabled_torch_function_impl:
            plain_classes.add(cls)
        else:
            order.insert(order.index(tensor[0]), overriding[0])
        return order


OVERRIDING = "_Overriding"

# Names with an underscore that handlers see.
CALLED = frozenset(
    ("_backward_hooks", "_is_view", "_post_accumulate_grad_hooks", "_version")
)

# What belongs to the class, or what handlers never see.
_NOT_CALLED = frozenset(
    "__new__ __init__ __hash__ __class__ __init_subclass__ __torch_function__ "
    "__getattr__ __setattr__ __delattr__ __getattribute__ __iter__ __delitem__ "
    "__doc__ __dict__ __module__ __slots__ __weakref__ __annotations__ "
    "__torch_dispatch__ as_subclass".split()
)


def start_overriding(tensor: type) -> None:
    """Makes `tensor` the class whose subclasses may override functions."""
    TensorMeta.tensor.append(tensor)
    ORDINARY.add(tensor)
    members = {"__slots__": (), "__module__": tensor.__module__, "_key": object()}
    TensorMeta.overriding.append(TensorMeta(OVERRIDING, (tensor,), members))
    for name, member in list(vars(tensor).items()):
        override(name, member)


def is_overridable(name: str, member: Any) -> bool:
    """Whether handlers are called where an attribute of Tensor is used."""
    private = name[0] == "_" and name[:2] != "__" and name not in CALLED
    if private or name in _NOT_CALLED:
        return False
    return isinstance(member, property) or inspect.isfunction(member)


def override(name: str, member: Any) -> None:
    """Has handlers called where a method or an attribute of Tensor is used."""
    if not is_overridable(name, member):
        return
    if isinstance(member, property):
        setattr(TensorMeta.overriding[0], name, _attribute(member))
        return
    known = ("__op__", "__overloads__", "__overrides__")
    if not any(hasattr(member, mark) for mark in known):  # these ask by themselves
        if member.__name__ not in vars(TensorMeta.tensor[0]):
            member.__name__ = name
        setattr(TensorMeta.overriding[0], name, _method(member))


def _method(member: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(member)
    def called(self: TensorBase, *args: Any, **kwargs: Any) -> Any:
        if state.disabled and not modes:
            return member(self, *args, **kwargs)
        found = overriding((self, *args, *kwargs.values()))
        if found is None:
            return member(self, *args, **kwargs)
        if member.__name__ in METHODS_IN_PYTHON:
            return handle_form(member, member, (self, *args), kwargs)
        return dispatch(member, found, (self, *args), kwargs or None)

    return called


def _attribute(member: property) -> property:
    reading, writing, deleting = member.__get__, member.__set__, member.__delete__

    def read(self: TensorBase) -> Any:
        found = overriding((self,))
        if found is None:
            return reading(self)
        return dispatch(reading, found, (self,), None)

    def write(self: TensorBase, value: Any) -> None:
        found = overriding((self,))
        if found is None:
            writing(self, value)
        else:
            dispatch(writing, found, (self, value), None)

    def delete(self: TensorBase) -> None:
        found = overriding((self,))
        if found is None:
            deleting(self)
        else:
            dispatch(deleting, found, (self,), None)

    return property(read, write, delete, member.__doc__)
