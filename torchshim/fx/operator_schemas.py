"""Matching the arguments of calls with signatures.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node.normalized_arguments
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from torchshim._errors import unsupported
from torchshim._tensor import Tensor
from torchshim.fx._names import home_of

if TYPE_CHECKING:
    from torchshim.nn import Module

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "normalize_function",
    "normalize_module",
]

_ORDINARY = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signatures(target: Callable[..., Any]) -> list[inspect.Signature]:
    """The forms of a function; several for operators that share one name."""
    overloads = getattr(target, "__overloads__", (target,))
    try:
        return [inspect.signature(inspect.unwrap(each)) for each in overloads]
    except (TypeError, ValueError):
        return []


get_signature_for_torch_op = unsupported(
    "fx.operator_schemas.get_signature_for_torch_op",
    "there are no schemas of TorchScript",
)


def _normalized(
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    only_kwargs: bool,
) -> ArgsKwargsPair | None:
    if any(p.kind not in _ORDINARY for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = bound.arguments
    count = 0 if only_kwargs else len(args)
    names = list(signature.parameters)
    return ArgsKwargsPair(
        tuple(values[name] for name in names[:count]),
        {name: values[name] for name in names[count:]},
    )


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call's arguments by the function's signature, with defaults.

    None where it has none, or takes `*args`. Where several forms match, the types of
    the arguments decide; RuntimeError without them.

    >>> normalize_function(lambda a, b=2: None, (1,), normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'a': 1, 'b': 2})
    """
    kwargs = kwargs or {}
    forms = _signatures(target)
    if len(forms) == 1:
        return _normalized(forms[0], args, kwargs, normalize_to_only_use_kwargs)
    matching = [form for form in forms if _binds(form, args, kwargs)]
    if len(matching) > 1:
        if arg_types is None and kwarg_types is None:
            shown = "\n".join(map(str, matching))
            raise RuntimeError(
                f"Tried to normalize arguments to torch.{home_of(target)[1]} but the "
                "schema match was ambiguous! Please provide argument types to the "
                f"normalize_arguments() call. Available schemas:\n{shown}"
            )
        given = arg_types or (), kwarg_types or {}
        matching = [form for form in matching if _takes(form, *given)]
    if not matching:
        return None
    return _normalized(matching[0], args, kwargs, normalize_to_only_use_kwargs)


def _binds(form: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        form.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _takes(form: inspect.Signature, types: Any, named: Any) -> bool:
    """Whether a form of an operator takes tensors where tensors are given."""
    if not _binds(form, types, named):
        return False
    given = form.bind(*types, **named).arguments
    return all(
        ("Array" in str(form.parameters[name].annotation))
        or ("Operand" in str(form.parameters[name].annotation))
        or not (isinstance(kind, type) and issubclass(kind, Tensor))
        for name, kind in given.items()
    )


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call's arguments by the signature of a submodule's forward, with defaults.

    None for modules that are not of `torch.nn`; RuntimeError where there is none.
    """
    try:
        found = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that "
            "target!"
        ) from error
    layers = sys.modules[f"{__name__.partition('.')[0]}.nn"]
    if getattr(layers, type(found).__name__, None) is not type(found):
        return None
    form = inspect.signature(inspect.unwrap(found.forward))
    return _normalized(form, args, kwargs or {}, normalize_to_only_use_kwargs)


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raises RuntimeError for operators that write to an argument."""
    op = getattr(target, "__op__", None)
    if kwargs.get("out") is not None or (op is not None and op.writes):
        module, name = home_of(target)
        raise RuntimeError(
            f"Tried to trace mutable operation {module}.{name}. FX only supports "
            "functional code, so operations that mutate operands in-place (e.g. via "
            "`out` arguments) are not supported"
        )
