"""Arguments as users give them: checked, in recordings' form, told apart.

Errors are those of PyTorch's argument parser.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.op import (
    ARRAY,
    ARRAYS,
    INDEX,
    INDICES,
    OPERAND,
    OPT_ARRAY,
    OPT_ARRAYS,
    OPT_OPERAND,
    OPT_SCALAR,
    SCALAR,
    SCALAR_ROLES,
    SHAPE,
    Op,
    Param,
)
from torchshim._core.promotion import real_number
from torchshim._core.storage import TensorBase
from torchshim._parser import NUMBERS_AS_TENSORS


class Missing:
    """Stands for a required argument that was left out."""

    def __repr__(self) -> str:
        return "<required>"


MISSING = Missing()


def is_star(op: Op, param: Param) -> bool:
    """Whether methods take all remaining arguments for a parameter: `x.view(2, 3)`.

    Functions take one sequence: `torch.reshape(x, (2, 3))`.
    """
    return param.role == SHAPE and param is op.params[-1]


# Names that numpy's users write, and PyTorch takes.
OTHER_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "x1": "input",
    "a": "input",
    "x2": "other",
    # PyTorch's other forms of `isin`, which take a number.
    "element": "elements",
    "test_element": "test_elements",
}


def takes_other_names(op: Op) -> bool:
    """Whether keywords may arrive that are not among the function's own."""
    named = ("dim", "keepdim", "test_elements")
    return any(p.name in named or is_star(op, p) for p in op.params)


def takes_more(op: Op) -> bool:
    """Whether more positional arguments may arrive than there are parameters.

    In the deprecated forms of `add` and its kind a factor stands among the tensors:
    `x.add_(-0.1, x.grad)`.
    """
    deprecated = any(p.keyword_only and p.name in ("alpha", "value") for p in op.params)
    return deprecated or takes_dims(op)


def takes_dims(op: Op) -> bool:
    """Whether several dimensions are all that a method takes: `x.squeeze(0, 1)`."""
    rest = [(p.name, p.annotation) for p in op.params[1:]]
    return rest in ([("dim", "Dims")], [("dim", "int | tuple[int, ...]")])


def sizes(value: Any) -> tuple[Any, ...]:
    """One sequence given for a variadic shape, as a tuple."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


def sequence(value: Any) -> Any:
    """A sequence as a tuple; anything else as it is, which then is refused."""
    return tuple(value) if isinstance(value, (tuple, list)) else value


def type_name(value: Any) -> str:
    """The name of a value's type as PyTorch's argument parser writes it."""
    if isinstance(value, TensorBase):
        return "Tensor"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(type_name(v) for v in value)
        return (
            f"{type(value).__name__} of ({inner})"
            if value
            else (f"{type(value).__name__} of ()")
        )
    return dtypes.type_name(type(value))


_EXPECTED = {
    ARRAY: "Tensor",
    OPT_ARRAY: "Tensor",
    OPERAND: "Tensor",
    OPT_OPERAND: "Tensor",
    SCALAR: "Number",
    OPT_SCALAR: "Number",
    INDEX: "int",
    ARRAYS: "tuple of Tensors",
    SHAPE: "tuple of ints",
    OPT_ARRAYS: "tuple of Tensors",
}


def check_bool(function: str, name: str, value: Any, position: int = 1) -> None:
    """Raises for what PyTorch's parser does not take for a bool."""
    if value.__class__ is not bool:
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be bool, not "
            f"{dtypes.type_name(type(value))}"
        )


def normalise(op: Op, position: int, param: Param, value: Any) -> Any:
    """An argument as recordings hold it; raises PyTorch's error for a wrong type."""
    role = param.role
    if value is MISSING:
        raise TypeError(
            f'{op.parsed}() missing 1 required positional arguments: "{param.name}"'
        )
    if role in (ARRAY, OPT_ARRAY):
        if isinstance(value, TensorBase) or (value is None and role == OPT_ARRAY):
            return value
    elif role in SCALAR_ROLES:
        if isinstance(value, TensorBase):
            if role in (OPERAND, OPT_OPERAND):
                return value
            if not (value._tmeta.shape or value._tmeta.requires_grad):
                return value.item()  # type: ignore[attr-defined]
        elif isinstance(value, (bool, int, float, complex)):
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise OverflowError(
                    "int too big to convert"
                    if value > 0
                    else "can't convert negative int to unsigned"
                )
            return value if value.__class__ in _NUMBERS else _plain(value)
        elif value is None and (role in (OPT_OPERAND, OPT_SCALAR)):
            return value
        else:
            scalar = numpy_scalar(value)
            if scalar is not None:
                return scalar
    elif role in (ARRAYS, OPT_ARRAYS):
        if isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if not isinstance(item, TensorBase) and not (
                    item is None and role == OPT_ARRAYS
                ):
                    raise TypeError(
                        f"expected Tensor as element {i} in argument {position}, but "
                        f"got {type_name(item)}"
                    )
            return tuple(value)
    elif role == INDEX:
        if isinstance(value, int):
            return int(value)
        if hasattr(value, "__index__"):
            return value.__index__()
    elif role == INDICES:
        return tuple(value)
    elif role == SHAPE:
        if isinstance(value, tuple):
            return tuple(
                v
                if v.__class__ is int
                else size_element(op, position, param, value, at)
                for at, v in enumerate(value)
            )
    else:
        return static(op, position, param, value)
    raise TypeError(
        f"{op.parsed}(): argument '{param.name}' (position {position + 1}) must be "
        f"{_EXPECTED[role]}, not {type_name(value)}"
    )


