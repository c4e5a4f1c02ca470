"""Functions that classes and modes override, for libraries that let them.

https://docs.pytorch.org/docs/2.13/torch.overrides.html
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torchshim
from torchshim import _C, _function_modes, _overrides
from torchshim import _warnings as warnings
from torchshim._C import _has_torch_function as has_torch_function
from torchshim._function_modes import pop_mode as _pop_mode
from torchshim._function_modes import push_mode as _push_mode
from torchshim._tensor import Tensor

__all__ = [
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


_is_torch_function_mode_enabled = _C._is_torch_function_mode_enabled
_len_torch_function_stack = _C._len_torch_function_stack
_get_function_stack_at = _C._get_function_stack_at
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Asks the mode on top and the classes of `relevant_args` for a result.

    `args` and `kwargs` are the arguments of `public_api`, which they get. TypeError if
    all of them return NotImplemented.
    """
    found = _overrides.overloaded(relevant_args, False, True)
    return _overrides.handle(public_api, found, args, kwargs)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """Those of the values whose classes are asked, in that order, one of each class.

    With `get_type_fn` the class of a value is what that gives.
    """
    if get_type_fn is None:
        return _overrides.overloaded(relevant_args, False, True)
    stands: dict[type, Any] = {}
    for value in relevant_args:
        stands.setdefault(get_type_fn(value), value)
    found: list[type] = []
    for cls in stands:
        if cls is not Tensor and _overrides.handler_of(cls) is None:
            continue
        above = (i for i, other in enumerate(found) if issubclass(cls, other))
        found.insert(next(above, len(found)), cls)
    return [stands[cls] for cls in found]


