"""Convolutions of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn.intrinsic import qat as nniqat
from torchshim.ao.nn.quantized.modules.utils import (
    WeightedQuantizedModule,
    _quantize_weight,
    put_scheme,
    take_scheme,
)
from torchshim.nn import functional as F
from torchshim.nn.modules.utils import _ntuple
from torchshim.nn.utils import fuse_conv_bn_weights
from torchshim.ops import quantized as ops

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_SUPPORTED_PADDING = {"zeros", "reflect"}
_PLACES = {1: "L", 2: "H, W", 3: "D, H, W"}
# What a pickle has of such a layer, before weight, bias and the rest.
_FACTS = (
    *("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation"),
    *("transposed", "output_padding", "groups", "padding_mode"),
)


def _reverse_repeat_padding(padding: Sequence[int]) -> list[int]:
    """The padding in the form that `F.pad` takes."""
    return [each for each in reversed(padding) for _ in range(2)]


class _ConvNd(WeightedQuantizedModule):
    """What the convolutions share."""

    # Dimensions of images, and the operator.
    _dims: int
    _operator: str
    # Where errors of the shape of inputs call the dimensions otherwise.
    _places: str = ""

    _FLOAT_MODULE: Any
    _NNIQAT_CONV_BN_MODULE: Any = None
    _NNI_CONV_RELU_MODULE: Any = None
    _NNI_CONV_ADD_MODULE: Any = None
    _NNI_CONV_ADD_RELU_MODULE: Any = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = _ntuple(self._dims)
        space = sizes(kernel_size), sizes(stride)
        padding = padding if isinstance(padding, str) else sizes(padding)
        rest = False, sizes(0), groups, bias, padding_mode, device
        self._init(in_channels, out_channels, *space, padding, sizes(dilation), *rest)

    def _init(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        nn.Module.__init__(self)
        if out_channels <= 0:
            raise ValueError(f"out_channels must be greater than 0, got {out_channels}")
        for name, number in (("in", in_channels), ("out", out_channels)):
            if number % groups != 0:
                raise ValueError(f"{name}_channels must be divisible by groups")
        if padding_mode not in _SUPPORTED_PADDING:
            raise ValueError(
                f"'padding_mode' {padding_mode} is not supported by quantized "
                "convolution"
            )
        facts = in_channels, out_channels, kernel_size, stride, padding, dilation
        facts = *facts, transposed, output_padding, groups, padding_mode
        for name, value in zip(_FACTS, facts, strict=True):
            setattr(self, name, value)
        outer, inner = out_channels, in_channels
        if transposed:
            outer, inner = inner, outer
        weight = torchshim._empty_affine_quantized(
            [outer, inner // groups, *kernel_size],
            scale=1,
            zero_point=0,
            dtype=torchshim.qint8,
            device=device,
        )
        zeros = None
        if bias:
            zeros = torchshim.zeros(out_channels, dtype=torchshim.float, device=device)
        self.set_weight_bias(weight, zeros)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    # The weight -----------------------------------------------------------------------

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Takes another weight and bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        parts = self.stride, padding, self.dilation, self.groups
        pack = getattr(ops, f"conv{self._dims}d_prepack")
        self._packed_params = pack(w, b, *parts)

    def _weight_bias(self) -> tuple[Any, Any]:
        return getattr(ops, f"conv{self._dims}d_unpack")(self._packed_params)

    def weight(self) -> Any:
        """The weight."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """The bias."""
        return self._weight_bias()[1]

    # Running --------------------------------------------------------------------------

    def _padded(self, input: Any) -> Any:
        if input.dim() != self._dims + 2:
            places = self._places or _PLACES[self._dims]
            raise ValueError(f"Input shape must be `(N, C, {places})`!")
        if self.padding_mode == "zeros":
            return input
        pads = _reverse_repeat_padding(self.padding)
        return F.pad(input, pads, mode=self.padding_mode)

    def forward(self, input: Any) -> Any:
        run = getattr(ops, self._operator)
        scheme = self.scale, self.zero_point
        return run(self._padded(input), self._packed_params, *scheme)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        ]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(value):
                parts.append(f"{name}={value}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias() is None:
            parts.append("bias=False")
        return ", ".join(parts)

    # States ---------------------------------------------------------------------------

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        weight, bias = self._weight_bias()
        destination[prefix + "weight"] = weight
        destination[prefix + "bias"] = bias
        put_scheme(self, destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        parts = [state_dict[prefix + name] for name in ("weight", "bias")]
        self.set_weight_bias(*parts)
        for name in ("weight", "bias"):
            state_dict.pop(prefix + name)
        take_scheme(self, state_dict, prefix)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def __getstate__(self) -> Any:
        facts = (getattr(self, name) for name in _FACTS)
        rest = self.scale, self.zero_point, self.training
        return *facts, *self._weight_bias(), *rest

    def __setstate__(self, state: Any) -> None:
        *facts, weight, bias, scale, zero_point, training = state
        for name, value in zip(_FACTS, facts, strict=True):
            setattr(self, name, value)
        self.set_weight_bias(weight, bias)
        self.scale, self.zero_point, self.training = scale, zero_point, training

    def __deepcopy__(self, memo: Any) -> Any:
        made = type(self).__new__(type(self))
        nn.Module.__init__(made)
        made.__setstate__(self.__getstate__())
        return made

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    # Out of other layers --------------------------------------------------------------

    @classmethod
    def _like(cls, mod: Any, **options: Any) -> Any:
        """A layer with the arguments of another."""
        sizes = mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride
        rest = mod.padding, mod.dilation, mod.groups, mod.bias is not None
        return cls(*sizes, *rest, mod.padding_mode, **options)

    @classmethod
    def get_qconv(
        cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None
    ) -> Any:
        """The layer with the parameters of one of floating point, by its observers."""
        observer = weight_post_process
        if observer is None:
            observer = mod.qconfig.weight()
        observer(mod.weight)
        if observer.dtype != torchshim.qint8:
            raise AssertionError(
                f"Weight observer must have a dtype of qint8, got {observer.dtype}"
            )
        weight = _quantize_weight(mod.weight.float(), observer)
        made = cls._like(mod)
        made.set_weight_bias(weight, mod.bias)
        activation = activation_post_process
        if activation is not None and activation.dtype != torchshim.float:
            scale, zero_point = activation.calculate_qparams()
            made.scale, made.zero_point = float(scale), int(zero_point)
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed, or trained so."""
        if hasattr(mod, "weight_fake_quant"):
            if type(mod) is cls._NNIQAT_CONV_BN_MODULE:
                fold_norm(mod)
            if not hasattr(mod, "activation_post_process"):
                raise AssertionError("Input QAT module must have observer attached")
            return cls.get_qconv(
                mod, mod.activation_post_process, mod.weight_fake_quant
            )
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__} but got: {type(mod).__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        activation = getattr(mod, "activation_post_process", None)
        fused = cls._NNI_CONV_RELU_MODULE, cls._NNI_CONV_ADD_MODULE
        if type(mod) in (*fused, cls._NNI_CONV_ADD_RELU_MODULE):
            mod = mod[0]
        return cls.get_qconv(mod, activation, mod.qconfig.weight())

    @classmethod
    def from_reference(
        cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any
    ) -> Any:
        """The layer that computes with integers what a reference layer means."""
        made = cls._like(ref_qconv, device=ref_qconv.weight.device)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def fold_norm(mod: Any) -> None:
    """Puts the batch normalization of a layer into its weight and bias."""
    mod.weight, mod.bias = fuse_conv_bn_weights(
        mod.weight, mod.bias, *mod._statistics()
    )


class Conv1d(_ConvNd):
    """A convolution over quantized sequences. Follows ``torch.ao.nn.quantized.Conv1d``.

    >>> import torchshim as torch
    >>> m = Conv1d(16, 33, 3, stride=2)
    >>> x = torch.quantize_per_tensor(torch.randn(20, 16, 50), 1.0, 0, torch.quint8)
    >>> m(x).shape
    torch.Size([20, 33, 24])
    """

    _dims = 1
    _operator = "conv1d"
    _FLOAT_MODULE: Any = nn.Conv1d
    _NNIQAT_CONV_BN_MODULE: Any = nniqat.ConvBn1d
    _NNI_CONV_RELU_MODULE: Any = nni.ConvReLU1d


class Conv2d(_ConvNd):
    """A convolution over quantized images. Follows ``torch.ao.nn.quantized.Conv2d``.

    >>> Conv2d(3, 8, 3, padding=1)
    QuantizedConv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), scale=1.0, zero_point=0, padding=(1, 1))
    """  # noqa: E501

    _dims = 2
    _operator = "conv2d"
    _FLOAT_MODULE: Any = nn.Conv2d
    _NNIQAT_CONV_BN_MODULE: Any = nniqat.ConvBn2d
    _NNI_CONV_RELU_MODULE: Any = nni.ConvReLU2d
    _NNI_CONV_ADD_MODULE: Any = nni.ConvAdd2d
    _NNI_CONV_ADD_RELU_MODULE: Any = nni.ConvAddReLU2d


class Conv3d(_ConvNd):
    """A convolution over quantized volumes, padded with zeros alone."""

    _dims = 3
    _operator = "conv3d"
    _FLOAT_MODULE: Any = nn.Conv3d
    _NNIQAT_CONV_BN_MODULE: Any = nniqat.ConvBn3d
    _NNI_CONV_RELU_MODULE: Any = nni.ConvReLU3d

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "reflect" in (*args[8:9], kwargs.get("padding_mode")):
            raise AssertionError("Conv3d does not support reflection padding")
        super().__init__(*args, **kwargs)


class _ConvTransposeNd(_ConvNd):
    """What the transposed convolutions share."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        sizes = _ntuple(self._dims)
        space = sizes(kernel_size), sizes(stride), sizes(padding), sizes(dilation)
        rest = True, sizes(output_padding), groups, bias, padding_mode, device
        self._init(in_channels, out_channels, *space, *rest)

    def set_weight_bias(self, w: Any, b: Any) -> None:
        """Takes another weight and bias."""
        space = self.stride, self.padding, self.output_padding, self.dilation
        pack = getattr(ops, f"{self._operator}_prepack")
        self._packed_params = pack(w, b, *space, self.groups)

    def _input_padding(
        self, kernel_size: Any, dilation: Any, padding: Any
    ) -> list[int]:
        sizes = zip(kernel_size, dilation, padding, strict=False)
        return [d * (k - 1) - p for k, d, p in sizes]

    @classmethod
    def _like(cls, mod: Any, **options: Any) -> Any:
        sizes = mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride
        rest = mod.padding, mod.output_padding, mod.groups, mod.bias is not None
        return cls(*sizes, *rest, mod.dilation, mod.padding_mode, **options)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point that was observed."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" nnq.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        return cls.get_qconv(mod, getattr(mod, "activation_post_process", None))


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over quantized sequences."""

    _dims = 1
    _operator = "conv_transpose1d"
    _FLOAT_MODULE: Any = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over quantized images."""

    _dims = 2
    _operator = "conv_transpose2d"
    _FLOAT_MODULE: Any = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over quantized volumes."""

    _dims = 3
    _operator = "conv_transpose3d"
    _places = "T, H, W"
    _FLOAT_MODULE: Any = nn.ConvTranspose3d