_NUMBERS: tuple[Any, ...] = (bool, int, float, complex)


def _plain(value: Any) -> Any:
    """NumPy's float64, or what an enumeration has, as the Python number it is.

    Recordings hold the value of any other class in the key: each is a program.
    """
    return next(kind for kind in _NUMBERS if isinstance(value, kind))(value)


# What PyTorch says of a bool in a tensor, where an integer is wanted.
NO_BOOL = (
    "Expected scalar.isIntegral( false) to be true, but got false.  (Could this error "
    "message be improved?  If so, please report an enhancement request to PyTorch.)"
)


def size_element(op: Op, position: int, param: Param, sizes: Any, at: int) -> int:
    """An element of a variadic shape as an integer; raises PyTorch's error."""
    value = sizes[at]
    of_bools = isinstance(value, TensorBase) and value._tmeta.dtype is dtypes.bool_
    if of_bools and param.name not in ("dim", "dims"):
        raise RuntimeError(NO_BOOL)
    if hasattr(value, "__index__"):
        return value.__index__()  # type: ignore[attr-defined]
    start = f"{op.parsed}(): argument '{param.name}' "
    if len(sizes) == 1:
        raise TypeError(
            f"{start}(position {position + 1}) must be tuple of ints, not "
            f"{type_name(value)}"
        )
    raise TypeError(
        f'{start}failed to unpack the object at pos {at + 1} with error "type must be '
        f'tuple of ints,but got {type_name(value)}"'
    )


# Annotations of static arguments that take nothing else.
_SINGLE = ("int", "bool", "float")


def static(op: Op, position: int, param: Param, value: Any) -> Any:
    """A static argument: hashable, lists as tuples, 0-dim tensors as numbers."""
    if value is param.default:
        return value
    kind = value.__class__
    if kind not in _NUMBERS and isinstance(value, (int, float)):
        if not isinstance(value, np.generic):  # NumPy's have rules of their own
            value = _plain(value)
            kind = value.__class__
    if isinstance(value, (list, tuple)):  # `fx` has a list of its own
        if bool in map(type, value) and "bool" not in param.annotation:
            value = [int(v) if v.__class__ is bool else v for v in value]
        elements = (v.item() if is_integer_array(v) else v for v in value)
        return tuple(static(op, position, param, v) for v in elements)
    if kind is type and param.name == "dtype":
        return dtypes.as_dtype(value) or value
    if value is None or kind in (bool, int, float, str, complex):
        note = param.annotation
        if kind is str and note.startswith(("Dims", "tuple[int")):
            raise TypeError(
                f"{op.parsed}(): argument '{param.name}' (position {position + 1}) "
                "must be tuple of ints, not str"
            )
        if kind is str and note.startswith(("int", "bool", "float")):
            raise TypeError(
                f"{op.parsed}(): argument '{param.name}' must be "
                f"{note.split(' ')[0]}, not str"
            )
        if note == "bool" and kind is not bool:
            raise TypeError(
                f"{op.parsed}(): argument '{param.name}' (position {position}) must be "
                f"bool, not {kind.__name__}"
            )
        if kind is float and re.match(r"int\b(?! \| float)", note):
            raise TypeError(
                f"{op.parsed}(): argument '{param.name}' (position {position + 1}) "
                f"must be int, not float"
            )
        if kind is complex and note == "float":
            return real_number(value, np.float32)
        if value is not None or note not in _SINGLE:
            return value
    if isinstance(value, TensorBase):
        meta = value._tmeta
        # Integers in sequences of sizes may have dimensions, other numbers may not.
        single = not meta.shape or meta.dtype.category < dtypes.FLOATING
        if single and meta.shape.numel() == 1 and not meta.requires_grad:
            return value.item()  # type: ignore[attr-defined]
    if isinstance(value, np.generic):
        return value.item()
    if param.annotation in _SINGLE or isinstance(value, TensorBase):
        kinds = param.annotation if param.annotation in _SINGLE else "int"
        raise TypeError(
            f"{op.parsed}(): argument '{param.name}' (position {position + 1}) must be "
            f"{kinds}, not {type_name(value)}"
        )
    return value


