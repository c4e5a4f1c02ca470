"""PyTorch's tracer, as far as scripts name it: nothing has to be traced here."""

from __future__ import annotations

import functools
from typing import Any

from torchshim._dynamo import config, eval_frame, exc, utils
from torchshim._dynamo.eval_frame import OptimizedModule, disable, list_backends

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "exc",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "utils",
]


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    guard_export_fn: Any = None,
    guard_fail_fn: Any = None,
    disable: bool = False,
    dynamic: bool | None = None,
) -> Any:
    """A decorator that does what `torch.compile` does."""
    eval_frame.lookup_backend(backend)
    return eval_frame.compiled if not disable else lambda fn: fn


def reset() -> None:
    """Would forget what was compiled; a program is kept while its recording recurs."""


def run(fn: Any = None) -> Any:
    """`fn`: what is compiled stays compiled."""
    return run if fn is None else eval_frame.compiled(fn)


def is_compiling() -> bool:
    """Whether a script is being traced: never."""
    return False


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` can be used: yes."""
    return True


def graph_break(msg: str = "") -> None:
    """Would end a graph; recordings end where values are read."""


def _callable(name: str, fn: Any) -> Any:
    if isinstance(fn, (list, tuple)):
        return [_callable(name, each) for each in fn]
    if not callable(fn):
        raise AssertionError(f"{name} expects a callable")
    return fn


allow_in_graph = functools.partial(_callable, "allow_in_graph")
disallow_in_graph = functools.partial(_callable, "disallow_in_graph")
forbid_in_graph = functools.partial(_callable, "forbid_in_graph")
assume_constant_result = functools.partial(_callable, "assume_constant_result")


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Would make a size a variable; every shape is a program of its own here."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Would make a size a constant, which it is."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Would promise that a tensor stays where it is; nothing depends on that."""
