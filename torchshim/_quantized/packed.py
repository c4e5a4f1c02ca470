"""Weights as quantized operators take them: objects of `torch.ScriptObject`.

PyTorch rearranges weights for its libraries. Here nothing is rearranged: such an object
has the tensors that it was made of. Pickles and files have them in PyTorch's form.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim._core import dtypes
from torchshim._core.layout import channels_last, channels_last_3d
from torchshim._core.record import untracked
from torchshim._quantized.tensor import (
    PerChannel,
    PerTensor,
    is_quantized,
    quantized,
)
from torchshim._tensor import host_value

_CLASSES = "__torch__.torch.classes."
_KINDS: dict[str, type] = {}


class ScriptObject:
    """An object whose class PyTorch has in C++."""

    __module__ = __name__.partition(".")[0]

    # The name of its class, and the methods that PyTorch lists of it.
    _name = ""
    _methods: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        _KINDS[cls._name] = cls
        cls.__name__ = cls.__qualname__ = "ScriptObject"
        cls.__module__ = ScriptObject.__module__

    def _type(self) -> str:
        return _CLASSES + self._name

    def _method_names(self) -> list[str]:
        return ["__getstate__", "__setstate__", *self._methods]

    def _has_method(self, name: str) -> bool:
        return name in self._method_names()

    def __repr__(self) -> str:
        return f"<torch.ScriptObject object at {id(self):#x}>"

    def __str__(self) -> str:
        return f"ScriptObject <{self._type()}>"

    def _state(self) -> Any:
        """What pickles have of the object."""
        raise NotImplementedError

    def _restore(self, state: Any) -> None:
        """Becomes what `_state` told of."""
        raise NotImplementedError

    def __getstate__(self) -> Any:
        return self._state(), self._type()

    def __setstate__(self, state: Any) -> None:
        content, name = state
        kind = _KINDS.get(name.removeprefix(_CLASSES))
        if kind is None:
            raise RuntimeError(f"{name} is no class that torchshim has")
        self.__class__ = kind
        self._restore(content)

    def __reduce_ex__(self, proto: Any) -> Any:
        new = getattr(copyreg, "__newobj__")  # noqa: B009 (not in the stubs)
        return new, (ScriptObject,), self.__getstate__()


class _Packed(ScriptObject):
    """An object of a class that is named `ScriptObject` in pickles, too."""

    __class__ = property(lambda self: ScriptObject)


def single(tensor: Any, transpose: bool = False) -> Any:
    """A weight with scales of float32, in the order that PyTorch's libraries keep."""
    codes, scheme = tensor._v, tensor._scheme
    formats = {4: channels_last, 5: channels_last_3d}
    with untracked():
        if tensor.dim() not in formats:
            codes = codes.contiguous()
        elif transpose:
            codes = codes.transpose(0, 1)
            codes = codes.clone(memory_format=formats[tensor.dim()])
            codes = codes.transpose(0, 1)
        else:
            codes = codes.clone(memory_format=formats[tensor.dim()])
        if isinstance(scheme, PerTensor):
            scheme = PerTensor(float(np.float32(scheme.scale)), scheme.zero_point)
        elif not scheme.floats:
            scales = scheme.scales.float().double()
            scheme = PerChannel(scales, scheme.zero_points, scheme.axis)
    return quantized(codes, scheme)


class Weight:
    """A weight as products take it.

    `scales` and `zeros` have one element, or one for each index of the dimension of the
    products' channels; `reach` is the most that a step of it can be.
    """

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        scheme = tensor._scheme
        if isinstance(scheme, PerTensor):
            self.scales = torchshim.tensor([scheme.scale], dtype=dtypes.float32)
            self._zeros: Any = scheme.zero_point
            centred = scheme.zero_point == 0
        else:
            with untracked():
                self.scales = scheme.scales.float()
            self._zeros = scheme.parts(tensor.dim())[1]
            centred = not host_value(scheme.zero_points).any()
        self.reach = 128 if centred else 255
        if centred:
            self._zeros = None

    def steps(self) -> Any:
        """The codes less that of zero, in float32."""
        steps = self.tensor._v.float()
        return steps if self._zeros is None else steps - self._zeros


def check_bias(bias: Any, length: int, what: str) -> Any:
    """A bias as it is; RuntimeError where it has another length."""
    if bias is None:
        return None
    if bias.dim() != 1:
        raise RuntimeError("bias should be a vector (1D Tensor)")
    if bias.shape[0] != length:
        raise RuntimeError(f"bias should have {what} elements: {length}")
    return bias


class LinearWeight(_Packed):
    """The weight and the bias of a linear layer: quantized, or of halves."""

    _name = "quantized.LinearPackedParamsBase"
    _methods = ("bias", "unpack")

    def __init__(self, weight: Any, bias: Any) -> None:
        self._restore((weight, bias))

    def _restore(self, state: Any) -> None:
        self._tensor, self._bias = state
        self.packed = Weight(self._tensor) if is_quantized(self._tensor) else None

    def _state(self) -> Any:
        return self._tensor, self._bias

    def unpack(self) -> tuple[Any, Any]:
        """The weight and the bias."""
        return self._tensor, self._bias

    def bias(self) -> Any:
        """The bias."""
        return self._bias


