"""Schemas of operators: "mylib::scale(Tensor x, float s=2.0) -> Tensor".

The language is that of PyTorch's native functions.
https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/README.md
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from torchshim._core import dtypes
from torchshim._core.device import device
from torchshim._core.storage import TensorBase

# What stands in schemas as its number.
_NUMBERED = ("ScalarType", "Layout", "MemoryFormat")
_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2}
_FORMATS |= {"channels_last_3d": 3, "strided": 0, "sparse_coo": 1}
# What types of schemas are called in error texts.
_SHOWN = {
    "SymInt": "int",
    "ScalarType": "int",
    "Layout": "int",
    "MemoryFormat": "int",
    "Scalar": "number",
}
_CAST = (
    "Unable to cast Python instance of type {} to C++ type '?' (#define "
    "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
)
_TYPES = frozenset(
    """
    Any AnyClassType AnyEnumType Capsule ConstQuantizerPtr Device DeviceIndex Generator
    Layout MemoryFormat None NoneType QScheme Quantizer Scalar ScalarType Storage Stream
    SymBool SymInt Tensor bool complex float int str
    """.split()
)
_UNKNOWN = (
    "unknown type specifier. Common valid schema types include Tensor, SymInt, int, "
    "float, bool, Scalar; for a full list, please see https://github.com/pytorch/"
    "pytorch/blob/main/aten/src/ATen/native/README.md#func "
)
# Types of C++, for which there are others.
_OF_CPP = {
    "int64_t": "Use `SymInt` or `int` instead of `int64_t` in an operator's schema "
    "string. `SymInt` corresponds to c10::SymInt in C++ while `int` in schema "
    "corresponds to the int64_t type in C++.",
    "double": "Use `float` instead of `double` in an operator's schema string. `float` "
    "in schema corresponds to the double type in C++",
}
_TYPE = re.compile(
    r"(?P<base>\w+)(?:\((?P<alias>[^)]*)\))?(?P<inner>\?)?"
    r"(?P<list>\[\d*\])?(?:\((?P<of_list>[^)]*)\))?(?P<optional>\?)?$"
)


class Misfit(Exception):
    """A value is not of the type that a schema asks for; the text says why."""


class AliasInfo(NamedTuple):
    """Which memory an argument shares with others, and whether it is written to."""

    names: frozenset[str]
    is_write: bool


class Type(NamedTuple):
    """The type of an argument: `Tensor`, `int[]?`, …"""

    base: str
    # Whether the elements of a list may be None.
    inner: bool
    list: bool
    # How many these are, if the type says so.
    length: int | None
    optional: bool
    alias: AliasInfo | None
    text: str

    def __str__(self) -> str:
        shown = _SHOWN.get(self.base, self.base)
        if self.list:
            shown = f"List[{f'Optional[{shown}]' if self.inner else shown}]"
        return f"Optional[{shown}]" if self.optional else shown

    @property
    def of_tensors(self) -> bool:
        return self.base == "Tensor"

    def fit(self, value: Any) -> Any:
        """The value as kernels get it. Raises: Misfit."""
        if value is None and (self.optional or self.base in ("Tensor", "bool")):
            return False if self.base == "bool" and not self.optional else None
        if not self.list:
            return _fit(self.base, value)
        given: Any = value
        if isinstance(value, TensorBase):
            given = value.tolist()  # type: ignore[attr-defined]
        try:
            items = list(given)
        except TypeError as error:
            raise Misfit(f" Python error details: TypeError: {error}") from None
        found = []
        for item in items:
            skipped = item is None and self.inner
            found.append(None if skipped else _fit(self.base, item))
        return found


def parse_type(text: str, schema: str) -> Type:
    """A type within a schema, which errors show. Raises: RuntimeError."""
    found = _TYPE.match(text)
    base = text.partition(":")[0] if found is None else found["base"]
    if found is None or base not in _TYPES:
        at = re.search(rf"(?<!\w){re.escape(base)}(?!\w)", schema)
        below = " " * (0 if at is None else at.start()) + "~" * len(base)
        what = _OF_CPP.get(base, _UNKNOWN)
        raise RuntimeError(f"\n{what}:\n{schema}\n{below} <--- HERE\n")
    alias = None
    told = found["alias"] or found["of_list"]
    if told is not None:
        names = frozenset(re.findall(r"\w+", told.partition("->")[0]))
        alias = AliasInfo(names, "!" in told)
    listed = found["list"] is not None
    optional = bool(found["optional"]) or (bool(found["inner"]) and not listed)
    inner = bool(found["inner"]) and listed
    length = int(found["list"][1:-1] or 0) if listed else 0
    return Type(found["base"], inner, listed, length or None, optional, alias, text)


def _fit(base: str, value: Any) -> Any:
    if base == "Tensor":
        if isinstance(value, TensorBase) or value is None:
            return value
        raise Misfit(f"Cast error details: Unable to cast {value!s} to Tensor")
    if base == "Scalar":
        if isinstance(value, (bool, int, float, complex)):
            return value
        raise Misfit(f"Cast error details: Cannot cast {value!s} to number")
    try:
        return _CASTS.get(base, _unknown)(value)
    except (TypeError, ValueError, StopIteration):
        text = _CAST.format(type(value))
        raise Misfit(f"Cast error details: {text}") from None


def _number(value: Any) -> float:
    if isinstance(value, (str, complex)):
        raise TypeError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _dtype(value: Any) -> Any:
    if isinstance(value, dtypes.dtype):
        return value
    number = operator.index(value)
    known = [d for d in vars(dtypes).values() if isinstance(d, dtypes.dtype)]
    return next(d for d in known if d.index == number)


def _device(value: Any) -> Any:
    if isinstance(value, device):
        return value
    return device(_text(value))


def _unknown(value: Any) -> Any:
    return value


_CASTS = {
    "int": operator.index,
    "SymInt": operator.index,
    "float": _number,
    "bool": bool,
    "str": _text,
    "ScalarType": _dtype,
    "Device": _device,
}


class Argument:
    """One argument, or one result, of a schema."""

    def __init__(
        self, name: str, kind: Type, default: str | None, kwarg_only: bool
    ) -> None:
        self.name = name
        self.type = kind
        self.kwarg_only = kwarg_only
        self.alias_info = kind.alias
        self.is_write = kind.alias is not None and kind.alias.is_write
        self.is_out = kwarg_only and self.is_write
        self._default: Any = None if default is None else _value(default, kind)
        self._has_default = default is not None
        # One number stands for all of a list: `int[2] padding=0`.
        self._value = self._default
        if kind.length and self._has_default and not kind.optional:
            if not isinstance(self._default, list):
                self._value = [self._default] * kind.length
        # What it is called: a dtype by its number.
        is_dtype = isinstance(self._value, dtypes.dtype)
        self.default_value: Any = self._value.index if is_dtype else self._value

    @property
    def N(self) -> int | None:
        return self.type.length

    @functools.cached_property
    def fitted(self) -> Any:
        """The default as kernels get it."""
        return self.type.fit(self._value)

    def has_default_value(self) -> bool:
        return self._has_default

    def __str__(self) -> str:
        text = f"{self.type.text} {self.name}" if self.name else self.type.text
        if not self._has_default:
            return text
        value = self._default
        shown = f'"{value}"' if isinstance(value, str) else str(value)
        if isinstance(value, float):
            shown = f"{int(value)}." if value.is_integer() else f"{value:.17g}"
        return f"{text}={shown}"


def _value(text: str, kind: Type) -> Any:
    if text == "None":
        return None
    if text in ("true", "false"):
        return text == "true"
    if kind.base == "Device":
        return device(text.strip("\"'"))
    if text in _FORMATS:
        return _FORMATS[text]
    if kind.base == "ScalarType" and not text.isdigit():
        return getattr(dtypes, text).index
    value = ast.literal_eval(text)
    one = kind.list and not isinstance(value, (list, tuple))
    return value if one or kind.base in _NUMBERED else kind.fit(value)


class FunctionSchema:
    """What an operator takes and gives."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        returns: Sequence[Argument],
        is_vararg: bool = False,
    ) -> None:
        self.name, _, self.overload_name = name.partition(".")
        self.arguments = list(arguments)
        self.returns = list(returns)
        self.is_vararg = is_vararg
        self.is_mutable = any(a.is_write for a in arguments)

    def __str__(self) -> str:
        shown: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in shown:
                shown.append("*")
            shown.append(str(argument))
        tail = f".{self.overload_name}" if self.overload_name else ""
        results = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            results = f"({results})"
        if self.is_vararg:
            shown.append("...")
        return f"{self.name}{tail}({', '.join(shown)}) -> {results}"

    __repr__ = __str__

    def check_keyword_only(self, what: str) -> None:
        """Refuses tensors that are given by name only. Raises: NotImplementedError."""
        if any(a.kwarg_only and a.type.of_tensors for a in self.arguments):
            raise NotImplementedError(
                f"{what} with kwarg-only Tensor args. In the original definition of "
                f"the op, please make your tensors not kwarg-only. Got: {self}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def is_functional(self) -> bool:
        """Whether nothing is written to, and no result shows an argument's memory."""
        return not self.is_mutable and all(r.alias_info is None for r in self.returns)

    def bound(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword-only arguments, defaults filled in.

        Raises: RuntimeError as PyTorch's calls of operators do.
        """
        short = self.name
        positional = [a for a in self.arguments if not a.kwarg_only]
        total = len(args) + len(kwargs)
        if total > len(self.arguments):
            raise RuntimeError(
                f"{short}() expected at most {len(self.arguments)} argument(s) but "
                f"received {total} argument(s). Declaration: {self}"
            )
        if len(args) > len(positional):
            raise RuntimeError(
                f"{short}() takes {len(positional)} positional argument(s) but "
                f"{len(args)} was/were given.  Declaration: {self}"
            )
        rest, values = dict(kwargs), {}
        for at, argument in enumerate(self.arguments):
            if at < len(args):
                value = args[at]
            elif argument.name in rest:
                value = rest.pop(argument.name)
            elif argument.has_default_value():
                values[argument.name] = argument.fitted
                continue
            else:
                raise RuntimeError(
                    f"{short}() is missing value for argument '{argument.name}'. "
                    f"Declaration: {self}"
                )
            try:
                values[argument.name] = argument.type.fit(value)
            except Misfit as misfit:
                raise RuntimeError(
                    f"{short}() Expected a value of type '{argument.type}' for "
                    f"argument '{argument.name}' but instead found type "
                    f"'{type(value).__name__}'.\nPosition: {at}\nValue: {value!r}\n"
                    f"Declaration: {self}\n{misfit}"
                ) from None
        for name in rest:
            raise RuntimeError(
                f"Unknown keyword argument '{name}' for operator '{short}'. "
                f"Schema: {self}"
            )
        found = [values[a.name] for a in positional]
        return found, {a.name: values[a.name] for a in self.arguments if a.kwarg_only}

    def n_given(self, args: Sequence[Any]) -> int:
        """How many arguments are left without the last that are as their defaults.

        PyTorch's dispatcher leaves these away, so that no gradient stands for them.
        """
        n = len(args)
        for argument, value in zip(
            reversed(self.arguments[: len(args)]), reversed(args), strict=True
        ):
            default = argument.fitted if argument.has_default_value() else None
            same = type(value) is type(default) and (value is None or value == default)
            if not argument.has_default_value() or not same:
                break
            n -= 1
        return n

    def returned(self, result: Any) -> Any:
        """What a kernel gave, as its callers get it."""
        if not self.returns:
            return None
        if len(self.returns) == 1:
            return self._result(self.returns[0], result)
        if not isinstance(result, (tuple, list)) or len(result) < len(self.returns):
            name = "Tensor" if isinstance(result, tuple) else type(result).__name__
            raise TypeError(f"Object of type '{name}' is not an instance of 'sequence'")
        pairs = zip(self.returns, result, strict=True)
        return tuple(self._result(r, value) for r, value in pairs)

    @staticmethod
    def _result(declared: Argument, value: Any) -> Any:
        try:
            return declared.type.fit(value)
        except Misfit as misfit:
            text = str(misfit).removeprefix("Cast error details: ")
            raise RuntimeError(text) from None


def _pieces(text: str) -> list[str]:
    """Splits at the commas that are in no brackets and no string."""
    found, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def parse_schema(text: str, given: str | None = None) -> FunctionSchema:
    """Reads a schema; raises RuntimeError where it is none.

    `given`: the schema as it was written, where it had no namespace.
    """
    given = text if given is None else given
    found = re.match(r"\s*([\w:.]+)\s*\((.*)\)\s*->\s*(.+?)\s*$", text, re.DOTALL)
    if found is None:
        raise RuntimeError(f"expected a schema like 'name(Tensor x) -> Tensor': {text}")
    name, inside, results = found.groups()
    arguments, keyword_only = [], False
    pieces = _pieces(inside)
    vararg = pieces[-1:] == ["..."]
    for piece in pieces[:-1] if vararg else pieces:
        if piece == "*":
            keyword_only = True
            continue
        declared, _, default = piece.partition("=")
        kind, _, called = declared.strip().rpartition(" ")
        if not kind:
            raise RuntimeError(f"an argument without a name or a type: {text}")
        value = default.strip() or None
        arguments.append(Argument(called, parse_type(kind, given), value, keyword_only))
    if results.startswith("(") and results.endswith(")"):
        results = results[1:-1]
    returns = []
    for piece in _pieces(results):
        kind, _, called = piece.strip("()").partition(" ") if piece else ("", "", "")
        # A single result in a tuple has brackets of its own, as has an alias.
        kind = kind + ")" if kind.count("(") > kind.count(")") else kind
        returns.append(Argument(called, parse_type(kind, given), None, False))
    if vararg and any(argument.has_default_value() for argument in arguments):
        raise RuntimeError(
            f"\nschemas with vararg (...) can't have default value args:\n{text}\n"
        )
    return FunctionSchema(name, arguments, returns, vararg)
