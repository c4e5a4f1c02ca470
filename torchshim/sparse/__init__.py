"""Functions of sparse tensors: `torch.sparse`.

https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from torchshim._core import dtypes
from torchshim._derived import namespace as _namespace
from torchshim._functions._arguments import warn_once
from torchshim._functions.legacy import tensortype
from torchshim._functions.sparse_construct import (
    invariants,
    old_arguments,
    old_tensor,
)
from torchshim._functions.sparse_tensor import COO, Coo
from torchshim._lazy import submodules as _submodules
from torchshim.autograd._gradcheck_sparse import (
    with_dense_outputs as _with_dense_outputs,
)

addmm = _namespace("sparse")["addmm"]
log_softmax = _namespace("sparse")["log_softmax"]
mm = _namespace("sparse")["mm"]
sampled_addmm = _namespace("sparse")["sampled_addmm"]
softmax = _namespace("sparse")["softmax"]
spdiags = _namespace("sparse")["spdiags"]
sum = _namespace("sparse")["sum"]

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "softmax",
    "solve",
    "sum",
    "to_sparse_semi_structured",
]


class check_sparse_tensor_invariants:
    """Whether constructors look at the indices they are given.

    A context manager, a decorator, and `enable()` and `disable()` for good. Follows
    ``torch.sparse.check_sparse_tensor_invariants``.

    >>> import torchshim as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[3]], [1.0], (2,))
    Traceback (most recent call last):
    RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found \
index 3
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether they do."""
        return bool(invariants[0])

    @staticmethod
    def enable() -> None:
        """From now on they do."""
        invariants[0] = True

    @staticmethod
    def disable() -> None:
        """From now on they do not."""
        invariants[0] = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different "
                "context manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        invariants[0] = self.state

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self.saved_state is not None
        invariants[0] = self.saved_state
        self.saved_state = None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` for functions with sparse results, which it checks as dense ones.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.as_sparse_gradcheck.html

    >>> import torchshim as torch
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> gradcheck(lambda x: x * 2, x, masked=True)
    True
    """

    def checked(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        dense = _with_dense_outputs(func, kwargs.get("masked", False))
        return gradcheck(dense, inputs, **kwargs)

    return checked


def solve(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: NotImplementedError."""
    raise NotImplementedError(
        "torch.sparse.solve is not supported: use torch.linalg.solve with to_dense()"
    )


spsolve = solve
_NO_BLOCKS = "semi-structured sparse tensors need kernels of NVIDIA's that JAX has not"


class SparseSemiStructuredTensor:
    """Not supported: NotImplementedError."""

    def __new__(cls, *args: Any, **kwargs: Any) -> SparseSemiStructuredTensor:
        raise NotImplementedError(f"{cls.__name__} is not supported: {_NO_BLOCKS}")


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """Not supported: NotImplementedError."""


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """Not supported: NotImplementedError."""


def to_sparse_semi_structured(
    original_tensor: Any, transposed: bool = False
) -> NoReturn:
    """Not supported: NotImplementedError."""
    raise NotImplementedError(
        f"to_sparse_semi_structured is not supported: {_NO_BLOCKS}"
    )


# -- the legacy constructors: torch.sparse.FloatTensor(indices, values, size) ----------

# How they are called, what takes their place, and where PyTorch warns.
_DEPRECATED = (
    "torch.sparse.SparseTensor({}) is deprecated.  Please use "
    "torch.sparse_coo_tensor({}). (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:{}.)"
)
_NOTHING = "", "(0,), dtype=", 623
_ELEMENTS = "indices, values, *, device=", "indices, values, dtype=, device=", 641
_SIZED = (
    "indices, values, shape, *, device=",
    "indices, values, shape, dtype=, device=",
    653,
)
_SHAPE = "shape, *, device=", "shape, dtype=, device=", 684


class _SparseType(tensortype):
    """The class of `torch.sparse.FloatTensor` and its like."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Coo) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        given = old_arguments("torch.sparse.SparseTensor", args)
        if len(given) > 1:
            form = _ELEMENTS if len(given) == 2 else _SIZED
        else:
            form = _SHAPE if args else _NOTHING
        warn_once(_DEPRECATED.format(*form))
        return old_tensor(given, cls.dtype, device)

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


for _dtype in dtypes.DTYPES:
    if _dtype.scalar_name in (
        *("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"),
        "BFloat16",
    ):
        _name = f"{_dtype.scalar_name}Tensor"
        _members = {"dtype": _dtype, "layout": COO, "is_sparse": True}
        globals()[_name] = _SparseType(_name, (), {**_members, "__module__": __name__})

__getattr__ = _submodules(__name__, "semi_structured")
