"""`torch.library.opcheck`: whether an operator is what it says that it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim import _pytree as tree
from torchshim._core.storage import TensorBase
from torchshim._library.operators import Operator, check_aliases, tensors_in
from torchshim.autograd.grad_mode import no_grad


class OpCheckError(Exception):
    """A test of `opcheck` failed."""


class MetadataMismatchError(RuntimeError):
    """An operator and its fake kernel give tensors that differ."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __repr__(self) -> str:
        return f"MetadataMismatchError(reason={self.reason!r})"


def _copied(values: Any) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, TensorBase):
            return value
        made: Any = value.detach().clone()  # type: ignore[attr-defined]
        return made.requires_grad_(value._tmeta.requires_grad)

    return tree.tree_map(copy, values)


def schema(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Only what the schema says is written to; no result is an argument's memory."""
    args, kwargs = _copied((args, kwargs))
    before = _copied((args, kwargs))
    with no_grad():
        result = operator(*args, **kwargs)
    given, keywords = operator._schema.bound(args, kwargs)
    written = {
        id(t) for _, v in operator.written(given, keywords) for t in tensors_in(v)
    }
    for old, new in zip(tensors_in(before), tensors_in((args, kwargs)), strict=True):
        if id(new) not in written and not old.equal(new):
            argument = next(
                a.name
                for a, v in zip(operator._schema.arguments, given, strict=False)
                if any(t is new for t in tensors_in(v))
            )
            raise RuntimeError(
                f"Argument {argument} is not defined as mutable but was mutated"
            )
    if operator._schema.is_functional:
        kernel = operator.kernel_for(given, keywords)
        check_aliases(operator.name(), kernel, args, kwargs, result)


def autograd_registration(
    operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Where an argument requires grad, results are nodes of the operator's own."""
    leaves = list(tensors_in((args, kwargs)))
    if not any(t._tmeta.requires_grad for t in leaves) or operator.opaque:
        return
    raise RuntimeError(
        "autograd_registration_check: the operator has no gradient registered; please "
        "use torch.library.register_autograd"
    )


def fake(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The fake kernel gives the shapes and dtypes of the real one."""
    args, kwargs = _copied((args, kwargs))
    with no_grad():
        bare = tree.tree_map(
            lambda v: v.to("meta") if isinstance(v, TensorBase) else v,  # type: ignore[attr-defined]
            (args, kwargs),
        )
        shown = list(tensors_in(operator(*bare[0], **bare[1])))
        real = list(tensors_in(operator(*args, **kwargs)))
    for found, expected in zip(shown, real, strict=True):
        for what in ("Shapes", "Dtypes", "strides"):
            key = {"Shapes": "shape", "Dtypes": "dtype", "strides": "stride"}[what]
            a, b = getattr(expected, key), getattr(found, key)
            a, b = (a(), b()) if callable(a) else (a, b)
            if a != b:
                raise MetadataMismatchError(
                    f"When comparing the output of {operator} on FakeTensor and "
                    f"concrete Tensors, found mismatched tensor metadata: {what} {a} "
                    f"and {b} are not equal!"
                )


def repeated(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    rtol: float,
    atol: float,
) -> None:
    """A second run gives the same results, and gradients where the operator has one."""
    runs = []
    for _ in range(2):
        mine, named = _copied((args, kwargs))
        found = list(tensors_in(operator(*mine, **named)))
        results = [t for t in found if t.requires_grad]
        if results and operator.gradient is not None:
            total: Any = sum(t.sum() for t in results)
            total.backward()
            found += [t.grad for t in tensors_in((mine, named)) if t.grad is not None]
        runs.append(found)
    for first, second in zip(*runs, strict=True):
        if not first.allclose(second, rtol=rtol, atol=atol, equal_nan=True):
            raise RuntimeError(
                f"two runs of {operator} with the same arguments gave other values: "
                f"{first} and {second}"
            )


_TESTS: dict[str, Callable[..., None]] = {
    "test_schema": schema,
    "test_autograd_registration": autograd_registration,
    "test_faketensor": fake,
    "test_aot_dispatch_static": repeated,
    "test_aot_dispatch_dynamic": repeated,
}


def run(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: str | Sequence[str],
    raising: bool,
    rtol: float,
    atol: float,
) -> dict[str, Any]:
    """The outcome of each test asked for; the tolerances are of compared values."""
    found: dict[str, Any] = {}
    chosen = (names,) if isinstance(names, str) else tuple(names)
    if not _TESTS.keys() >= set(chosen):
        raise ValueError(
            f"opcheck(op, ..., test_utils={chosen}), expected test_utils to be subset "
            f"of {tuple(_TESTS)} but it was not"
        )
    for name in chosen:
        try:
            test = _TESTS[name]
            compared = (rtol, atol) if test is repeated else ()
            test(operator, args, kwargs, *compared)
            found[name] = "SUCCESS"
        except Exception as error:
            if raising:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for "
                    "stack trace)"
                ) from error
            found[name] = error
    return found