class ConvWeight(_Packed):
    """The weight, the bias and the arguments of a convolution."""

    # Dimensions of images.
    _dims = 0
    _methods = (
        *("weight", "bias", "unpack", "stride", "padding", "output_padding"),
        *("dilation", "groups", "transpose"),
    )

    def __init__(
        self,
        weight: Any,
        bias: Any,
        stride: Sequence[int],
        padding: Sequence[int],
        output_padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        transpose: bool,
    ) -> None:
        self._tensor, self._bias = weight, bias
        self._stride, self._padding = list(stride), list(padding)
        self._output_padding, self._dilation = list(output_padding), list(dilation)
        self._groups, self._transpose = groups, transpose
        self.packed = Weight(weight)

    def _state(self) -> Any:
        """Version 2: https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/conv_serialization.h"""
        lists = self._stride, self._padding, self._dilation, self._output_padding
        numbers = [self._dims, *(n for each in lists for n in each)]
        numbers += [self._groups, int(self._transpose)]
        config = torchshim.tensor(numbers, dtype=dtypes.int16)
        return "2", [config, self._tensor], [self._bias]

    def _restore(self, state: Any) -> None:
        version, tensors, optional = state
        if version != "2":
            raise RuntimeError(
                f"packed weights of convolutions of version {version} are not supported"
            )
        config, weight = tensors
        (dims, *lists) = config.tolist()
        parts = [lists[i * dims : (i + 1) * dims] for i in range(4)]
        stride, padding, dilation, output_padding = parts
        groups, transpose = lists[4 * dims :]
        ConvWeight.__init__(
            self,
            single(weight, bool(transpose)),
            optional[0],
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            bool(transpose),
        )

    def unpack(self) -> tuple[Any, Any]:
        """The weight and the bias."""
        return self._tensor, self._bias

    def weight(self) -> Any:
        """The weight."""
        return self._tensor

    def bias(self) -> Any:
        """The bias."""
        return self._bias

    def stride(self) -> list[int]:
        """The stride."""
        return self._stride

    def padding(self) -> list[int]:
        """The padding."""
        return self._padding

    def output_padding(self) -> list[int]:
        """What is added to one side of the result."""
        return self._output_padding

    def dilation(self) -> list[int]:
        """The dilation."""
        return self._dilation

    def groups(self) -> int:
        """The number of groups."""
        return self._groups

    def transpose(self) -> bool:
        """Whether it is a transposed convolution."""
        return self._transpose


class Conv2dWeight(ConvWeight):
    """Of a convolution of images; of sequences, too, as images of one row."""

    _name = "quantized.Conv2dPackedParamsBase"
    _dims = 2


class Conv3dWeight(ConvWeight):
    """Of a convolution of volumes."""

    _name = "quantized.Conv3dPackedParamsBase"
    _dims = 3


class EmbeddingWeight(_Packed):
    """The weight of an embedding, with a scale for each row."""

    _name = "quantized.EmbeddingPackedParamsBase"
    _methods = ("bit_rate", "unpack", "version")

    def __init__(self, weight: Any) -> None:
        self._tensor = weight

    def _state(self) -> Any:
        return 1, [self._tensor], [], [self.bit_rate()]

    def _restore(self, state: Any) -> None:
        [self._tensor] = state[1]

    def unpack(self) -> Any:
        """The weight."""
        return self._tensor

    def bit_rate(self) -> int:
        """The bits of a code."""
        return 8

    def version(self) -> int:
        """The version of the form in pickles."""
        return 1


class CellWeight(_Packed):
    """The weights of a step of a recurrent layer."""

    _name = "rnn.CellParamsBase"

    def __init__(self, w_ih: Any, w_hh: Any, biases: Any, reduce_range: bool) -> None:
        self.w_ih, self.w_hh = w_ih, w_hh
        self.biases, self.reduce_range = biases, reduce_range

    @property
    def halves(self) -> bool:
        """Whether the weights are of halves, with biases of their own."""
        return self.biases is None

    def _state(self) -> Any:
        weights = [self.w_ih, self.w_hh]
        if self.halves:
            return "quantized_fp16", [], [], [], weights
        numbers = [int(self.reduce_range)]
        return "quantized_dynamic", list(self.biases), [], numbers, weights

    def _restore(self, state: Any) -> None:
        kind, tensors, _, numbers, weights = state
        if kind not in ("quantized_dynamic", "quantized_fp16"):
            raise RuntimeError(f"weights of the kind {kind} are not supported")
        biases = tuple(tensors) if kind == "quantized_dynamic" else None
        reduce = bool(numbers[0]) if numbers else False
        w_ih, w_hh = weights
        CellWeight.__init__(self, w_ih, w_hh, biases, reduce)


_UNIT = "(of Python compilation unit at: 0)"


def expect(value: Any, kind: Any, function: str, parameter: str) -> Any:
    """A packed weight; RuntimeError for any other value."""
    if isinstance(value, kind):
        return value
    wanted = f"{_CLASSES}{kind._name or 'quantized.Conv2dPackedParamsBase'} {_UNIT}"
    if isinstance(value, ScriptObject):
        raise RuntimeError(
            f"Tried to convert an IValue of type {value._type()} {_UNIT} to custom "
            f"class type {wanted}"
        )
    raise RuntimeError(
        f"{function}() Expected a value of type '{wanted}' for argument '{parameter}' "
        f"but instead found type '{type(value).__name__}'."
    )


Function = Callable[..., Any]
OPERATORS: dict[str, Function] = {}


def operator(*names: str) -> Callable[[Function], Function]:
    """Makes a function operators of `torch.ops.quantized` by these names."""

    def register(function: Function) -> Function:
        for name in names:
            OPERATORS[name] = function
        return function

    return register
