"""Tests that are made of one function and many arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim as torch

Test = Callable[..., Any]
#: A test, the end of its name, its arguments, and what decorates it.
Made = tuple[Test, str, dict[str, Any], Callable[[dict[str, Any]], Iterable[Any]]]


def dtype_name(dtype: Any) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).split(".")[1]


class _TestParametrizer:
    """A decorator that makes many tests of one; `_parametrize_test` says which."""

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        raise NotImplementedError

    def __call__(self, fn: Any) -> Any:
        make = self._parametrize_test
        if hasattr(fn, "parametrize_fn"):
            make = compose_parametrize_fns(fn.parametrize_fn, make)
        fn.parametrize_fn = make
        return fn


def compose_parametrize_fns(
    old_parametrize_fn: Callable[..., Iterable[Made]],
    new_parametrize_fn: Callable[..., Iterable[Made]],
) -> Callable[..., Iterator[Made]]:
    """All pairs of what two decorators make of a test; the newer names come first."""

    def composed(test: Test, generic_cls: Any, device_cls: Any) -> Iterator[Made]:
        for old in list(old_parametrize_fn(test, generic_cls, device_cls)):
            for new in new_parametrize_fn(old[0], generic_cls, device_cls):
                twice = set(old[2]) & set(new[2])
                if twice:
                    raise RuntimeError(
                        "Parametrization over the same parameter by multiple "
                        "parametrization decorators is not supported. For test "
                        f'"{test.__name__}", the following parameters are handled '
                        f"multiple times: {twice}"
                    )

                def decorators(
                    kwargs: dict[str, Any], old: Made = old, new: Made = new
                ) -> list[Any]:
                    return [*old[3](kwargs), *new[3](kwargs)]

                name = "_".join(part for part in (new[1], old[1]) if part)
                yield new[0], name, {**old[2], **new[2]}, decorators

    return composed


def instantiate_parametrized_tests(generic_cls: Any) -> Any:
    """Puts what its decorators make of a class's tests in the place of these.

    Returns the class, so that it serves as a decorator.
    """
    for name in tuple(dir(generic_cls)):
        generic = getattr(generic_cls, name)
        if not hasattr(generic, "parametrize_fn"):
            continue
        delattr(generic_cls, name)
        for test, suffix, kwargs, decorators in generic.parametrize_fn(
            generic, generic_cls=generic_cls, device_cls=None
        ):
            full_name = f"{test.__name__}_{suffix}"
            for decorator in decorators(kwargs):
                test = decorator(test)
            add_test(generic_cls, full_name, _bound(test, kwargs))
    return generic_cls


def _bound(test: Test, kwargs: dict[str, Any]) -> Test:
    @functools.wraps(test)
    def run(self: Any, param_kwargs: dict[str, Any] = kwargs) -> Any:
        return test(self, **param_kwargs)

    return run


def add_test(cls: Any, name: str, test: Test) -> None:
    """Adds a test to a class that has none of that name."""
    if hasattr(cls, name):
        raise AssertionError(f"Redefinition of test {name}")
    setattr(cls, name, test)


class subtest:
    """One set of arguments with a name and decorators of its own."""

    __slots__ = ("arg_values", "decorators", "name")

    def __init__(
        self, arg_values: Any, name: str | None = None, decorators: Any = None
    ) -> None:
        self.arg_values = arg_values
        self.name = name
        self.decorators = decorators if decorators else []


class parametrize(_TestParametrizer):
    """A test for each of `arg_values`, as `pytest.mark.parametrize`.

    The names are the test's with each argument's name and value behind it, or what
    `name_fn` makes of the values, or those of `subtest`.
    """

    def __init__(
        self,
        arg_str: str,
        arg_values: Iterable[Any],
        name_fn: Callable[..., str] | None = None,
    ) -> None:
        self.arg_names = [s.strip() for s in arg_str.split(",") if s != ""]
        self.arg_values = arg_values
        self.name_fn = name_fn

    def _formatted_str_repr(self, idx: int, name: str, value: Any) -> str:
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if isinstance(value, torch.device):
            return str(value)
        if type(value).__name__ in ("OpInfo", "ModuleInfo"):
            return value.formatted_name
        if isinstance(value, (int, float, str)):
            return f"{name}_{str(value).replace('.', '_')}"
        return f"{name}{idx}"

    def _name(self, idx: int, values: list[Any], explicit: str | None) -> str:
        if explicit:
            return explicit
        if self.name_fn is not None:
            return self.name_fn(*values)
        named = zip(self.arg_names, values, strict=True)
        return "_".join(self._formatted_str_repr(idx, n, v) for n, v in named)

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        if not self.arg_names:
            yield test, "", {}, lambda _: []
            return
        idx = -1
        for idx, given in enumerate(self.arg_values):
            explicit, decorators, made = None, [], test
            values = given
            if isinstance(given, subtest):
                values, explicit = given.arg_values, given.name
                decorators, made = given.decorators, _wrapped(test)
            values = list(values) if len(self.arg_names) > 1 else [values]
            if len(values) != len(self.arg_names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values "
                    f'and {len(self.arg_names)} names for test "{test.__name__}"'
                )
            kwargs = dict(zip(self.arg_names, values, strict=True))
            name = self._name(idx, values, explicit)
            yield made, name, kwargs, lambda _, decorators=decorators: decorators
        if idx < 0:
            raise ValueError(
                f"{test}: An empty arg_values was passed to @parametrize. "
                "Note that this may result from reuse of a generator."
            )


def _wrapped(test: Test) -> Test:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        return test(*args, **kwargs)

    return run


class reparametrize(_TestParametrizer):
    """Another decorator's tests, with names and arguments changed by `adapter_fn`.

    It gives pairs of both, or None for tests that are left out.
    """

    def __init__(
        self, parametrizer: _TestParametrizer, adapter_fn: Callable[..., Any]
    ) -> None:
        self.parametrizer = parametrizer
        self.adapter_fn = adapter_fn

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        made = self.parametrizer._parametrize_test(test, generic_cls, device_cls)
        for each, name, kwargs, decorators in made:
            for adapted in self.adapter_fn(name, kwargs) or ():
                if adapted is not None:
                    yield each, adapted[0], adapted[1], decorators


class decorateIf(_TestParametrizer):
    """Decorates the tests for whose arguments `predicate_fn` holds."""

    def __init__(
        self, decorator: Any, predicate_fn: Callable[[dict[str, Any]], bool]
    ) -> None:
        self.decorator = decorator
        self.predicate_fn = predicate_fn

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        def decorators(kwargs: dict[str, Any]) -> list[Any]:
            return [self.decorator] if self.predicate_fn(kwargs) else []

        yield _wrapped(test), "", {}, decorators
