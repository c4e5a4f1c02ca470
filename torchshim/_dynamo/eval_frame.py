"""What `torch.compile` gives: the same function or module.

A recording is compiled by XLA whether a script asks for it or not.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sized
from typing import Any

from torchshim._dynamo.exc import InvalidBackend
from torchshim.nn import Module

__all__ = ["OptimizedModule", "compiled", "disable", "list_backends", "lookup_backend"]

_BACKENDS = ("cudagraphs", "inductor", "openxla", "tvm")
_DEBUG_BACKENDS = (
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
    "eager",
    "eager_debug",
    "eager_noexcept",
    "openxla_eval",
    "tensorrt",
)


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `backend=` takes: all of them mean XLA.

    >>> list_backends()
    ['cudagraphs', 'inductor', 'openxla', 'tvm']
    """
    if "debug" in (exclude_tags or ()):
        return list(_BACKENDS)
    return sorted((*_BACKENDS, *_DEBUG_BACKENDS))


def is_dynamo_supported() -> bool:
    """Whether Python code is traced by its bytecode: it never is."""
    return False


def lookup_backend(backend: Any) -> Any:
    """Raises InvalidBackend for a name that there is not, NotImplementedError for a
    function, as there is no graph to hand to it."""
    if isinstance(backend, str):
        if backend not in (*_BACKENDS, *_DEBUG_BACKENDS):
            raise InvalidBackend(backend)
        return backend
    raise NotImplementedError(
        f"torch.compile(backend={backend!r}): XLA compiles every recording, and there "
        "is no graph to hand to another compiler"
    )


class OptimizedModule(Module):
    """A module that `torch.compile` was given, as `_orig_mod` of another one.

    Follows PyTorch: its `state_dict` has the prefix `_orig_mod.`, and attributes are
    read from and written to the original.
    """

    _own = frozenset(
        ("_orig_mod", "forward", "dynamo_ctx", "_torchdynamo_orig_callable")
    )

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self.__dict__.pop("training", None)
        self._modules["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx
        self.__dict__["_torchdynamo_orig_callable"] = mod.forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the original gives, with its hooks."""
        return self._modules["_orig_mod"](*args, **kwargs)

    @property
    def training(self) -> bool:
        return self._modules["_orig_mod"].training

    @training.setter
    def training(self, value: bool) -> None:
        original = self.__dict__.get("_modules", {}).get("_orig_mod")
        if original is not None:
            original.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        original = self.__dict__.get("_modules", {}).get("_orig_mod")
        if original is None or name in self._own:
            super().__setattr__(name, value)
        elif name == "training" or name not in self.__dict__:
            setattr(original, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._own:
            super().__delattr__(name)
        else:
            delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        original = self._modules["_orig_mod"]
        if isinstance(original, Sized):
            return len(original)
        raise TypeError(f"{type(original).__name__} does not support len()")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self._modules["_orig_mod"])]

    def __reduce__(self) -> Any:
        return type(self), (self._modules["_orig_mod"], self.__dict__["dynamo_ctx"])


def compiled(fn: Any) -> Any:
    """What `torch.compile` gives for a module, a class or a callable.

    AssertionError for anything else.
    """
    if isinstance(fn, OptimizedModule):
        return OptimizedModule(fn._orig_mod)
    if isinstance(fn, Module):
        return OptimizedModule(fn)
    if inspect.isclass(fn):
        return fn
    if not callable(fn):
        raise AssertionError(
            f"A callable function is expected, but {type(fn)} is provided."
        )
    return _wrapped(fn)


def _wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)

    @functools.wraps(fn)
    def compile_wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    compile_wrapper._torchdynamo_orig_callable = fn  # type: ignore[attr-defined]
    return compile_wrapper


def disable(
    fn: Any = None,
    recursive: bool = True,
    *,
    reason: str | None = None,
    wrapping: bool = True,
) -> Any:
    """Would leave a function or module out of what is compiled: returns its like."""
    if fn is None:
        return functools.partial(
            disable, recursive=recursive, reason=reason, wrapping=wrapping
        )
    if isinstance(fn, Module):
        return OptimizedModule(fn)
    if inspect.isclass(fn):
        return fn
    if not callable(fn):
        raise AssertionError(
            f"A callable function is expected, but {type(fn)} is provided."
        )
    return _wrapped(fn)
