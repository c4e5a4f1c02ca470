"""Operators by PyTorch's dispatcher names: `torch.ops.aten.mm.default`.

PyTorch's own are names to compare with and to call by: what `torch.utils.checkpoint`'s
policies are asked about. Operators that are one here and several in PyTorch go by the
name of the product in them: `linear` by `addmm` or `mm`. `torch.library` adds operators
under other names.
https://docs.pytorch.org/docs/2.13/torch.compiler_ir.html
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from torchshim._core.op import REGISTRY
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, namespace
from torchshim._errors import unsupported
from torchshim._functions.sparse_tensor import is_sparse
from torchshim._library.native import schemas_of
from torchshim._library.schema import FunctionSchema
from torchshim._overrides import dispatch, overriding
from torchshim._tensor import Tensor

_PACKAGE = __name__.partition(".")[0]
# What PyTorch's dispatcher calls operators that go by another name here, or by one form
# of several.
_NAMES = {
    "conv1d": "convolution",
    "conv2d": "convolution",
    "conv3d": "convolution",
    "conv_transpose1d": "convolution",
    "conv_transpose2d": "convolution",
    "conv_transpose3d": "convolution",
    "layer_norm": "native_layer_norm",
    "group_norm": "native_group_norm",
    "batch_norm": "native_batch_norm",
    "log_softmax": "_log_softmax",
    "softmax": "_softmax",
    "scaled_dot_product_attention": "_scaled_dot_product_flash_attention_for_cpu",
    "attention": "_scaled_dot_product_flash_attention_for_cpu",
    "batch_norm_train": "native_batch_norm",
    "flatten": "view",
    "max_pool2d": "max_pool2d_with_indices",
    "nll_loss": "nll_loss_forward",
    "reshape": "view",
    "std": "std.correction",
    "std_mean": "std_mean.correction",
    "to_copy": "_to_copy",
    "transpose": "transpose.int",
    "unbind": "unbind.int",
    "unbind_rows": "unbind.int",
    "var": "var.correction",
    "var_mean": "var_mean.correction",
    "where": "where.self",
}
# Packets of these, and of what `_form` names.
_PACKETS = {name.partition(".")[0] for name in _NAMES.values()} | {
    f"upsample_nearest{n}d" for n in (1, 2, 3)
}
# Functions of the dispatcher that are methods only.
_METHODS = frozenset(
    "_indices _nnz _values bernoulli_ cauchy_ coalesce col_indices contiguous "
    "crow_indices dense_dim dim expand_as exponential_ fill_diagonal_ float_power_ "
    "geometric_ index_reduce_ indices is_coalesced is_contiguous is_pinned is_set_to "
    "item log_normal_ new_empty new_empty_strided new_full new_ones new_zeros normal_ "
    "polygamma_ random_ requires_grad_ reshape_as resize_ scatter_ set_ sparse_dim "
    "sparse_mask squeeze_ sum_to_size swapaxes_ swapdims_ t_ to to_dense to_sparse "
    "transpose_ type_as uniform_ unsqueeze_ values view_as".split()
)
# Whose results are a list in PyTorch's schemas.
_LISTS = frozenset(
    "broadcast_tensors chunk dsplit hsplit meshgrid split split_copy split_with_sizes "
    "split_with_sizes_copy tensor_split unbind unbind_copy unsafe_chunk unsafe_split "
    "unsafe_split_with_sizes vsplit where".split()
)
# Of reductions: their form along a dimension.
_ALONG = {"sum": "dim_IntList", "prod": "dim_int"} | dict.fromkeys(
    "all any max mean median min nanmedian".split(), "dim"
)
# These take a number for a tensor; what else has forms for both calls them so.
_ARITHMETIC = frozenset("add div mul sub".split())
_OF_BOTH = frozenset(
    "bitwise_and bitwise_or bitwise_xor copysign eq fmod ge gt le lt ne remainder rsub "
    "xlogy".split()
)


HigherOrderOperator = unsupported(
    "_ops.HigherOrderOperator", "operators cannot be registered"
)


def _overriding(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Who overrides a call of an operator; sparse tensors know functions only."""
    found = overriding((*args, *kwargs.values()))
    return None if found and any(map(is_sparse, found)) else found


