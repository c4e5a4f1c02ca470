"""What PyTorch's argument parser says of a call that it refuses.

`_parser.txt` has what the parser of each of PyTorch's functions takes. It is read when
a call has failed, or has arguments of unusual types; a call that succeeds in the usual
way never comes here. `python -m compat_suite.public.parsers` records the file.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.device import device
from torchshim._core.layout import layout, memory_format
from torchshim._core.random import Generator
from torchshim._core.storage import TensorBase

SIGNATURES = Path(__file__).with_name("_parser.txt")

# Functions whose tensors may be numbers.
NUMBERS_AS_TENSORS = frozenset(
    name + end
    for name in "add div divide mul multiply sub subtract true_divide floor_divide "
    "copy to".split()
    for end in ("", "_", "_out")
)
_NUMPY_NAMES = {
    "dim": ("axis",),
    "keepdim": ("keepdims",),
    "input": ("x", "a", "x1"),
    "other": ("x2",),
}
# The parser's types, and what its texts call them.
_TYPE_NAMES = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int64_t": "int",
    "SymInt": "int",
    "DeviceIndex": "int",
    "double": "float",
    "bool": "bool",
    "TensorList": "tuple of Tensors",
    "c10::List<::std::optional<Tensor>>": "tuple of Tensors",
    "IntArrayRef": "tuple of ints",
    "SymIntArrayRef": "tuple of ints",
    "ArrayRef<double>": "tuple of floats",
    "ScalarList": "tuple of Scalars",
    "Generator": "torch.Generator",
    "Storage": "torch.Storage",
    "PyObject*": "object",
    "ScalarType": "torch.dtype",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
    "Device": "torch.device",
    "Stream": "torch.Stream",
    "c10::string_view": "str",
    "std::string_view": "str",
    "std::string": "str",
}


class Parameter:
    """One parameter of a signature: "IntArrayRef[1]? dim=None"."""

    __slots__ = ("default", "keyword_only", "kind", "length", "name", "nullable")

    def __init__(self, text: str, keyword_only: bool) -> None:
        kind, _, rest = text.partition(" ")
        self.name, equals, default = rest.partition("=")
        self.default = default if equals else None
        self.nullable = kind.endswith("?") or default == "None"
        kind = kind.rstrip("?")
        bracket = re.search(r"\[(\d+)\]", kind)
        self.length = int(bracket[1]) if bracket else 0
        self.kind = kind[: bracket.start()] if bracket else kind
        self.keyword_only = keyword_only

    @property
    def type_name(self) -> str:
        return _TYPE_NAMES.get(self.kind, self.kind)

    @property
    def names(self) -> tuple[str, ...]:
        """What keywords may call it."""
        return (self.name, *_NUMPY_NAMES.get(self.name, ()))

    def __str__(self) -> str:
        shown = f"{self.type_name} {self.name}"
        if self.default is None:
            return shown
        return f"{shown} = {_DEFAULTS.get(self.default, self.default)}"

    def takes(self, value: Any, numbers: bool) -> bool:
        """Whether a value is of the parameter's type.

        `numbers`: for this function, they may stand for tensors.
        """
        if value is SOME_SEQUENCE:
            return "List" in self.kind or "Array" in self.kind or "Py" in self.kind
        if value is SOME_TENSOR:
            return self.kind not in _NO_TENSORS
        if self.kind == "Tensor":
            return _is_tensor(value) or (numbers and _is_scalar(value))
        check = _CHECKS.get(self.kind)
        if check is not None:
            return check(value)
        if self.kind in ("IntArrayRef", "SymIntArrayRef"):
            return _is_list(value, _is_index) or (self.length > 0 and _is_index(value))
        return True


#: What stands for any sequence, and for a tensor, which may be a number.
SOME_SEQUENCE, SOME_TENSOR = object(), object()
_NO_TENSORS = frozenset(
    (
        *("bool", "ScalarType", "Layout", "MemoryFormat", "Device", "Generator"),
        *("Storage", "c10::string_view", "std::string_view", "std::string"),
    )
)

_DEFAULTS = {
    "c10::MemoryFormat::Contiguous": "torch.contiguous_format",
    "contiguous_format": "torch.contiguous_format",
}


# The types of values ------------------------------------------------------------------


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase) or (
        not isinstance(value, type) and hasattr(type(value), "__torch_function__")
    )


def _is_number(value: Any, categories: int) -> bool:
    """Whether a tensor counts as a number of one of the first categories of dtypes."""
    if not isinstance(value, TensorBase):
        return False
    meta = value._tmeta
    return (
        not meta.shape and not meta.requires_grad and meta.dtype.category <= categories
    )


def _is_double(value: Any) -> bool:
    return isinstance(value, (float, int, np.number, np.bool_)) or _is_number(
        value, dtypes.COMPLEX
    )


def _is_scalar(value: Any) -> bool:
    return isinstance(value, complex) or _is_double(value)


def _is_long(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, TensorBase):
        return _is_number(value, dtypes.INTEGER) and value.dtype.category > 0  # type: ignore[attr-defined]
    return isinstance(value, (int, np.integer))


def _is_index(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, TensorBase):
        meta = value._tmeta
        return meta.shape.numel() == 1 and meta.dtype.category <= dtypes.INTEGER
    if isinstance(value, int):
        return True
    try:
        return isinstance(value.__index__(), int)
    except (AttributeError, TypeError):
        return False


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    """Whether a value is a sequence whose first element is right."""
    return isinstance(value, (tuple, list)) and (not value or of(value[0]))


def _is_tensors(value: Any) -> bool:
    return isinstance(value, (tuple, list))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Scalar": _is_scalar,
    "int64_t": _is_long,
    "DeviceIndex": _is_long,
    "SymInt": _is_index,
    "double": _is_double,
    "bool": lambda value: isinstance(value, bool),
    "TensorList": _is_tensors,
    "c10::List<::std::optional<Tensor>>": _is_tensors,
    "ArrayRef<double>": lambda value: _is_list(value, _is_scalar),
    "ScalarList": lambda value: _is_list(value, _is_scalar),
    "Generator": lambda value: isinstance(value, Generator),
    "Storage": lambda value: "Storage" in type(value).__name__,
    "ScalarType": lambda value: (
        isinstance(value, dtypes.dtype)
        or any(value is kind for kind in (int, float, bool, complex))
    ),
    "Layout": lambda value: isinstance(value, layout),
    "MemoryFormat": lambda value: isinstance(value, memory_format),
    "Device": lambda value: (
        isinstance(value, (str, device, int, np.integer))
        and not isinstance(value, bool)
    ),
    "c10::string_view": lambda value: isinstance(value, str),
    "std::string_view": lambda value: isinstance(value, str),
    "std::string": lambda value: isinstance(value, str),
}


# Signatures ---------------------------------------------------------------------------


_TOO_LARGE = "Overflow when unpacking long long"


class Signature:
    """One of the forms in which a function may be called."""

    def __init__(self, text: str) -> None:
        text, _, self.hidden = text.partition("|")
        self.name, _, inner = text[:-1].partition("(")
        self.numbers = self.name in NUMBERS_AS_TENSORS
        self.params: list[Parameter] = []
        keyword_only = False
        for part in inner.split(", ") if inner else ():
            if part == "*":
                keyword_only = True
            else:
                self.params.append(Parameter(part, keyword_only))
        self.least = sum(p.default is None for p in self.params)
        self.positional = sum(not p.keyword_only for p in self.params)

    def __str__(self) -> str:
        shown = [str(p) for p in self.params]
        first = next((i for i, p in enumerate(self.params) if p.keyword_only), None)
        if first is not None:
            shown.insert(first, "*")
        return f"({', '.join(shown)})"

    def refusal(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """What is wrong with a call's arguments; None if nothing is."""
        count, left, at = len(args), len(kwargs), 0
        variadic = self.positional == 1 and self.params[0].kind in (
            *("IntArrayRef", "SymIntArrayRef"),
        )
        if count > self.positional and not variadic:
            return self._too_many(count)
        for i, param in enumerate(self.params):
            by_keyword = at >= count
            if not by_keyword:
                if param.keyword_only:
                    return self._too_many(count)
                value = args[at]
            else:
                given = [kwargs[n] for n in param.names if n in kwargs]
                if not given:
                    if param.default is None:
                        return self._missing(i)
                    continue
                value = given[0]
            if not (value is None and param.nullable):
                if param.kind in ("TensorList", "c10::List<::std::optional<Tensor>>"):
                    wrong = _wrong_element(value, i)
                    if wrong is not None:
                        return wrong
                if not param.takes(value, self.numbers):
                    if variadic and at == 0 and not by_keyword:
                        if param.takes(args, False):
                            at = count
                            continue
                        if count > 1:
                            return self._too_many(count)
                    return self._wrong(param, value, 0 if by_keyword else at + 1)
            if by_keyword:
                left -= 1
            else:
                at += 1
        if at < count:  # a sequence comes first, so that it is all
            return self._too_many(count)
        if left > 0:
            return self._unexpected(kwargs, count)
        return None

    def unpacking(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """What is wrong with an element of a sequence, in a call that is accepted."""
        for i, param in enumerate(self.params):
            if param.kind not in ("IntArrayRef", "SymIntArrayRef"):
                continue
            value = args[i] if i < len(args) else kwargs.get(param.name)
            if i == 0 and self.positional == 1 and len(args) > 1:
                value = args
            if not isinstance(value, (tuple, list)):
                continue
            for at, item in enumerate(value):
                # The parser has looked at the first; of others a bool is an integer.
                if not (_is_index(item) or (at and isinstance(item, bool))):
                    return (
                        f"{self.name}(): argument '{param.name}' failed to unpack the "
                        f'object at pos {at + 1} with error "type must be '
                        f'{param.type_name},but got {_kind(item)}"'
                    )
        return None

    def overflow(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Exception | None:
        """What is said of an integer that is too large, in a call that is accepted."""
        for i, param in enumerate(self.params):
            value = args[i] if i < len(args) else kwargs.get(param.name)
            if param.kind in ("int64_t", "SymInt") and _is_large(value):
                return ValueError(_TOO_LARGE)
            if param.kind not in ("IntArrayRef", "SymIntArrayRef"):
                continue
            if i == 0 and self.positional == 1 and len(args) > 1:
                value = args
            sizes = value if isinstance(value, (tuple, list)) else (value,)
            at = next((at for at, each in enumerate(sizes, 1) if _is_large(each)), 0)
            if at:
                return TypeError(
                    f"{self.name}(): argument '{param.name}' failed to unpack the "
                    f'object at pos {at} with error "{_TOO_LARGE}"'
                )
        return None

    def _too_many(self, count: int) -> str:
        most = self.positional
        if self.least != most:
            return (
                f"{self.name}() takes from {self.least} to {most} positional arguments "
                f"but {count} were given"
            )
        return (
            f"{self.name}() takes {most} positional argument{'s' * (most != 1)} but "
            f"{count} {'was' if count == 1 else 'were'} given"
        )

    def _missing(self, first: int) -> str:
        names = [f'"{p.name}"' for p in self.params[first:] if p.default is None]
        return (
            f"{self.name}() missing {len(names)} required positional "
            f"argument{'s' * (len(names) == 1)}: {', '.join(names)}"
        )

    def _wrong(self, param: Parameter, value: Any, position: int) -> str:
        where = f" (position {position})" if position else ""
        start = f"{self.name}(): argument '{param.name}'{where} must be "
        # PyTorch says where in a sequence the wrong element is, for positions only.
        if position and isinstance(value, (tuple, list)) and value:
            if "ArrayRef" in param.kind:
                return (
                    f"{start}{param.type_name}, but found element of type "
                    f"{_kind(value[0])} at pos 0"
                )
        return f"{start}{param.type_name}, not {_kind(value)}"

    def _unexpected(self, kwargs: Mapping[str, Any], count: int) -> str:
        for name in kwargs:
            found = (i for i, p in enumerate(self.params) if name == p.name)
            at = next(found, -1)
            if at < 0:
                return f"{self.name}() got an unexpected keyword argument '{name}'"
            if at < count:
                return f"{self.name}() got multiple values for argument '{name}'"
        return "invalid keyword arguments"


def _wrong_element(value: Any, position: int) -> str | None:
    """What is wrong with a sequence of tensors."""
    if isinstance(value, (tuple, list)):
        for at, item in enumerate(value):
            if not _is_tensor(item):
                return (
                    f"expected Tensor as element {at} in argument {position}, but got "
                    f"{_kind(item)}"
                )
    return None


def _kind(value: Any) -> str:
    """The name of a value's type as C has it."""
    return dtypes.type_name(type(value))


# Texts of calls that fit none of several signatures -----------------------------------


def combination(
    name: str, options: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    # The order in which PyTorch's table of keywords is read: the last one first.
    kwargs = dict(reversed([*kwargs.items()]))
    start = f"{name}() received an invalid combination of arguments - got "
    if len(options) == 1:
        option = _Option(options[0])
        unknown = option.unknown(kwargs)
        if unknown:
            return f"{start}unrecognized keyword arguments: {', '.join(unknown)}"
        matches = option.counts(args, kwargs)
        shown = option.described(args, kwargs) if matches else _described(args, kwargs)
        return f"{start}{shown}, but expected {options[0]}"
    text = f"{start}{_described(args, kwargs)}, but expected one of:\n"
    for each in options:
        text += f" * {each}\n"
        option = _Option(each)
        if option.counts(args, kwargs):
            unknown = option.unknown(kwargs)
            why = (
                f"some of the keywords were incorrect: {', '.join(unknown)}"
                if unknown
                else "some of the arguments have invalid types: "
                + option.described(args, kwargs)
            )
            text += f"      didn't match because {why}\n"
    return text


def _described(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    parts = [_kind(a) for a in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()]
    # PyTorch takes the last comma away where there are positional arguments.
    return f"({', '.join(parts)}{', ' if kwargs and not args else ''})"


class _Option:
    """A signature's text as PyTorch reads it again, to say why it did not match.

    It takes what follows the last blank for a parameter's name, and "*" for a
    parameter, so that defaults are names to it; its texts depend on that.
    """

    def __init__(self, text: str) -> None:
        inner = text[1:-1]
        self.params: list[tuple[str, str]] = []
        for part in inner.split(", ") if text != "()" else [""]:
            kind, _, name = part.rpartition(" ")
            self.params.append((name, kind or name))

    def counts(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        return len(args) + len(kwargs) == len(self.params)

    def unknown(self, kwargs: Mapping[str, Any]) -> list[str]:
        first = max(0, len(self.params) - len(kwargs))
        names = {name for name, _ in self.params[first:]}
        return [name for name in kwargs if name not in names]

    def described(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        on, off, good = _marks()
        parts: list[str] = []
        for i, (name, kind) in enumerate(self.params):
            by_keyword = i >= len(args)
            if by_keyword and name not in kwargs:
                continue
            value = kwargs[name] if by_keyword else args[i]
            fits = _fits(kind, value)
            shown = f"{name}={nested_kind(value)}" if by_keyword else nested_kind(value)
            left, right = (good, good and off) if fits else (on, off)
            parts.append(f"{left}{shown}{right}")
        return f"({', '.join(parts)}{', ' if kwargs and not args else ''})"


def _marks() -> tuple[str, str, str]:
    """What stands around a wrong argument, and before a right one."""
    if os.isatty(1) and os.isatty(2):
        return "\33[31;1m", "\33[0m", "\33[32;1m"
    return "!", "!", ""


def _fits(kind: str, value: Any) -> bool:
    """Whether PyTorch takes a value's type for that of a parameter of this text."""
    if kind == "Tensor":
        return isinstance(value, TensorBase)
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "float":
        return isinstance(value, (float, int))
    if kind == "bool":
        return isinstance(value, bool)
    return dtypes.type_name(type(value)) == kind


def nested_kind(value: Any) -> str:
    """The name of the type of a value, and of what is in it, as refusals say it."""
    if not isinstance(value, (tuple, list)):
        return _kind(value)
    inner = ", ".join(_kind(v) for v in value)
    if isinstance(value, tuple):
        return f"{_kind(value)} of ({inner}{',' * (len(value) == 1)})"
    return f"{_kind(value)} of [{inner}]"


# Functions ----------------------------------------------------------------------------


@functools.cache
def _lines() -> dict[tuple[str, str], list[str]]:
    """(namespace, name) -> the texts of its signatures."""
    found: dict[tuple[str, str], list[str]] = {}
    space = ""
    for line in SIGNATURES.read_text().splitlines():
        if line.startswith("["):
            space = line[1:-1]
        elif line and not line.startswith("#"):
            name, renamed, text = line.partition(": ")
            text = text if renamed and "(" not in name else line
            name = name if renamed and "(" not in name else text.partition("(")[0]
            name = name.removeprefix(f"{space}_")
            found.setdefault((space, name), []).append(text)
    return found


@functools.lru_cache(maxsize=256)
def signatures(space: str, name: str) -> tuple[Signature, ...]:
    """The signatures of a function; none where PyTorch has no parser for it."""
    return tuple(map(Signature, _lines().get((space, name), ())))


def refusal(
    space: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """What PyTorch's parser says of a call; None where it accepts it, or has no part.

    `space`: "torch", "linalg", …; "Tensor" for methods, whose `args` are without self.
    """
    found = signatures(space, name)
    if not found:
        return None
    if space == "Tensor" and len(found) == 1 and not found[0].params:
        if kwargs:
            return f"TensorBase.{name}() takes no keyword arguments"
        if args:
            return f"TensorBase.{name}() takes no arguments ({len(args)} given)"
        return None
    for each in found:
        reason = each.refusal(args, kwargs)
        if reason is None:
            return each.unpacking(args, kwargs)
        if reason.startswith("expected Tensor as element") or len(found) == 1:
            return reason
    count = len(args) + len(kwargs)
    shown = [each for each in found if not each.hidden]
    plausible = [e for e in shown if e.least <= count <= len(e.params)]
    if len(plausible) == 1:
        return plausible[0].refusal(args, kwargs)
    return combination(found[0].name, [str(e) for e in shown], args, kwargs)


def overflow(
    space: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Exception | None:
    """What PyTorch says of an integer beyond 64 bits, in a call of the right kinds."""
    for each in signatures(space, name):
        if each.refusal(args, kwargs) is None:
            return each.overflow(args, kwargs)
    return None


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def spaces() -> Iterator[str]:
    """The namespaces whose functions have parsers."""
    return iter(dict.fromkeys(space for space, _ in _lines()))
