"""The schema of an operator from the type annotations of a Python function."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from types import GenericAlias
from typing import Any, NoReturn, Optional

from torchshim._core.device import device
from torchshim._core.dtypes import dtype
from torchshim._library.tags import Tag
from torchshim._tensor import Tensor
from torchshim.types import Number

__all__ = ["infer_schema"]


def _kinds() -> dict[Any, str]:
    """Annotation -> type of the schema."""
    # (annotation, type, whether there are lists, lists of optionals, optional lists)
    rows: list[tuple[Any, str, bool, bool, bool]] = [
        (Tensor, "Tensor", True, True, False),
        (int, "SymInt", True, False, True),
        (float, "float", True, False, True),
        (bool, "bool", True, False, True),
        (str, "str", False, False, False),
        (Number, "Scalar", True, False, False),
        (dtype, "ScalarType", False, False, False),
        (device, "Device", False, False, False),
    ]
    found: dict[Any, str] = {}
    for kind, name, lists, of_optionals, optional_lists in rows:
        found[kind] = name
        found[Optional[kind]] = f"{name}?"  # noqa: UP045
        if lists:
            found |= dict.fromkeys(_sequences(kind), f"{name}[]")
        if of_optionals:
            sequences = _sequences(Optional[kind])  # noqa: UP045
            found |= dict.fromkeys(sequences, f"{name}?[]")
        if optional_lists:
            optional = [Optional[s] for s in _sequences(kind)]  # noqa: UP045
            found |= dict.fromkeys(optional, f"{name}[]?")
    return found


def _sequences(kind: Any) -> list[Any]:
    return [
        typing.Sequence[kind],
        typing.List[kind],  # noqa: UP006
        GenericAlias(collections.abc.Sequence, (kind,)),
        GenericAlias(list, (kind,)),
    ]


_PARAMETERS = _kinds()
_RETURNS: dict[Any, str] = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    Number: "Scalar",
}


class _Reader:
    """Reads one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.globals = function.__globals__
        self.signature = inspect.signature(function)

    def fail(self, what: str) -> NoReturn:
        raise ValueError(
            f"infer_schema(func): {what} Got func with signature {self.signature})"
        )

    def resolved(self, annotation: Any) -> Any:
        """An annotation without strings in it."""
        if isinstance(annotation, str):
            try:
                return eval(annotation, self.globals)
            except NameError as error:
                self.fail(
                    f"Unsupported type annotation {annotation}. It is not a type. "
                    f"({error}). If you are using 'from __future__ import "
                    "annotations', note that annotations are evaluated lazily as "
                    "strings; make sure all types referenced in annotations are "
                    "importable at module scope, not only inside a local function."
                )
            except Exception as error:
                self.fail(
                    f"Unsupported type annotation {annotation}. It is not a type. "
                    f"({type(error).__name__}: {error})"
                )
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None and any(isinstance(a, str) for a in args):
            return GenericAlias(origin, tuple(map(self.resolved, args)))
        return annotation

    def kind(self, name: str, annotation: Any) -> str:
        found = self.resolved(annotation)
        if found in _PARAMETERS:
            return _PARAMETERS[found]
        text = f"Parameter {name} has unsupported type {annotation}. "
        if typing.get_origin(found) is tuple:
            text += (
                "We do not support Tuple inputs in schema. As a workaround, please try "
                "to use List instead. "
            )
            listed = _list_of(found)
            text += f"For example, {listed}.\n\n" if listed in _PARAMETERS else "\n\n"
        self.fail(f"{text}The valid types are: {_PARAMETERS.keys()}.")

    def default(self, name: str, value: Any) -> str:
        if value is None or isinstance(value, (int, float, bool)):
            return str(value)
        if isinstance(value, (str, device)):
            return f'"{value}"'
        if isinstance(value, dtype):
            return str(value).removeprefix("torch.")
        self.fail(
            f"Parameter {name} has an unsupported default value type {type(value)}. "
            "Please file an issue on GitHub so we can prioritize this."
        )

    def returns(self) -> str:
        annotation = self.resolved(self.signature.return_annotation)
        if annotation is None:
            return "()"
        if annotation is inspect.Parameter.empty:
            self.fail("No return type annotation was provided. Please add one.")
        several = typing.get_origin(annotation) is tuple
        parts = typing.get_args(annotation) if several else (annotation,)
        for part in parts:
            if part not in _RETURNS:
                self.fail(
                    f"Return has unsupported type {annotation}. "
                    f"The valid types are: {_RETURNS}."
                )
        text = ", ".join(_RETURNS[part] for part in parts)
        if not several:
            return text
        return f"(({text}))" if len(parts) == 1 else f"({text})"