class OpOverload:
    """One form of an operator; calling it calls the operator."""

    __module__ = "torch._ops"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self.__module__ = packet.__module__
        self.__name__ = f"{packet.__name__}.{overload}"

    @property
    def namespace(self) -> str:
        return self.overloadpacket._namespace

    @property
    def _name(self) -> str:
        return self.name()

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        for schema in schemas_of(self.overloadpacket.__name__):
            if (schema.overload_name or "default") == self._overloadname:
                return schema
        raise AttributeError(f"no schema is known of {self}")

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = _overriding(args, kwargs)
        if found is not None:
            return dispatch(self, found, args, kwargs)
        if kwargs:
            self._check_names(kwargs)
        return self.overloadpacket(*args, **kwargs)

    def _check_names(self, kwargs: dict[str, Any]) -> None:
        """Raises RuntimeError for keywords that only other forms have."""
        forms = schemas_of(self.overloadpacket.__name__)
        schema = self._schema if forms else None
        known = [argument.name for argument in schema.arguments] if schema else kwargs
        for name in kwargs:
            others = (a.name for form in forms for a in form.arguments)
            if name not in known and name in others:
                raise RuntimeError(
                    f"Unknown keyword argument '{name}' for operator "
                    f"'{self.namespace}::{self.overloadpacket.__name__}'. "
                    f"Schema: {schema}"
                )

    def name(self) -> str:
        """The name with its namespace: `aten::add.Tensor`, `aten::mm`."""
        tail = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{tail}"

    def __repr__(self) -> str:
        packet, overload = self.overloadpacket, self._overloadname
        return f"<OpOverload(op='{packet}', overload='{overload}')>"


class OpOverloadPacket:
    """An operator; its forms are its attributes."""

    __module__ = "torch._ops"

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__ = name
        self.__module__ = f"torch._ops.{namespace}"
        self._namespace = namespace

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(
                f"'OpOverloadPacket' object has no attribute '{overload}'"
            )
        if overload == "_qualified_op_name":
            return f"{self._namespace}::{self.__name__}"  # type: ignore[return-value]
        # What forms have, and no form is called: passes look for it.
        if (
            overload.startswith("_")
            or hasattr(OpOverload, overload)
            or overload == "overloadpacket"
        ):
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{overload}'"
            )
        known = self.overloads()
        if known and overload not in known:
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{overload}'"
            )
        made = OpOverload(self, overload)
        self.__dict__[overload] = made
        return made

    def overloads(self) -> list[str]:
        """The names of its forms that take or give tensors, if it is PyTorch's."""
        forms = schemas_of(self.__name__)
        return [schema.overload_name or "default" for schema in forms]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = _overriding(args, kwargs)
        if found is not None:
            return dispatch(self, found, args, kwargs)
        function = function_of(self.__name__)
        if "self" in kwargs and not _names_self(self.__name__):
            # As PyTorch's schemas call what is the first parameter here.
            args = (kwargs.pop("self"), *args)
        return self._plain(function(*args, **kwargs))

    def _plain(self, result: Any) -> Any:
        """Several results as the dispatcher gives them: without names, or a list."""
        if not isinstance(result, tuple):
            return result
        name = self.__name__
        if name in _LISTS or name.startswith("_foreach_"):
            return list(result)
        return tuple(result)

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


def _names_self(name: str) -> bool:
    """Whether an operator has a parameter of that name."""
    op = REGISTRY.get(name)
    return op is not None and any(p.name == "self" for p in op.params)


def function_of(name: str) -> Any:
    """The function that an operator's name stands for; None where there is none."""
    if name in _METHODS:
        return getattr(Tensor, name)
    own = namespace("ops.aten").get(name) or namespace("torch").get(name)
    return own or getattr(fns, name, None)


def is_known(name: str) -> bool:
    """Whether an operator has this name."""
    return name in _PACKETS or function_of(name) is not None