def is_integer_array(value: Any) -> bool:
    """Whether a value is NumPy's array of one integer, without dimensions."""
    return isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu"


def is_numpy_scalar(value: Any) -> bool:
    """Whether a value is a number of numpy's, which no array is."""
    return isinstance(value, np.generic)


def numpy_scalar(value: Any) -> Any:
    """A numpy number as a Python number, or None if it is none."""
    if isinstance(value, (np.bool_, np.complexfloating)):
        return float(value)  # as PyTorch takes it, with NumPy's warning
    return value.item() if isinstance(value, np.generic) else None


def signature_of(op: Op) -> inspect.Signature:
    """The signature that users see."""
    kinds = inspect.Parameter
    params = [
        kinds(
            p.name,
            kinds.VAR_POSITIONAL
            if is_star(op, p)
            else kinds.KEYWORD_ONLY
            if p.keyword_only
            else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if is_star(op, p) else p.default,
        )
        for p in op.params
    ]
    if op.out:
        params.append(kinds("out", kinds.KEYWORD_ONLY, default=None))
    return inspect.Signature(params)


def choose(
    name: str,
    functions: Sequence[Callable[..., Any]],
    signatures: Sequence[inspect.Signature],
    args: Any,
    kwargs: Any,
) -> tuple[Callable[..., Any], bool]:
    """The first overload that takes these arguments, and whether their types tell.

    One that takes tensors goes before one that takes their number.
    """
    names: dict[Any, Any] = {OTHER_NAMES.get(k, k): v for k, v in kwargs.items()}
    by_number = None
    for function, signature in zip(functions, signatures, strict=True):
        try:
            bound = signature.bind(*args, **names)
        except TypeError:
            continue
        op = function.__op__
        first = op.params[0]
        if all(
            accepts(p, bound.arguments[p.name])
            or (p is first and is_number_for_tensor(op, bound.arguments[p.name]))
            for p in op.params
            if p.name in bound.arguments
        ):
            if not any(
                p.role not in _OF_TENSORS
                and isinstance(bound.arguments.get(p.name), TensorBase)
                for p in op.params
            ):
                return function, True
            by_number = by_number or function
    if by_number is not None:
        return by_number, False
    got = ", ".join(
        [type_name(a) for a in args]
        + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
    )
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but "
        "expected one of:\n" + "\n".join(f" * {s}" for s in signatures) + "\n"
    )


_OF_TENSORS = (ARRAY, OPT_ARRAY, OPERAND, OPT_OPERAND)


def is_number_for_tensor(op: Op, value: Any) -> bool:
    """Whether a number stands for the first tensor, as in `torch.sub(1, x)`."""
    return op.public in NUMBERS_AS_TENSORS and isinstance(
        value, (bool, int, float, complex)
    )


def accepts(param: Param, value: Any) -> bool:
    """Whether an argument fits a parameter's role."""
    role = param.role
    if role == ARRAY:
        return isinstance(value, TensorBase)
    if role in (OPT_ARRAY,):
        return value is None or isinstance(value, TensorBase)
    if role in (OPERAND, OPT_OPERAND):
        return isinstance(value, (TensorBase, bool, int, float, complex)) or (
            is_numpy_scalar(value)
        )
    if role in (SCALAR, OPT_SCALAR):
        if isinstance(value, TensorBase):
            return not (value._tmeta.shape or value._tmeta.requires_grad)
        return isinstance(value, (bool, int, float, complex)) or (
            value is None and role == OPT_SCALAR
        )
    if role in (ARRAYS, OPT_ARRAYS):
        return isinstance(value, (tuple, list)) and all(
            v is None or isinstance(v, TensorBase) for v in value
        )
    if isinstance(value, TensorBase) and not value._tmeta.shape:
        value = 0 if value._tmeta.dtype.category < 2 else 0.0
    note = re.sub(r"\bDims\b", "int | tuple[int, ...] | None", param.annotation)
    parts = [part.strip() for part in note.split(" | ")]
    return any(fits(part, value) for part in parts)


def fits(note: str, value: Any) -> bool:
    """Whether a static argument is of an annotated type."""
    kind = value.__class__
    if note == "int":
        return kind is not bool and isinstance(value, (int, np.integer))
    if note == "float":
        numbers = (int, float, np.floating, np.integer)
        return kind is not bool and isinstance(value, numbers)
    if note == "bool":
        return kind is bool or isinstance(value, np.bool_)
    if note == "str":
        return isinstance(value, str)
    if note == "None":
        return value is None
    if note.startswith("tuple"):
        return isinstance(value, (tuple, list)) and not any(
            isinstance(v, (float, str, bool)) for v in value
        )
    return not isinstance(value, TensorBase)
