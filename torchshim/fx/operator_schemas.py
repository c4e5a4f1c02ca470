"""Matching the arguments of calls with signatures.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node.normalized_arguments
"""

from __future__ import annotations

import functools
import inspect
import keyword
import numbers
import sys
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from torchshim import _warnings as warnings
from torchshim._core.device import device
from torchshim._core.dtypes import dtype
from torchshim._core.random import Generator
from torchshim._library.native import schemas_of
from torchshim._library.schema import FunctionSchema, Type
from torchshim._tensor import Tensor
from torchshim.fx._names import home_of
from torchshim.ops import OpOverload, OpOverloadPacket
from torchshim.storage import UntypedStorage

if TYPE_CHECKING:
    from torchshim.nn import Module

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_ORDINARY = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# Types of schemas, as Python has them.
_KINDS = {
    **{"Tensor": Tensor, "int": int, "SymInt": int, "float": float, "bool": bool},
    **{
        "str": str,
        "Scalar": numbers.Number,
        "Device": device,
        "Storage": UntypedStorage,
    },
    **{"ScalarType": int, "Layout": int, "MemoryFormat": int, "Generator": Generator},
}


def _torchscript_type_to_python_type(kind: Type) -> Any:
    made: Any = _KINDS.get(kind.base, Any)
    if kind.list:
        made = typing.List[Optional[made] if kind.inner else made]  # noqa: UP006, UP045
    return Optional[made] if kind.optional else made  # noqa: UP045


@functools.cache
def _signature_of(schema: FunctionSchema) -> inspect.Signature:
    """A schema as the signature of a function: `self` is called `input`."""
    kinds = inspect.Parameter
    found: list[inspect.Parameter] = []
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        kind = kinds.KEYWORD_ONLY if argument.kwarg_only else _ORDINARY[0]
        default = kinds.empty
        if argument.has_default_value():
            default = argument.default_value
        if keyword.iskeyword(name):  # whatever comes before has no name, too
            kind = kinds.POSITIONAL_ONLY
            found = [each.replace(kind=kind) for each in found]
        annotation = _torchscript_type_to_python_type(argument.type)
        # (A keyword is refused as the name of a parameter.)
        found.append(kinds("_", kind, default=default, annotation=annotation))
        found[-1]._name = name
    results = tuple(
        _torchscript_type_to_python_type(each.type) for each in schema.returns
    )
    given = results if len(results) > 1 else results[0] if results else None
    return inspect.Signature(found, return_annotation=given)


def _schemas(target: Any) -> list[FunctionSchema]:
    """The schemas of an operator, or of a function that PyTorch writes in C++."""
    if isinstance(target, OpOverload):
        return [target._schema]
    if isinstance(target, OpOverloadPacket):
        return [getattr(target, form)._schema for form in target.overloads()]
    module, name = home_of(target)
    native = module == "torch" or (module or "").startswith("torch._C.")
    return list(schemas_of(name)) if native and inspect.isfunction(target) else []


def get_signature_for_torch_op(
    op: Callable[..., Any], return_schemas: bool = False
) -> Any:
    """The forms of an operator as signatures, None where it has none.

    `return_schemas`: a pair of these and of the schemas that they come from.

    >>> import torchshim as torch
    >>> [list(form.parameters) for form in get_signature_for_torch_op(torch.relu)]
    [['input'], ['input', 'out']]
    """
    schemas = _schemas(op)
    if not schemas:
        return (None, None) if return_schemas else None
    forms = [_signature_of(schema) for schema in schemas]
    return (forms, schemas) if return_schemas else forms


def _signatures(target: Callable[..., Any]) -> list[inspect.Signature]:
    """The forms of a function; several for operators that share one name."""
    forms = get_signature_for_torch_op(target)
    if forms is not None:
        return forms
    try:
        return [inspect.signature(inspect.unwrap(target))]
    except (TypeError, ValueError):
        return []


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of these types; anything else as it is.

    >>> create_type_hint([int, bool]), create_type_hint((int, str))
    (list[int], tuple[typing.Any, ...])
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        base: Any = x[0] if x else Any
        for kind in x:
            if issubclass(base, kind):
                base = kind
            elif not issubclass(kind, base):
                base = Any
                break
    except TypeError:
        warnings.warn(
            f"We were not able to successfully create type hint from the type {x}",
            stacklevel=2,
        )
        return x
    return list[base] if isinstance(x, list) else tuple[base, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given for a parameter of another one.

    Numbers go for lists of integers, dtypes for integers, and tuples for lists.
    """
    if signature_type is argument_type:
        return True
    origin = getattr(signature_type, "__origin__", signature_type)
    if origin is typing.Union:
        kinds = typing.get_args(signature_type)
        return any(type_matches(kind, argument_type) for kind in kinds)
    if origin is list:
        return _list_matches(typing.get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    both = inspect.isclass(argument_type) and inspect.isclass(signature_type)
    return both and issubclass(argument_type, signature_type)


def _list_matches(element: Any, argument_type: Any) -> bool:
    if argument_type is int and element is int:
        return True
    if not inspect.isclass(element):
        warnings.warn(
            "Does not support nested parametric types, got "
            f"{typing.List[element]}. Please file a bug.",  # noqa: UP006
            stacklevel=3,
        )
        return False
    inner = typing.get_args(argument_type)
    if typing.get_origin(argument_type) is list:
        return issubclass(inner[0], element)
    if typing.get_origin(argument_type) is not tuple:
        return False
    return inner == ((),) or all(i is ... or issubclass(i, element) for i in inner)


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
    if get_signature_for_torch_op(target) is None and forms:
        return _normalized(forms[0], args, kwargs, normalize_to_only_use_kwargs)
    matching = [form for form in forms if _binds(form, args, kwargs)]
    if len(matching) > 1:
        if arg_types is None and kwarg_types is None:
            shown = "\n".join(map(str, matching))
            raise RuntimeError(
                f"Tried to normalize arguments to {_shown(target)} but the "
                "schema match was ambiguous! Please provide argument types to the "
                f"normalize_arguments() call. Available schemas:\n{shown}"
            )
        given = arg_types or (), kwarg_types or {}
        matching = [form for form in matching if _takes(form, *given)]
    if not matching:
        return None
    return _normalized(matching[0], args, kwargs, normalize_to_only_use_kwargs)


def _shown(target: Any) -> str:
    """What PyTorch's error calls a function."""
    module, name = home_of(target)
    owner = "torch._VariableFunctionsClass" if module == "torch" else module
    return f"{owner}.{name}"


def _binds(form: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        form.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _takes(form: inspect.Signature, types: Any, named: Any) -> bool:
    """Whether a form of an operator takes arguments of these types."""
    if not _binds(form, types, named):
        return False
    given = form.bind(*types, **named).arguments.items()
    return all(type_matches(form.parameters[n].annotation, kind) for n, kind in given)


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
    """Raises RuntimeError for operators that write to an argument.

    Where several forms of an operator fit the arguments, none is looked at.
    """
    forms, schemas = get_signature_for_torch_op(target, return_schemas=True)
    found = [
        schema
        for form, schema in zip(forms or (), schemas or (), strict=True)
        if _binds(form, args, kwargs)
    ]
    if len(found) == 1 and found[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {found[0]}. FX only supports functional "
            "code, so operations that mutate operands in-place (e.g. via `out` "
            "arguments) are not supported"
        )
