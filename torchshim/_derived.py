"""The derived functions and methods, bound to the public tensor class.

`fns.add`, `fns.select`, … are the functions of the operators by registry name, for code
above the operators. `public` adds a function written in Python over them to what users
see. `namespace("linalg")` is what a public package exports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from torchshim import _ops
from torchshim._bind import Derived, derive, make_operator
from torchshim._core import engine
from torchshim._core.op import REGISTRY
from torchshim._core.storage import tensor_class
from torchshim._tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

assert _ops.__all__
tensor_class[0] = Tensor
_derived: Derived = derive()
fns = SimpleNamespace(**_derived.by_name)

# Python's operators: the method, the operator it records, whether reflected.
_OPERATORS = {
    "__add__": ("add", False),
    "__radd__": ("add", False),
    "__sub__": ("sub", False),
    "__rsub__": ("rsub", False),
    "__mul__": ("mul", False),
    "__rmul__": ("mul", False),
    "__truediv__": ("div", False),
    "__floordiv__": ("floor_divide", False),
    "__rfloordiv__": ("floor_divide", True),
    "__mod__": ("remainder", False),
    "__rmod__": ("remainder", True),
    "__pow__": ("pow", False),
    "__rpow__": ("pow", True),
    "__matmul__": ("matmul", False),
    "__rmatmul__": ("matmul", True),
    "__neg__": ("neg", False),
    "__abs__": ("abs", False),
    "__invert__": ("bitwise_not", False),
    "__and__": ("bitwise_and", False),
    "__rand__": ("bitwise_and", False),
    "__or__": ("bitwise_or", False),
    "__ror__": ("bitwise_or", False),
    "__xor__": ("bitwise_xor", False),
    "__rxor__": ("bitwise_xor", False),
    "__lshift__": ("bitwise_left_shift", False),
    "__rlshift__": ("bitwise_left_shift", True),
    "__rshift__": ("bitwise_right_shift", False),
    "__rrshift__": ("bitwise_right_shift", True),
    "__lt__": ("lt", False),
    "__le__": ("le", False),
    "__gt__": ("gt", False),
    "__ge__": ("ge", False),
    "__eq__": ("eq", False),
    "__ne__": ("ne", False),
}
_IN_PLACE = {
    "__iadd__": "add",
    "__isub__": "sub",
    "__imul__": "mul",
    "__itruediv__": "div",
    "__ifloordiv__": "floor_divide",
    "__imod__": "remainder",
    "__ipow__": "pow",
    "__iand__": "bitwise_and",
    "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift",
    "__irshift__": "bitwise_right_shift",
}


def _attach() -> None:
    for name, method in _derived.methods.items():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, method)
    for name, (op, reflected) in _OPERATORS.items():
        if op in REGISTRY:
            setattr(Tensor, name, make_operator(REGISTRY[op], name, reflected))
    for name, op in _IN_PLACE.items():
        if op in REGISTRY:
            setattr(Tensor, name, make_operator(REGISTRY[op], name, False, True))


def _rtruediv(self: Tensor, other: Any) -> Any:
    # As PyTorch has it: the graph shows a product, not a quotient.
    return fns.reciprocal(self) * other


_attach()
Tensor.__rtruediv__ = _rtruediv  # type: ignore[attr-defined]
engine.add.append(fns.add)
engine.ones_like.append(fns.ones_like)


def public(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    namespaces: Sequence[str] = ("torch",),
    method: bool | str = False,
    aliases: Sequence[str] = (),
) -> Any:
    """Makes a Python function public in these namespaces, and as a method."""

    def add(function: _F) -> _F:
        called = name or function.__name__
        for each in (called, *aliases):
            for space in namespaces:
                _derived.namespaces.setdefault(space, {})[each] = function
            if method:
                setattr(Tensor, method if isinstance(method, str) else each, function)
        if namespaces:
            function.__module__ = "torchshim"
        return function

    return add if function is None else add(function)


def namespace(name: str) -> dict[str, Callable[..., Any]]:
    """What belongs to a public namespace: name -> function."""
    return _derived.namespaces.get(name, {})
