"""The derived functions and methods, bound to the public tensor class.

`fns.add`, `fns.select`, … are the functions of the operators by registry name, for code
above the operators. `public` adds a function written in Python over them to what users
see. `namespace("linalg")` is what a public package exports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from torchshim import _ops  # noqa: F401 -- declares the operators
from torchshim._bind import make_operator, methods
from torchshim._core import engine
from torchshim._core.leaves import add
from torchshim._core.op import REGISTRY
from torchshim._core.storage import tensor_class
from torchshim._names import Derived, derive
from torchshim._overrides import overridable
from torchshim._tensor import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

# What may override a public function.
BY_ARGUMENTS, BY_MODES, NEVER = "arguments", "modes", "never"

# The functions of `torch.functional`: PyTorch writes them in Python.
IN_PYTHON = tuple(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split "
    "stft svd_lowrank tensordot unique unique_consecutive unravel_index".split()
)

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
    "__div__": ("div", False),
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
    "__idiv__": "div",
    "__ifloordiv__": "floor_divide",
    "__imod__": "remainder",
    "__ipow__": "pow",
    "__iand__": "bitwise_and",
    "__ior__": "bitwise_or",
    "__ixor__": "bitwise_xor",
    "__ilshift__": "bitwise_left_shift",
    "__irshift__": "bitwise_right_shift",
}

# Those that overrides see as themselves; the others show as the named method.
_THEMSELVES = frozenset(
    "__eq__ __pow__ __rpow__ __rsub__ __rmod__ __floordiv__ __rfloordiv__ __rmatmul__ "
    "__invert__ __and__ __or__ __xor__ __lshift__ __rshift__ __rlshift__ __rrshift__ "
    "__ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__".split()
)


def _home(space: str) -> str:
    """The module of a public namespace, where `pickle` finds its functions."""
    return f"torchshim.{space}".removesuffix(".torch")


def _attach() -> None:
    for space, functions in _derived.namespaces.items():
        for function in functions.values():
            if function is not _derived.namespaces["torch"].get(function.__name__):
                function.__module__ = _home(space)
    methods.update(_derived.methods.values())
    for name, method in _derived.methods.items():
        if name not in Tensor.__dict__:
            method.__qualname__ = f"Tensor.{name}"
            setattr(Tensor, name, method)
    for name, (op, reflected) in _OPERATORS.items():
        if op in REGISTRY:
            func = None if name in _THEMSELVES else _derived.methods[op]
            method = make_operator(REGISTRY[op], name, reflected, func)
            setattr(Tensor, name, method)
    for name, op in _IN_PLACE.items():
        if op in REGISTRY:
            func = None if name in _THEMSELVES else _derived.methods[f"{op}_"]
            method = make_operator(REGISTRY[op], name, False, func, True)
            setattr(Tensor, name, method)


def __rdiv__(self: Tensor, other: Any) -> Any:
    # As PyTorch has it: the graph shows a product, not a quotient.
    try:
        return self.reciprocal() * other
    except TypeError:
        return NotImplemented


_attach()
Tensor.__rtruediv__ = Tensor.__rdiv__ = overridable(__rdiv__, "torch.Tensor")
add.append(fns.add)
engine.ones_like.append(fns.ones_like)


def public(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    namespaces: Sequence[str] = ("torch",),
    method: bool | str = False,
    aliases: Sequence[str] = (),
    overridden: str = BY_ARGUMENTS,
) -> Any:
    """Makes a Python function public in these namespaces, and as a method.

    `overridden`: what may override it (`__torch_function__`).
    """

    def add(function: _F) -> _F:
        called = name or function.__name__
        for each in (called, *aliases):
            for space in namespaces:
                shown = _shown(function, each, space, overridden)
                shown.__module__ = _home(namespaces[0])
                _derived.namespaces.setdefault(space, {})[each] = shown
            if method:
                at = method if isinstance(method, str) else each
                shown = function
                if overridden != NEVER:
                    shown = overridable(function, "torch.Tensor")
                shown.__name__, shown.__qualname__ = at, f"Tensor.{at}"
                setattr(Tensor, at, shown)
        if namespaces:
            function.__module__ = _home(namespaces[0])
        return function

    return add if function is None else add(function)


_wrapped: dict[Any, Any] = {}


def _shown(function: Callable[..., Any], name: str, space: str, overridden: str) -> Any:
    """What users call: one object in all namespaces, which classes may override."""
    if overridden == NEVER or space == "func":
        return function
    if (function, name) not in _wrapped:
        # `istft` is a name there for a function in C++.
        known = space == "torch" and function.__name__ != "istft"
        python = known and function.__name__ in IN_PYTHON
        where = "torch.functional" if python else "torch"
        if space != "torch":
            where = f"torch.{space}"
        made = overridable(
            function, where, python=python, arguments=overridden == BY_ARGUMENTS
        )
        made.__name__ = made.__qualname__ = name
        _wrapped[function, name] = made
    return _wrapped[function, name]


def namespace(name: str) -> dict[str, Callable[..., Any]]:
    """What belongs to a public namespace: name -> function."""
    return _derived.namespaces.get(name, {})
