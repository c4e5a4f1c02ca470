"""Modules with the arguments that tests give them."""

from __future__ import annotations

from typing import Any

from torchshim import nn

#: A class, its arguments, and the shapes of its inputs.
Row = tuple[Any, tuple[Any, ...], dict[str, Any], tuple[tuple[int, ...], ...]]


def _row(cls: Any, *shapes: tuple[int, ...], args: Any = (), **kwargs: Any) -> Row:
    return cls, args, kwargs, shapes


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
_LAZY = ((nn.LazyConv1d, 1), (nn.LazyConv2d, 2), (nn.LazyConv3d, 3))
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
    _row(nn.TransformerDecoderLayer, (3, 2, 4), (3, 2, 4), args=(4, 2, 8, 0.0)),
)