class _OpNamespace(ModuleType):
    """The operators that somebody registered under one name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.__file__ = "torch.ops"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        raise AttributeError(
            f"'_OpNamespace' '{self.__name__.rpartition('.')[2]}' object has no "
            f"attribute '{name}'"
        )


class _Aten(_OpNamespace):
    """The namespace of PyTorch's own operators."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if not is_known(name):
            return super().__getattr__(name)
        packet = OpOverloadPacket(name)
        self.__dict__[name] = packet
        return packet


class _OfLayers(OpOverloadPacket):
    """An operator of quantized layers, which `_quantized` has."""

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(name, "quantized")
        self._function = function
        self.__doc__ = function.__doc__

    def overloads(self) -> list[str]:
        """Nothing is known of its forms: any name is one."""
        return []

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        # Quantized tensors are what these are for.
        found = overriding((*args, *kwargs.values()))
        if found and not all(t.is_quantized for t in found):
            return dispatch(self, found, args, kwargs)
        return self._function(*args, **kwargs)


class _Quantized(_OpNamespace):
    """The namespace of the operators of quantized layers, loaded with the first."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            return super().__getattr__(name)
        found = importlib.import_module(f"{_PACKAGE}._quantized.operators").OPERATORS
        if name not in found:
            return super().__getattr__(name)
        packet = self.__dict__[name] = _OfLayers(name, found[name])
        return packet


aten = _Aten("aten")
quantized = _Quantized("quantized")


class _Ops(ModuleType):
    """The namespaces of operators, as attributes; any name is one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _OpNamespace(name)
        return made


# Paths of the libraries of operators that were loaded: none can be. The packages whose
# libraries were refused.
loaded_libraries: set[str] = set()
refused_packages: set[str] = set()
# Libraries of PyTorch's own tests, which test files load before each test: what is in
# them is refused where a test uses it.
test_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Refuses a library of compiled operators, as PyTorch one that it cannot load.

    Packages that bring such a library take an `OSError` as the news that its operators
    are not there; what they register for these afterwards is let go.
    """
    if str(path) in test_libraries:
        return
    refused_packages.add(Path(path).parent.name)
    raise OSError(
        f"Could not load this library: {path} (torchshim has no compiled operators)"
    )


def overload_of(call: Any, args: Sequence[Any]) -> OpOverload:
    """PyTorch's name for an operator called with these arguments."""
    name = call.op.public
    tensors = [a for a in args if isinstance(a, TensorBase)]
    dims = [len(t._tmeta.shape) for t in tensors]
    if name in ("matmul", "linear"):
        return getattr(aten, _product(name, dims)).default
    if name == "upsample_nearest" and not args[-1]:
        return getattr(aten, f"upsample_nearest{dims[0] - 2}d").default
    if name in _NAMES:
        packet, _, form = _NAMES[name].partition(".")
        return getattr(getattr(aten, packet), form or "default")
    packet, form = getattr(aten, name), _form(call, args, len(tensors))
    known = packet.overloads()
    return getattr(packet, form if form in known or not known else known[0])


def _form(call: Any, args: Sequence[Any], tensors: int) -> str:
    """The form of an operator that these arguments, so many of them tensors, mean."""
    name = call.op.public
    if name in _ALONG:
        for param, given in zip(call.op.params, args, strict=False):
            if param.name == "dim" and given is not None and given != param.default:
                return _ALONG[name]
        return "default"
    if name == "pow":
        if tensors > 1:
            return "Tensor_Tensor"
        return "Tensor_Scalar" if isinstance(args[0], TensorBase) else "Scalar"
    if name == "masked_fill":
        return "Tensor" if tensors > 2 else "Scalar"
    if name in _ARITHMETIC or (name == "clamp" and tensors > 1):
        return "Tensor"
    if name in _OF_BOTH:
        return "Tensor" if tensors > 1 else "Scalar"
    return "default"


def _product(name: str, dims: Sequence[int]) -> str:
    if name == "linear":
        return "addmm" if len(dims) > 2 else "mm"
    left, right = dims
    if left == right == 1:
        return "dot"
    if right == 1:
        return "mv"
    return "mm" if right <= 2 or left == 1 else "bmm"


sys.modules[__name__].__class__ = _Ops
