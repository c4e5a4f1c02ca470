"""Modules with the arguments that tests give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.testing import make_tensor

#: The shape of an input, or a function of device, dtype and `requires_grad` that
#: makes it.
Given = tuple[int, ...] | Callable[..., Any]
#: A class, its arguments (or a function of a dtype that makes them), and its inputs.
Row = tuple[Any, Any, dict[str, Any], tuple[Given, ...]]


def _row(cls: Any, *inputs: Given, args: Any = (), **kwargs: Any) -> Row:
    return cls, args, kwargs, inputs


# Inputs that are no numbers of any kind -----------------------------------------------


def _classes(*shape: int, below: int, least: int = 0) -> Given:
    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        given = {"device": device, "dtype": torch.int64}
        return make_tensor(shape, low=least, high=below, **given)

    return made


def _repeated(times: int, given: Any) -> Given:
    """The one row of another input, expanded to several."""

    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        return given(device, dtype, requires_grad).expand(times, -1)

    return made


def _between(low: float, high: float, *shape: int, data: bool = False) -> Given:
    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        given = {"device": device, "dtype": dtype, "low": low, "high": high}
        return make_tensor(shape, requires_grad=requires_grad and not data, **given)

    return made


def _signs(*shape: int) -> Given:
    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        given = {"device": device, "dtype": dtype, "low": -1, "high": 1}
        return make_tensor(shape, **given).sign()

    return made


def _log_shares(*shape: int) -> Given:
    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        x = make_tensor(shape, device=device, dtype=dtype).log_softmax(-1)
        return x.detach().requires_grad_(requires_grad)

    return made


def _lengths(*values: int) -> Given:
    def made(device: Any, dtype: Any, requires_grad: bool) -> Any:
        return torch.tensor(values, device=device)

    return made


def _places(dims: int) -> Callable[[Any], tuple[Any, ...]]:
    """Arguments of fractional pooling in the same places each time."""

    def made(dtype: Any) -> tuple[Any, ...]:
        given = {"dtype": dtype, "device": None}
        return 2, 3, None, False, make_tensor((2, 4, dims), low=0, high=1, **given)

    return made


def _encoder(dtype: Any) -> tuple[Any, ...]:
    return nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2


_ACTIVATIONS = (
    *(nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish),
    *(nn.Hardtanh, nn.Identity, nn.LeakyReLU, nn.LogSigmoid, nn.Mish, nn.PReLU),
    *(nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink),
    *(nn.Softsign, nn.Tanh, nn.Tanhshrink),
)
_ALONG = (nn.LogSoftmax, nn.Softmax, nn.Softmin)
_LOSSES = (nn.HuberLoss, nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.PoissonNLLLoss)
_NORMS = ((nn.BatchNorm1d, 1), (nn.BatchNorm2d, 2), (nn.BatchNorm3d, 3))
_INSTANCES = ((nn.InstanceNorm1d, 1), (nn.InstanceNorm2d, 2), (nn.InstanceNorm3d, 3))
_CONVS = ((nn.Conv1d, 1), (nn.Conv2d, 2), (nn.Conv3d, 3))
_TRANSPOSED = (
    *((nn.ConvTranspose1d, 1), (nn.ConvTranspose2d, 2), (nn.ConvTranspose3d, 3)),
)
_LAZY = (
    *((nn.LazyConv1d, 1), (nn.LazyConv2d, 2), (nn.LazyConv3d, 3)),
    *((nn.LazyConvTranspose1d, 1), (nn.LazyConvTranspose2d, 2)),
    (nn.LazyConvTranspose3d, 3),
)
_POOLS = (
    *((nn.AvgPool1d, 1), (nn.AvgPool2d, 2), (nn.AvgPool3d, 3)),
    *((nn.MaxPool1d, 1), (nn.MaxPool2d, 2), (nn.MaxPool3d, 3)),
)
_ADAPTIVE = (
    *((nn.AdaptiveAvgPool1d, 1), (nn.AdaptiveAvgPool2d, 2), (nn.AdaptiveAvgPool3d, 3)),
    *((nn.AdaptiveMaxPool1d, 1), (nn.AdaptiveMaxPool2d, 2), (nn.AdaptiveMaxPool3d, 3)),
)
_PADS = (
    *((nn.ConstantPad1d, 1), (nn.ConstantPad2d, 2), (nn.ConstantPad3d, 3)),
    *((nn.ReflectionPad1d, 1), (nn.ReflectionPad2d, 2), (nn.ReflectionPad3d, 3)),
    *((nn.ReplicationPad1d, 1), (nn.ReplicationPad2d, 2), (nn.ReplicationPad3d, 3)),
    *((nn.ZeroPad1d, 1), (nn.ZeroPad2d, 2), (nn.ZeroPad3d, 3)),
    *((nn.CircularPad1d, 1), (nn.CircularPad2d, 2), (nn.CircularPad3d, 3)),
)


def _of(dims: int, channels: int = 4, side: int = 5) -> tuple[int, ...]:
    return (2, channels) + (side,) * dims


ROWS: tuple[Row, ...] = (
    *(_row(cls, (3, 4)) for cls in _ACTIVATIONS),
    *(_row(cls, (3, 4), args=(1,)) for cls in _ALONG),
    _row(nn.Softmax2d, _of(2)),
    _row(nn.GLU, (3, 4)),
    _row(nn.Threshold, (3, 4), args=(0.5, 1.0)),
    *(_row(cls, (3, 4), (3, 4)) for cls in _LOSSES),
    _row(nn.CosineEmbeddingLoss, (3, 4), (3, 4), (3,)),
    _row(nn.TripletMarginLoss, (3, 4), (3, 4), (3, 4)),
    _row(nn.BCELoss, _between(0.1, 0.9, 3, 4), _between(0, 1, 3, 4, data=True)),
    _row(nn.BCEWithLogitsLoss, (3, 4), _between(0, 1, 3, 4, data=True)),
    _row(nn.CrossEntropyLoss, (3, 4), _classes(3, below=4)),
    _row(nn.CrossEntropyLoss, (3, 4), _classes(3, below=4), label_smoothing=0.1),
    _row(nn.CrossEntropyLoss, (3, 4), _between(0, 1, 3, 4, data=True)),
    _row(nn.NLLLoss, _log_shares(3, 4), _classes(3, below=4)),
    _row(nn.NLLLoss, _log_shares(3, 4), _classes(3, below=4), reduction="sum"),
    _row(nn.LinearCrossEntropyLoss, (3, 5), _classes(3, below=4), args=(5, 4)),
    _row(
        nn.KLDivLoss,
        *(_log_shares(3, 4), _between(0, 1, 3, 4, data=True)),
        reduction="batchmean",
    ),
    _row(nn.GaussianNLLLoss, (3, 4), (3, 4), _between(0.1, 1, 3, 1)),
    _row(nn.HingeEmbeddingLoss, (3, 4), _signs(3, 4)),
    _row(nn.MarginRankingLoss, (3,), (3,), _signs(3)),
    _row(nn.SoftMarginLoss, (3, 4), _signs(3, 4)),
    _row(nn.MultiLabelMarginLoss, (3, 4), _classes(3, 4, below=4, least=-1)),
    _row(nn.MultiLabelSoftMarginLoss, (3, 4), _between(0, 1, 3, 4, data=True)),
    _row(nn.MultiMarginLoss, (3, 4), _classes(3, below=4)),
    _row(
        nn.CTCLoss,
        *(_log_shares(6, 2, 5), _classes(2, 2, below=5, least=1)),
        *(_lengths(6, 5), _lengths(2, 1)),
    ),
    _row(nn.Embedding, _classes(2, 3, below=4), args=(4, 5)),
    _row(nn.Embedding, _repeated(3, _classes(1, 8, below=4)), args=(4, 5)),
    _row(nn.Linear, (3, 4), args=(4, 5)),
    _row(nn.Linear, (3, 4), args=(4, 5), bias=False),
    _row(nn.LazyLinear, (3, 4), args=(5,)),
    _row(nn.Bilinear, (3, 4), (3, 5), args=(4, 5, 6)),
    _row(nn.Flatten, (2, 3, 4)),
    _row(nn.CosineSimilarity, (3, 4), (3, 4)),
    _row(nn.PairwiseDistance, (3, 4), (3, 4)),
    *(_row(cls, _of(n), args=(4,)) for cls, n in _NORMS),
    *(_row(cls, _of(n), args=(4,)) for cls, n in _INSTANCES),
    _row(nn.LayerNorm, (3, 4), args=(4,)),
    _row(nn.RMSNorm, (3, 4), args=(4,)),
    _row(nn.GroupNorm, _of(2), args=(2, 4)),
    _row(nn.LocalResponseNorm, _of(2), args=(2,)),
    *(_row(cls, _of(n), args=(4, 6, 3)) for cls, n in _CONVS),
    *(_row(cls, _of(n), args=(4, 6, 3), padding=1, groups=2) for cls, n in _CONVS),
    *(_row(cls, _of(n), args=(4, 6, 3), stride=2) for cls, n in _TRANSPOSED),
    *(_row(cls, _of(n), args=(6, 3)) for cls, n in _LAZY),
    *(_row(cls, _of(n), args=(2,)) for cls, n in _POOLS),
    *(_row(cls, _of(n), args=(3,)) for cls, n in _ADAPTIVE),
    _row(nn.LPPool1d, _of(1), args=(2, 2)),
    _row(nn.LPPool2d, _of(2), args=(2, 2)),
    _row(nn.LPPool3d, _of(3), args=(2, 2)),
    _row(nn.FractionalMaxPool2d, _of(2), args=_places(2)),
    _row(nn.FractionalMaxPool3d, _of(3), args=_places(3)),
    *(
        _row(cls, _of(n), args=(1, 0.5) if "Constant" in cls.__name__ else (1,))
        for cls, n in _PADS
    ),
    _row(nn.PixelShuffle, _of(2), args=(2,)),
    _row(nn.PixelUnshuffle, _of(2, side=4), args=(2,)),
    _row(nn.Upsample, _of(2), scale_factor=2),
    _row(nn.Unfold, _of(2), args=(2,)),
    _row(nn.RNN, (3, 2, 4), args=(4, 5)),
    _row(nn.LSTM, (3, 2, 4), args=(4, 5)),
    _row(nn.GRU, (3, 2, 4), args=(4, 5)),
    _row(nn.RNNCell, (2, 4), args=(4, 5)),
    _row(nn.LSTMCell, (2, 4), args=(4, 5)),
    _row(nn.GRUCell, (2, 4), args=(4, 5)),
    _row(nn.MultiheadAttention, (3, 2, 4), (3, 2, 4), (3, 2, 4), args=(4, 2)),
    _row(nn.TransformerEncoderLayer, (3, 2, 4), args=(4, 2, 8, 0.0)),
    _row(nn.TransformerEncoder, (3, 2, 4), args=_encoder),
    _row(
        nn.Transformer,
        *((3, 2, 4), (3, 2, 4)),
        args=(4, 2, 1, 1, 8, 0.0),
        batch_first=True,
    ),
    _row(nn.TransformerDecoderLayer, (3, 2, 4), (3, 2, 4), args=(4, 2, 8, 0.0)),
)
