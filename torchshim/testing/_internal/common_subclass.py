"""`torch.testing._internal.common_subclass`: subclasses of tensors.

Those with `__torch_dispatch__` are named, and refuse to be made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim as torch
from torchshim._errors import unsupported
from torchshim._overrides import NO_DISPATCH
from torchshim.testing._internal.logging_tensor import LoggingTensor

_PLACE = "testing._internal.common_subclass"


def _dispatching(name: str) -> Any:
    return unsupported(f"{_PLACE}.{name}", NO_DISPATCH)


WrapperTensor = _dispatching("WrapperTensor")
WrapperTensorWithCustomSizes = _dispatching("WrapperTensorWithCustomSizes")
WrapperTensorWithCustomStrides = _dispatching("WrapperTensorWithCustomStrides")
DiagTensorBelow = _dispatching("DiagTensorBelow")
SparseTensor = _dispatching("SparseTensor")
RedispatchTensor = _dispatching("RedispatchTensor")
SubclassWithTensorFactory = _dispatching("SubclassWithTensorFactory")


class NonWrapperTensor(torch.Tensor):
    """A subclass with an attribute that results take over."""

    def __new__(cls, data: Any) -> Any:
        made = torch.Tensor._make_subclass(cls, data)
        made.extra_state = {"last_func_called": None}
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls):
            # The name of the last function, whatever its arguments were.
            if func is torch.Tensor.__deepcopy__:  # type: ignore[attr-defined]
                result.extra_state = dict(args[0].extra_state)
            else:
                result.extra_state = {"last_func_called": func.__name__}
        return result

    def new_empty(self, shape: Any) -> Any:
        return type(self)(torch.empty(shape))


class SubclassInfo:
    """A subclass: its name, how a tensor is made, whether results are of it."""

    __slots__ = ["closed_under_ops", "create_fn", "name"]

    def __init__(
        self, name: str, create_fn: Callable[[Any], Any], closed_under_ops: bool = True
    ) -> None:
        self.name = name
        self.create_fn = create_fn
        self.closed_under_ops = closed_under_ops


subclass_db: dict[Any, SubclassInfo] = {
    torch.Tensor: SubclassInfo("base_tensor", torch.randn),
    NonWrapperTensor: SubclassInfo(
        "non_wrapper_tensor", lambda shape: NonWrapperTensor(torch.randn(shape))
    ),
    LoggingTensor: SubclassInfo(
        "logging_tensor", lambda shape: LoggingTensor(torch.randn(shape))
    ),
    SparseTensor: SubclassInfo(
        "sparse_tensor", lambda shape: SparseTensor(torch.randn(shape).relu())
    ),
    DiagTensorBelow: SubclassInfo(
        "diag_tensor_below",
        lambda shape: DiagTensorBelow(torch.randn(shape)),
        closed_under_ops=False,
    ),
    WrapperTensorWithCustomSizes: SubclassInfo(
        "wrapper_with_custom_sizes",
        lambda shape: WrapperTensorWithCustomSizes(torch.randn(shape)),
        closed_under_ops=False,
    ),
    WrapperTensorWithCustomStrides: SubclassInfo(
        "wrapper_with_custom_strides",
        lambda shape: WrapperTensorWithCustomStrides(torch.randn(shape)),
        closed_under_ops=False,
    ),
    RedispatchTensor: SubclassInfo(
        "redispatch_tensor", lambda shape: RedispatchTensor(torch.randn(shape))
    ),
}
