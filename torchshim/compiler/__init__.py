"""Control of `torch.compile`. XLA compiles every recording, asked or not.

https://docs.pytorch.org/docs/2.13/torch.compiler_api.html
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import torchshim
from torchshim import _dynamo
from torchshim._compile import (
    compile,
    get_default_backend,
    set_default_backend,
)
from torchshim._dynamo import (
    allow_in_graph,
    assume_constant_result,
    disable,
    list_backends,
    reset,
)
from torchshim._dynamo.eval_frame import compiled, lookup_backend
from torchshim._tensor import Tensor

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]


def is_compiling() -> bool:
    """Whether a script is being traced: never, as recording is running it.

    >>> is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Whether a script is being traced: never."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported: never."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Would begin a step for CUDA graphs, which are not used."""


class set_stance(contextlib.ContextDecorator):
    """How much `torch.compile` is to do: a function, context manager or decorator.

    All stances run the same programs, except that "fail_on_recompile" is refused.
    """

    _STANCES = (
        "default",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
        "eager_then_compile",
        "aot_eager_then_compile",
    )

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(
                f"invalid torch.compile stance '{stance}', should be one of "
                f"{list(self._STANCES)}"
            )
        if stance == "fail_on_recompile":
            raise NotImplementedError(
                "set_stance('fail_on_recompile'): new recordings are always compiled"
            )
        if force_backend is not None:
            lookup_backend(force_backend)
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Keeps the setting, which changes nothing; what it was before."""
    before, _guard_collectives[0] = _guard_collectives[0], enabled
    return before


_guard_collectives = [False]


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Any], Any]:
    """Would put a function in another's place while tracing, which never happens."""

    def decorate(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not skip_signature_check:
            try:
                pair = inspect.signature(original_fn), inspect.signature(traceable_fn)
            except ValueError:
                return traceable_fn
            names = [list(s.parameters) for s in pair]
            if names[0] != names[1]:
                raise TypeError(
                    f"Signature mismatch between {original_fn} and {traceable_fn}: "
                    f"{pair[0]} != {pair[1]}"
                )
        return traceable_fn

    return decorate


def nested_compile_region(fn: Any = None, options: Any = None) -> Any:
    """Would compile a region once for all its uses: `fn` itself."""
    if fn is None:
        return functools.partial(nested_compile_region, options=options)
    return compiled(fn)


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as one of tensors."""

    def to_numpy(value: Any) -> Any:
        return value.numpy() if isinstance(value, Tensor) else value

    def to_tensor(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return torchshim.as_tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(to_tensor(v) for v in value)
        return value

    @functools.wraps(fn)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        found = fn(
            *[to_numpy(a) for a in args], **{k: to_numpy(v) for k, v in kwargs.items()}
        )
        return to_tensor(found)

    return wrap


def save_cache_artifacts() -> None:
    """None: XLA's programs are not kept in PyTorch's cache."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: XLA's programs are not kept in PyTorch's cache."""


def _no_guards(guard_entries: Any) -> list[bool]:
    """Which guards are to be kept: there are none."""
    return [False for _ in guard_entries]


keep_portable_guards_unsafe = _no_guards
keep_tensor_guards_unsafe = _no_guards
skip_all_guards_unsafe = _no_guards
skip_guard_on_all_nn_modules_unsafe = _no_guards
skip_guard_on_globals_unsafe = _no_guards
skip_guard_on_inbuilt_nn_modules_unsafe = _no_guards

config = _dynamo.config
