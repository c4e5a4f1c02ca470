"""`torch.compile`: XLA compiles every recording, asked or not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchshim._dynamo.eval_frame import compiled, lookup_backend

__all__ = ["compile", "get_default_backend", "set_default_backend"]

_MODES = (
    "default",
    "lite",
    "reduce-overhead",
    "max-autotune-no-cudagraphs",
    "max-autotune",
)
_default_backend: list[Any] = ["inductor"]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """The same function or module: what it records is compiled anyway.

    Follows https://docs.pytorch.org/docs/2.13/generated/torch.compile.html. A function
    gives a function, a module an `OptimizedModule`; without either it is a decorator.
    The arguments are checked as in PyTorch: RuntimeError for an unknown mode or for
    both mode and options, InvalidBackend for an unknown backend; NotImplementedError
    for a backend of one's own, for which there is no graph. None of them changes
    results.

    >>> import torchshim as torch
    >>> @torch.compile
    ... def double(x):
    ...     return x * 2
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if model is None:
        given = {k: v for k, v in locals().items() if k != "model"}
        return functools.partial(_compile_given, given)
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at "
            "the same time."
        )
    backend = _default_backend[0] if backend is None else backend
    if mode is not None and backend == "inductor" and mode not in _MODES:
        raise RuntimeError(
            f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}"
        ) from KeyError(mode)
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if disable:
        return model
    lookup_backend(backend)
    return compiled(model)


def _compile_given(given: dict[str, Any], model: Any) -> Any:
    if model is None:
        raise RuntimeError("Model can't be None")
    return compile(model, **given)


def get_default_backend() -> Any:
    """The backend of `torch.compile` where none is named."""
    return _default_backend[0]


def set_default_backend(backend: Any) -> None:
    """Sets the backend of `torch.compile` where none is named; None: "inductor".

    Whether there is one of that name is asked when something is compiled.

    >>> import torchshim as torch
    >>> torch.compiler.set_default_backend("eager")
    >>> torch.compiler.get_default_backend()
    'eager'
    >>> torch.compiler.set_default_backend(None)
    """
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"backend must be a string or callable, got {type(backend)}")
    _default_backend[0] = "inductor" if backend is None else backend
