"""Quantized tensors: integers that stand for multiples of a scale.

Such a tensor is a tensor of integers (`_v`, its codes) and a scheme that says what they
stand for. What is done with one is recorded as operators on the codes, so that views
share memory, and programs and devices need to know nothing of it. Functions and methods
come to `HANDLERS`; what PyTorch does not have for its CPU either is refused.
https://docs.pytorch.org/docs/2.13/quantization.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import contiguous_format
from torchshim._core.meta import meta_of
from torchshim._core.record import untracked
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._functions.composed import FACTS, Composed, knows_facts
from torchshim._printing import format_values, join_suffixes
from torchshim._quantized.schemes import QSCHEMES
from torchshim._tensor import Tensor, host_value

HANDLERS: dict[str, Callable[..., Any]] = {}

#: The dtype of the codes of each quantized dtype, and the least and greatest of them.
CODES = {
    dtypes.NAMES["quint8"]: (dtypes.uint8, 0, 255),
    dtypes.NAMES["qint8"]: (dtypes.int8, -128, 127),
    dtypes.NAMES["qint32"]: (dtypes.int32, -(2**31), 2**31 - 1),
}
_BY_CODES = {codes: kind for kind, (codes, _, _) in CODES.items()}
_PACKED = ("quint4x2", "quint2x4")
NOT_QUANTIZED = (
    "Creation of quantized tensor requires quantized dtype like torch.quint8"
)
_EXPECTED = (
    "Expected {} to be true, but got false.  (Could this error message be improved?  "
    "If so, please report an enhancement request to PyTorch.)"
)


class PerTensor(NamedTuple):
    """A code is `zero_point` more than the multiple of `scale` that it stands for."""

    scale: float
    zero_point: int

    @property
    def qscheme(self) -> Any:
        return QSCHEMES["per_tensor_affine"]

    def parts(self, ndim: int) -> tuple[Any, Any]:
        """Scale and zero point as they are applied to codes of so many dimensions."""
        return float(np.float32(self.scale)), self.zero_point


class PerChannel(NamedTuple):
    """A scale and a zero point for each index of a dimension.

    Zero points of floating point are added before numbers are rounded.
    """

    scales: Any
    zero_points: Any
    axis: int

    @property
    def floats(self) -> bool:
        """Whether the zero points need not be integers."""
        return self.zero_points.dtype.is_floating_point

    @property
    def qscheme(self) -> Any:
        end = "_float_qparams" if self.floats else ""
        return QSCHEMES[f"per_channel_affine{end}"]

    def parts(self, ndim: int) -> tuple[Any, Any]:
        """As `PerTensor.parts`: tensors that broadcast along the axis."""
        shape = [1] * ndim
        shape[self.axis] = -1
        return self.scales.float().view(shape), self.zero_points.float().view(shape)


Scheme = PerTensor | PerChannel


# The operators within functions that models call most, which PyTorch's errors name.
_WITHIN = {
    **dict.fromkeys(("batch_norm", "layer_norm", "instance_norm"), "native_batch_norm"),
    **{
        "conv2d": "_slow_conv2d_forward",
        "conv_transpose2d": "slow_conv_transpose2d.out",
    },
    **{"linear": "mm.out", "mm": "mm.out", "softmax": "_softmax.out"},
    **dict.fromkeys(("log_softmax", "cross_entropy"), "_log_softmax.out"),
    **dict.fromkeys(("matmul", "bmm"), "bmm.out"),
    **{name: f"{name}.out" for name in ("add", "mul", "silu", "exp", "sub", "div")},
    **{"group_norm": "var_mean.correction", "sum": "sum.IntList_out"},
}


def refuse(name: str) -> NoReturn:
    """Raises for what quantized tensors do not support."""
    name = name if ":" in name else f"aten::{_WITHIN.get(name, name)}"
    raise NotImplementedError(
        f"Could not run '{name}' with arguments from the 'QuantizedCPU' backend. It is "
        "not supported for quantized tensors, use dequantize()"
    )


class Quantized(Composed):
    """A tensor of integers that stand for other numbers."""

    __slots__ = ()
    __module__ = "torch"

    _scheme: Scheme
    is_quantized = True

    def _refused(self) -> NoReturn:
        refuse("this operation")

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if isinstance(getattr(func, "__self__", None), property):
            return func(*args)
        name = getattr(func, "__name__", "")
        handler = HANDLERS.get(name)
        if handler is None and name in FACTS:
            with disabled(SUBCLASSES_DISABLED):
                return getattr(Quantized, name)(*args, **(kwargs or {}))
        if handler is None:
            refuse(name)
        return handler(*args, **(kwargs or {}))

    # Autograd: integers have no part in it --------------------------------------------

    requires_grad = property(lambda self: False, lambda self, on: check_no_grad(on))
    is_leaf = property(lambda self: True)
    grad_fn = property(lambda self: None)
    grad = property(lambda self: None)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """The tensor itself; RuntimeError if gradients are asked for."""
        check_no_grad(requires_grad)
        return self

    def backward(self, *args: Any, **options: Any) -> NoReturn:
        """RuntimeError: there is no history."""
        raise RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn"
        )

    def retain_grad(self) -> NoReturn:
        """RuntimeError: there are no gradients."""
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")

    # Memory ---------------------------------------------------------------------------

    def stride(self, dim: int | None = None) -> Any:
        """As `Tensor.stride`, of the codes."""
        return self._v.stride() if dim is None else self._v.stride(dim)

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """As `Tensor.is_contiguous`, of the codes."""
        return self._v.is_contiguous(memory_format=memory_format)

    def storage_offset(self) -> int:
        """As `Tensor.storage_offset`, of the codes."""
        return self._v.storage_offset()

    def data_ptr(self) -> int:
        """As `Tensor.data_ptr`, of the codes."""
        return self._v.data_ptr()

    def untyped_storage(self) -> Any:
        """As `Tensor.untyped_storage`, of the codes."""
        return self._v.untyped_storage()

    @property
    def nbytes(self) -> int:
        return self._v.nbytes

    @property
    def data(self) -> Any:
        """The same codes as another tensor."""
        return self._like(self._v.detach())

    # What tensors that are made of others have ----------------------------------------

    def _like(self, values: Any, **changes: Any) -> Any:
        return quantized(values, changes.get("scheme", self._scheme))

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        scheme = self._scheme
        if isinstance(scheme, PerChannel):
            scales, zeros, axis = scheme
            scheme = PerChannel(move(scales), move(zeros), axis)
        return quantized(move(self._v), scheme)

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __reduce_ex__(self, proto: Any) -> Any:
        from torchshim._quantized.rebuilding import reduced

        return reduced(self)

    # Text -----------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _text(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if spec else repr(self)


Quantized.__name__ = Quantized.__qualname__ = "Tensor"
knows_facts(Quantized)


def check_no_grad(requires_grad: bool) -> None:
    """RuntimeError if gradients are asked for."""
    if requires_grad:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")


def is_quantized(value: Any) -> bool:
    """Whether a value is a quantized tensor."""
    return isinstance(value, Quantized)


def quantized(codes: Any, scheme: Scheme) -> Any:
    """A tensor of these codes, unchecked."""
    made = object.__new__(Quantized)
    made._scheme = scheme
    return with_codes(made, codes)


def with_codes(tensor: Any, codes: Any) -> Any:
    """The tensor itself, with these codes from now on."""
    meta = codes._tmeta
    tensor._tmeta = meta_of(
        meta.shape, _BY_CODES[meta.dtype], meta.device, meta.strides, meta.offset
    )
    tensor._v = codes
    return tensor


def codes_dtype(dtype: Any) -> tuple[Any, int, int]:
    """The dtype of the codes of a quantized dtype, the least and greatest of them."""
    if dtype not in CODES:
        if dtype.name in _PACKED:
            raise NotImplementedError(f"{dtype} is not supported: use torch.quint8")
        raise RuntimeError(
            f"ScalarType {dtype.scalar_name} is not supported in new_qtensor."
        )
    return CODES[dtype]


def code_of(number: float, scheme: PerTensor, dtype: Any) -> int:
    """The code that stands for a number, or for the nearest that has one."""
    _, least, most = CODES[dtype]
    inverse = np.float32(1) / np.float32(scheme.scale)
    exact = float(np.float32(number)) * float(inverse) + scheme.zero_point
    steps = np.rint(np.float32(exact))
    if np.isnan(steps):
        return most
    return int(np.clip(float(steps), least, most))


def encoded(input: Any, scheme: Scheme, dtype: Any) -> Any:
    """The codes that stand for the elements of a float32 tensor.

    As on PyTorch's CPU: the product with the inverse scale and the zero point are added
    up, then rounded to even; what is no number becomes the greatest code.
    """
    kind, least, most = CODES[dtype]
    scale, zero = scheme.parts(input.dim())
    with untracked(), np.errstate(divide="ignore"):
        if isinstance(scheme, PerTensor):
            inverse = float(np.float32(1) / np.float32(scale))
        else:
            inverse = 1 / scale
        # A fused multiplication and addition: float64 holds the product.
        if isinstance(inverse, Tensor):
            inverse = inverse.double()
        steps = (input.double() * inverse + zero).float().round()
        if kind is dtypes.int32:
            steps = steps.double()  # float32 does not hold the greatest code
        return steps.clamp(least, most).nan_to_num(nan=most).to(kind)


def numbers_of(codes: Any) -> Any:
    """Codes as floating point numbers that hold all of them."""
    return codes.double() if codes.dtype is dtypes.int32 else codes.float()


def check_length(scheme: Scheme, length: int) -> None:
    """RuntimeError if a dimension of this length has not one scale for each index."""
    if isinstance(scheme, PerChannel) and scheme.scales.numel() != length:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {length} got, "
            f"{scheme.scales.numel()}"
        )


def decoded(tensor: Any) -> Any:
    """What the codes of a tensor stand for, in float32."""
    scale, zero = tensor._scheme.parts(tensor.dim())
    with untracked():
        steps = tensor._v if tensor._v.dtype is not dtypes.uint8 else tensor._v.int()
        if isinstance(tensor._scheme, PerChannel):
            return (steps.float() - zero) * scale
        if tensor._v.dtype is dtypes.int32:
            return (steps.long() - zero).float() * scale
        return (steps.int() - zero).float() * scale


def per_tensor(tensor: Any, complaint: str | None = None) -> PerTensor:
    """The scheme of a tensor; RuntimeError if it is one for each channel."""
    if isinstance(tensor._scheme, PerTensor):
        return tensor._scheme
    raise RuntimeError(
        complaint or _EXPECTED.format("quantizer->qscheme() == kPerTensorAffine")
    )


def handles(*names: str) -> Callable[[Any], Any]:
    """Makes a function the one that these functions and methods come to."""

    def register(function: Any) -> Any:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


def _fact(name: str) -> None:
    def fact(*args: Any, **kwargs: Any) -> Any:
        return getattr(Quantized, name)(*args, **kwargs)

    handles(name)(fact)


for _name in (
    *("stride", "is_contiguous", "storage_offset", "data_ptr", "untyped_storage"),
    *("retain_grad", "requires_grad_", "backward"),
):
    _fact(_name)


def _text(tensor: Any, contents: str | None) -> str:
    indent, meta, scheme = len("tensor("), tensor._tmeta, tensor._scheme
    suffixes = [f"size={tuple(meta.shape)}", f"dtype={meta.dtype}"]
    if meta.device.type != "cpu":
        suffixes.insert(0, f"device='{meta.device}'")
    suffixes.append(f"quantization_scheme={scheme.qscheme}")
    if isinstance(scheme, PerTensor):
        suffixes += [f"scale={scheme.scale}", f"zero_point={scheme.zero_point}"]
    else:
        suffixes += [f"scale={scheme.scales}", f"zero_point={scheme.zero_points}"]
        suffixes.append(f"axis={scheme.axis}")
    if contents is None:
        values = host_value(decoded(tensor))
        contents = format_values(values, indent) if meta.shape.numel() else "[]"
    return join_suffixes(f"tensor({contents}", suffixes, indent, new_line=False)