def get_default_nowrap_functions() -> set[Any]:
    """What of a subclass gives tensors as they are: `grad` and `_base`."""
    return {inspect.getattr_static(Tensor, n).__get__ for n in ("grad", "_base")}


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the classes of what `dispatcher` returns may override the function.

    `dispatcher` gets the function's arguments and gives the relevant ones.

    >>> import torchshim as torch
    >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
    ... def twice(a):
    ...     return a + a
    >>> twice(torch.ones(1))
    tensor([2.])
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Calls `func` without asking modes or its arguments' classes again.

    What it calls in turn is overridden as ever.
    """
    return _C._skip_one_hop_torch_function(func, types, args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether the class of a value is Tensor or overrides functions.

    >>> import torchshim as torch
    >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# What can be overridden ---------------------------------------------------------------

# What PyTorch does not count among it, though modes see most of them.
_LEFT_OUT = {
    "torch": """arange as_strided as_tensor asarray bartlett_window blackman_window
        can_cast cond empty empty_permuted empty_strided eye fill from_file full
        hamming_window hann_window kaiser_window linspace logspace normal ones
        promote_types rand rand_like randint randint_like randn randn_like randperm
        range result_type scalar_tensor
        sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
        sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices vander
        zeros""",
    "torch.Tensor": """__dir__ eig lstsq new new_empty new_empty_strided new_full
        new_ones new_tensor new_zeros solve stride symeig to_sparse_bsc to_sparse_bsr
        to_sparse_coo to_sparse_csc to_sparse_csr unflatten""",
    "torch.fft": "fftfreq rfftfreq",
    "torch.nn.init": "constant kaiming_uniform normal uniform",
    "torch.nn.functional": """hardsigmoid hardswish upsample upsample_bilinear
        upsample_nearest""",
}


_OF_THE_CLASS = ("as_subclass", "_make_subclass", "_make_wrapper_subclass")
_OF_THE_CLASS += ("__new__", "__init__")


def _left_out(title: str) -> list[str]:
    return _LEFT_OUT.get(title, "").split()


def _overridable(function: Any) -> bool:
    known = ("__op__", "__overloads__", "__overrides__")
    return callable(function) and any(hasattr(function, name) for name in known)


def _namespaces() -> list[tuple[str, Any]]:
    return [
        ("torch", torchshim),
        ("torch.functional", torchshim.functional),
        ("torch.nn.functional", torchshim.nn.functional),
        ("torch.Tensor", Tensor),
        ("torch.linalg", torchshim.linalg),
        ("torch.fft", torchshim.fft),
        ("torch.special", torchshim.special),
        ("torch.nn.init", torchshim.nn.init),
    ]


@functools.cache
def _known() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    """Namespace -> functions, and function -> name."""
    found: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    for title, space in _namespaces():
        listed = found.setdefault(space, [])
        left_out = _left_out(title)
        for name in dir(space):
            member = (
                inspect.getattr_static(space, name)
                if space is Tensor
                else getattr(space, name)
            )
            if isinstance(member, property):
                if name[0] != "_" or name in _overrides.CALLED:
                    found.setdefault(member, []).append(member.__get__)
                    names[member.__get__] = f"{title}.{name}.__get__"
                    names[member.__set__] = f"{title}.{name}.__set__"
            elif (
                _overrides.is_overridable(name, member)
                if space is Tensor
                else _overridable(member)
            ):
                # Of several names that of the function itself.
                if member not in names or name == member.__name__:
                    names[member] = f"{title}.{name}"
                if space is Tensor or (name[0] != "_" and name[-1] != "_"):
                    if name not in left_out:
                        listed.append(member)
    return found, names


def _get_overridable_functions() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    """As `get_overridable_functions`, with the names of all that has one."""
    return get_overridable_functions(), dict(_known()[1])


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that can be overridden, for each namespace and attribute."""
    return {space: list(functions) for space, functions in _known()[0].items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that nothing can override."""
    return {
        function
        for title, space in _namespaces()
        if title in ("torch", "torch.functional", "torch.nn.functional")
        for name in dir(space)
        if callable(function := getattr(space, name))
        and not _overridable(function)
        and name[0] != "_"
    } | {
        getattr(space, name)
        for title, space in _namespaces()
        for name in (*_left_out(title), *(_OF_THE_CLASS if space is Tensor else ()))
    }


# Functions of `nn.init` that can be overridden: in place, and no methods.
_INITIALIZERS = "constant_", "kaiming_uniform_", "normal_", "uniform_"


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden one of its signature that gives -1."""
    initializers = [getattr(torchshim.nn.init, name) for name in _INITIALIZERS]
    return {
        function: _stub(function)
        for functions in (*_known()[0].values(), initializers)
        for function in functions
    }


def _stub(function: Callable[..., Any]) -> Callable[..., Any]:
    def stub(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        stub.__signature__ = inspect.signature(function)
    except ValueError:  # reading an attribute
        stub.__signature__ = inspect.signature(lambda self: -1)
    return stub


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of a function that a handler got; None if it has none.

    >>> import torchshim as torch
    >>> torch.overrides.resolve_name(torch.Tensor.add)
    'torch.Tensor.add'
    """
    if type(f).__module__ == "torch._ops":
        return str(f)
    return _known()[1].get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that a handler got is a method of Tensor, or reads one of it.

    >>> import torchshim as torch
    >>> torch.overrides.is_tensor_method_or_property(torch.add)
    False
    """
    return func in _known()[0][Tensor] or func.__name__ == "__get__"


# Modes --------------------------------------------------------------------------------


class TorchFunctionMode:
    """Within `with mode:`, functions are given to the mode's `__torch_function__`.

    Also those without tensors among their arguments (`torch.zeros`). Calls from the
    handler itself go to the mode below. Attributes and methods of plain tensors that
    record no operator (`x.shape`, `x.size()`) are not given to modes.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance; PyTorch's older spelling."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just "
            "`with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The mode on top; None if there is none."""
    modes = _function_modes.state.stack
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes in force, the last on top."""
    return list(_function_modes.state.stack)


_pop_mode_temporarily = _function_modes.mode_popped


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    """Within the block, classes and modes override functions again."""
    before = _function_modes.state.disabled
    _function_modes.set_disabled(_function_modes.ENABLED)
    try:
        yield
    finally:
        _function_modes.set_disabled(before)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Nothing to enable: there is no `__torch_dispatch__` to be entered again."""
    yield
