"""Graphs of programs (`torch.fx`): not supported; marks for tracers change nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from torchshim._errors import unsupported

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "symbolic_trace",
    "wrap",
]

_Function = TypeVar("_Function", bound=str | Callable[..., Any])


def wrap(fn_or_name: _Function) -> _Function:
    """Would keep tracing out of a function of the calling module: the function.

    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.wrap. RuntimeError for what is
    neither a function nor a name, NotImplementedError inside functions.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string "
            "name"
        )
    frame = inspect.currentframe()
    caller = frame and frame.f_back
    if caller is not None and caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    return fn_or_name


_REASON = "what is recorded is no graph of torch.fx"
Graph = unsupported("fx.Graph", _REASON)
GraphModule = unsupported("fx.GraphModule", _REASON)
Interpreter = unsupported("fx.Interpreter", _REASON)
Node = unsupported("fx.Node", _REASON)
Proxy = unsupported("fx.Proxy", _REASON)
Tracer = unsupported("fx.Tracer", _REASON)
Transformer = unsupported("fx.Transformer", _REASON)
symbolic_trace = unsupported("fx.symbolic_trace", _REASON)
