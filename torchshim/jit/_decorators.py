"""Marks that TorchScript reads, and small questions: each is what it is in Python."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any

from torchshim._functions._arguments import warn

__all__ = [
    "Attribute",
    "Final",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "onednn_fusion_enabled",
    "optimized_execution",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "unused",
]

Final = typing.Final


class Attribute(typing.NamedTuple):
    """A value with the type that TorchScript is to give it."""

    value: Any
    type: Any


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def is_scripting() -> bool:
    """Whether TorchScript runs the code: never.

    >>> is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether the code is being traced: never."""
    return False


def export(fn: Any) -> Any:
    """Marks a method as one that scripts may call: the method."""
    fn._torchscript_modifier = "default (compile)"
    return fn


def unused(fn: Any) -> Any:
    """Marks a method as one that scripts do not call: the method."""
    if not _is_property(fn):
        fn._torchscript_modifier = (
            "unused (ignored and replaced with raising of an exception)"
        )
    return fn


def _is_property(fn: Any) -> bool:
    return type(fn) is property


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function as one that stays Python: the function."""
    if callable(drop):
        drop._torchscript_modifier = (
            "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
        )
        return drop
    if type(drop) is not bool:
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    if drop:
        warn(
            "ignore(True) has been deprecated. TorchScript will now drop the function "
            "call on compilation. Use torch.jit.unused now. {}",
            FutureWarning,
        )
        return unused
    return ignore


def interface(obj: Any) -> Any:
    """Marks a class as an interface: the class."""
    if type(obj) is not type:
        raise RuntimeError("interface must be applied to a class")
    return obj


def _overload(func: Any) -> Any:
    """Marks a declaration that the function of that name, further down, stands for.

    The declaration. RuntimeError where its body is not `pass` or `...`.
    """
    try:
        source = textwrap.dedent(inspect.getsource(func))
    except OSError:
        warn(f"Unable to retrieve source for @torch.jit._overload function: {func}.")
        return func
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    if len(body) != 1 or ast.unparse(body[0]) not in ("pass", "..."):
        first = "\n".join(source.split("\n")[:3])
        raise RuntimeError(
            "Only `pass` statement or `...` can be the body of overload declaration:\n"
            f"{first} <- Expecting `pass` or `...` here!\n"
        )
    return func


_overload_method = _overload


def script_method(fn: Any) -> Any:
    """Marks a method as TorchScript: the method."""
    return fn


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Would script a function when a caller is traced: the function."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


_script_if_tracing = script_if_tracing


# Types -----------------------------------------------------------------------


_isinstance = isinstance


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value has a type, with the types within `List[int]` and the like.

    >>> isinstance([1, "a"], typing.List[int])
    False
    """
    if _isinstance(target_type, tuple):
        return any(_matches(obj, each) for each in target_type)
    return _matches(obj, target_type)


def _matches(obj: Any, kind: Any) -> bool:
    origin = typing.get_origin(kind)
    inner = typing.get_args(kind)
    bare = not inner and (origin or kind) in (list, dict, tuple)
    if bare or kind is typing.Optional:
        name = kind.__name__
        wanted = f"a contained type. Please add a contained type, e.g. {name}[int]"
        if dict in (origin, kind):
            wanted = (
                f"contained types. Please add contained type, e.g. {name}[int, int]"
            )
        raise RuntimeError(f"Attempted to use {name} without {wanted}")
    if origin is None:
        if kind is None or kind is NoneType:
            return obj is None
        return kind is Any or _isinstance(obj, kind)
    if origin is list:
        return _isinstance(obj, list) and _all_match(obj, [(v, inner[0]) for v in obj])
    if origin is dict:
        return _isinstance(obj, dict) and _all_match(
            obj, [p for k, v in obj.items() for p in ((k, inner[0]), (v, inner[1]))]
        )
    if origin is tuple:
        return (
            _isinstance(obj, tuple)
            and len(obj) == len(inner)
            and all(_matches(v, t) for v, t in zip(obj, inner, strict=True))
        )
    return any(_matches(obj, each) for each in inner)


def _all_match(container: Any, pairs: list[tuple[Any, Any]]) -> bool:
    if not container:
        warn(
            "The inner type of a container is lost when calling torch.jit.isinstance "
            "in eager mode. For example, List[int] would become list and therefore "
            "falsely return True for List[float] or List[str]."
        )
    return all(_matches(value, kind) for value, kind in pairs)


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


# Settings of TorchScript's optimizer, kept without effect ---------------------------

_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn = [False]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keeps the strategy; what it was before. XLA fuses by itself."""
    before = list(_strategy)
    _strategy[:] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Keeps the setting. XLA fuses by itself."""
    _onednn[0] = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` set."""
    return _onednn[0]


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block whose programs would (not) be optimized; XLA always does."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block with another fuser; XLA fuses by itself."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """A block in which everything must be fused: only meant for scripts."""

    def __init__(self) -> None:
        warn("Only works in script mode")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass
