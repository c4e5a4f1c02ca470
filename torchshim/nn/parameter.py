"""Tensors that a module registers by being assigned: parameters and buffers."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np

import torchshim
from torchshim._functions.joining import known, known_value
from torchshim._functions.rebuilding import set_user_state, user_state
from torchshim._overrides import ORDINARY, disabled_torch_function_impl
from torchshim._tensor import Tensor, from_array

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):
    # A tensor subclass keeps its own type when made a parameter, and is marked.
    def __instancecheck__(self, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            self is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a `Module` lists among its parameters when it is assigned.

    Shares the storage of `data`. Integer and bool data need
    ``requires_grad=False``, else RuntimeError. Follows ``torch.nn.Parameter``.

    >>> import torchshim as torch
    >>> torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    # As on a tensor subclass that was made one: what its text is told by.
    _is_param = True

    # Operators on parameters give plain tensors.
    __torch_function__ = disabled_torch_function_impl  # type: ignore[assignment]

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = torchshim.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                "Creating a Parameter from an instance of type "
                f"{type(data).__name__} requires that detach() returns an instance "
                f"of the same type, but return type {type(t).__name__} was found "
                "instead. To use the type as a Parameter, please correct the "
                "detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        t._is_param = True
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self))
        if copied is None:
            values = self.data
            if known([values], math.inf) and values.is_contiguous():
                # Memory of its own, which a step may take (donation).
                array = np.array(known_value(values))
                values = from_array(array, device=values.device)
            else:
                values = values.clone(memory_format=torchshim.preserve_format)
            copied = memo[id(self)] = type(self)(values, self.requires_grad)
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        # PyTorch's format has a place for hooks that is always empty.
        built_from = (self.data, self.requires_grad, OrderedDict())
        attributes = user_state(self)
        if attributes:
            return _rebuild_parameter_with_state, (*built_from, attributes)
        return _rebuild_parameter, built_from


def _rebuild_parameter(data: Tensor, requires_grad: bool, hooks: Any) -> Parameter:
    param = Parameter(data, requires_grad)
    if hooks:
        param._backward_hooks = hooks
    return param


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, hooks: Any, state: Any
) -> Parameter:
    param = _rebuild_parameter(data, requires_grad, hooks)
    set_user_state(param, state)
    return param


ORDINARY.add(Parameter)


class UninitializedTensorMixin:
    """What a parameter or buffer can do before its shape is known: very little."""

    cls_to_become: type
    #: Methods only: the functions of these names (`torch.is_complex`) are refused.
    _allowed_methods = frozenset(
        getattr(Tensor, name)
        for name in "__hash__ size copy_ is_complex is_floating_point half float "
        "double char short int long cuda cpu to get_device".split()
    )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor its shape; it becomes a plain parameter or buffer.

        The values are not initialised. `device` and `dtype` default to those of
        the placeholder. Follows ``UninitializedParameter.materialize``.

        >>> import torchshim as torch
        >>> p = torch.nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> type(p).__name__, p.shape
        ('Parameter', torch.Size([2, 3]))
        """
        data: Any = self.data
        self.data = torchshim.empty(
            shape,
            device=data.device if device is None else device,
            dtype=data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Not known yet: RuntimeError."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This "
            "error usually happens in `load_state_dict` when trying to load an "
            "uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """Nothing to share yet: RuntimeError."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call "
            "`forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __copy__(self) -> Any:
        return type(self)(self.requires_grad)  # type: ignore[attr-defined]

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if (
            type(func).__name__ == "method-wrapper"  # reading a property
            or func in cls._allowed_methods
        ):
            return super().__torch_function__(  # type: ignore[misc]
                func, types, args, kwargs or {}
            )
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error "
            "happens when you are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{cls.__name__}` objects. When using LazyModules "
            "Call `forward` with a dummy batch to initialize the parameters before "
            "calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Whether `param` still waits for its shape.

    >>> import torchshim as torch
    >>> torch.nn.parameter.is_lazy(torch.nn.UninitializedParameter())
    True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape the first input decides; see `materialize`.

    Using it before that raises ValueError. Follows
    ``torch.nn.UninitializedParameter``.

    >>> import torchshim as torch
    >>> torch.nn.UninitializedParameter()
    <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = torchshim.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self))
        if copied is None:
            data = self.data
            copied = type(self)(self.requires_grad, data.device, data.dtype)
            memo[id(self)] = copied
        return copied


class _BufferMeta(type(Tensor)):
    # Buffer() returns a tensor of the type it was given, with a mark on it.
    def __instancecheck__(self, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return (
            self is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` lists among its buffers when it is assigned.

    With ``persistent=False`` it stays out of the state dict. The result is of
    the type of `data` and shares its storage. Follows ``torch.nn.Buffer``.

    >>> import torchshim as torch
    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(2))
    >>> [name for name, _ in m.named_buffers()]
    ['mean']
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = torchshim.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first input decides; see `materialize`.

    >>> import torchshim as torch
    >>> torch.nn.parameter.UninitializedBuffer()
    <UninitializedBuffer>
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = torchshim.empty(0, device=device, dtype=dtype)
        t = Tensor._make_subclass(cls, data, requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t