def _list_of(kind: Any) -> Any:
    args = [a for a in typing.get_args(kind) if a is not Ellipsis]
    if not args:
        return list
    return list[args[0]] if len(set(args)) == 1 else list[typing.Union[tuple(args)]]  # noqa: UP007


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Tag | Sequence[Tag] | None = (),
) -> str:
    """The schema of a function that is to become an operator.

    `mutates_args`: the arguments that it writes to, or "unknown". Raises: ValueError
    where an annotation is missing or is no type of schemas.
    https://docs.pytorch.org/docs/2.13/library.html#torch.library.infer_schema

    >>> import torchshim as torch
    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    reader = _Reader(prototype_function)
    tags = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)
    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that "
            "are mutated or the string 'unknown'. "
        )
    written = set() if unknown else set(mutates_args)
    params: list[str] = []
    results: list[str] = []  # of arguments that are written to by keyword
    first = None
    for at, (name, param) in enumerate(reader.signature.parameters.items()):
        if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
            reader.fail(
                "We do not support positional-only args, varargs, or varkwargs."
            )
        if param.kind == param.KEYWORD_ONLY and "*" not in params:
            params.append("*")
        if param.annotation is param.empty:
            reader.fail(f"Parameter {name} must have a type annotation.")
        kind = reader.kind(name, param.annotation)
        if first is None and param.kind == param.POSITIONAL_OR_KEYWORD:
            first = name, kind
        of_tensors = kind.startswith("Tensor")
        if name in written and not of_tensors:
            reader.fail(
                f"Parameter {name} is in mutable_args but only Tensors or collections "
                "of Tensors can be mutated"
            )
        if name in written or (unknown and of_tensors):
            if Tag.out in tags:
                if param.kind != param.KEYWORD_ONLY:
                    reader.fail(
                        "torch.Tag.out requires mutable arguments to be keyword-only."
                    )
                if kind != "Tensor":
                    reader.fail(
                        "torch.Tag.out only supports mutable keyword-only Tensor "
                        "arguments."
                    )
            kind = f"Tensor(a{at}!){kind.removeprefix('Tensor')}"
            results.append(kind)
        text = f"{kind} {name}"
        if param.default is not param.empty:
            text += f"={reader.default(name, param.default)}"
        params.append(text)
    if missing := written - set(reader.signature.parameters):
        reader.fail(
            f"{missing} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain the names of all args that the custom op "
            "mutates, or just the string 'unknown' if you don't know."
        )
    if Tag.inplace in tags:
        _check_inplace(reader, first, written)
    given = reader.returns()
    if Tag.inplace in tags:
        if given != "Tensor":
            reader.fail(
                "torch.Tag.inplace requires the return annotation to be torch.Tensor."
            )
        given = results[0]
    elif Tag.out in tags:
        given = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{op_name or ''}({', '.join(params)}) -> {given}"


def _check_inplace(reader: _Reader, first: Any, written: set[str]) -> None:
    if first is None:
        reader.fail("torch.Tag.inplace requires a positional Tensor argument.")
    if first[1] != "Tensor":
        reader.fail(
            "torch.Tag.inplace requires the first positional argument to be a Tensor."
        )
    if written != {first[0]}:
        reader.fail(
            "torch.Tag.inplace requires mutates_args to contain exactly the first "
            f"positional argument, got {tuple(written)}."
        )
