"""Operands of other dtypes, of few dimensions or without elements, given to layers."""

from __future__ import annotations

import itertools
from typing import Any

from tests.oracle import attempt, case, evaluate


def _shown(torch: Any, line: str) -> Any:
    names = {"ones": torch.ones, "T": torch.tensor}
    dtypes = {"c64": torch.complex64, "f64": torch.float64, "i64": torch.int64}
    return evaluate(torch, line, **names, **dtypes)


@case.lines("""
F.conv2d(ones(1,3,4,4), ones(2,3,3,3,dtype=f64))
F.conv2d(ones(1,3,4,4), ones(2,2,3,3,dtype=f64))
F.conv2d(ones(1,3,4,4), ones(2,2,3,3), ones(2,dtype=f64))
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(3,dtype=f64))
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(3))
F.conv2d(ones(1,3,4,4,dtype=torch.bool), ones(2,3,3,3,dtype=torch.bool))
F.conv2d(ones(1,3,4,4,dtype=torch.bool), ones(2,2,3,3,dtype=torch.bool))
F.conv2d(ones(1,3,4,4), ones(2,3,3,3,dtype=torch.bool))
F.conv2d(ones(1,3,4,4), ones(2,2,3,3,dtype=torch.bool))
F.conv2d(ones(1,3,4,4), ones(2,3,5,5,dtype=torch.bool))
F.conv2d(ones(1,3,4,4), ones(2,3,5,5,dtype=i64))
F.conv2d(ones(1,3,4,4), ones(2,3,5,5), ones(2,dtype=i64))
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(2,dtype=i64), stride=0)
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(2,dtype=i64), padding=-1)
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(2,dtype=i64), groups=0)
F.conv2d(ones(1,3,4,4), ones(2,3,3,3), ones(2,dtype=i64), groups=2)
F.conv2d(ones(3,4), ones(2,3,3,3,dtype=f64))
F.conv2d(ones(3,4), ones(2,3,3,3), ones(2,dtype=f64))
F.conv1d(ones(1,3,4), ones(2,3,3,dtype=f64))
F.conv1d(ones(1,3,4), ones(2,2,3), ones(2,dtype=f64))
F.conv1d(ones(1,3,4,dtype=c64), ones(2,2,3))
F.conv1d(ones(1,3,4,dtype=c64), ones(2,3,3))
F.conv1d(ones(1,3,4), ones(2,3,3,dtype=c64))
F.conv3d(ones(1,3,4,4,4), ones(2,3,3,3,3,dtype=f64))
F.conv3d(ones(1,3,4,4,4), ones(2,2,3,3,3), ones(2,dtype=f64))
F.conv_transpose2d(ones(1,3,4,4), ones(3,2,3,3,dtype=f64))
F.conv_transpose2d(ones(1,3,4,4), ones(2,2,3,3,dtype=f64))
F.conv_transpose2d(ones(1,3,4,4), ones(3,2,3,3), ones(2,dtype=f64))
F.conv_transpose2d(ones(1,3,4,4), ones(2,2,3,3), ones(2,dtype=f64))
F.conv_transpose1d(ones(1,3,4), ones(2,2,3), ones(2,dtype=f64))
nn.Conv2d(3,2,3)(ones(1,3,5,5,dtype=f64))
nn.Conv2d(3,2,3)(ones(1,4,5,5,dtype=f64))
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2), T([1.,2.],dtype=f64))
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2), T([1,2]))
F.conv_transpose2d(ones(1,1,2,2).double(), ones(1,2,2,2).double(), T([1.5,2]))
F.conv_transpose2d(ones(1,1,2,2).double(), ones(1,2,2,2).double(), T([1.5,2]).half())
F.conv_transpose2d(ones(1,1,2,2).half(), ones(1,2,2,2).half(), T([1.5,2]))
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2), T([1.5,2]).bfloat16())
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2), T([1.5,2]).to(c64))
F.conv_transpose2d(ones(1,1,2,2).to(c64), ones(1,2,2,2).to(c64), T([1.5,2]))
F.conv_transpose2d(ones(1,1,2,2).long(), ones(1,2,2,2).long(), T([1.5,2]))
F.conv_transpose2d(ones(1,2,2,2), ones(2,1,2,2), T([1.,2.],dtype=f64),groups=2)
F.conv_transpose1d(ones(1,1,2), ones(1,2,2), T([1.,2.],dtype=f64))
F.conv_transpose1d(ones(1,1,2), ones(1,2,2), T([1,2]))
F.conv_transpose3d(ones(1,1,2,2,2), ones(1,1,2,2,2), T([1.],dtype=f64))
F.conv_transpose3d(ones(1,1,2,2,2), ones(1,1,2,2,2), T([1]))
F.conv_transpose2d(ones(2,1,2,2), ones(1,2,2,2), T([1.,2.],dtype=f64))
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2), T([1.,2.],dtype=f64), 2, dilation=2)
F.conv_transpose2d(ones(1,1,2,2), ones(1,2,2,2).double(), T([1.,2.]))
F.conv1d(ones(3,4),ones(2,3,3),ones(2).half(),padding='same')
F.conv1d(ones(3,4),ones(2,3,3),ones(2).half(),padding='other')
F.conv1d(ones(3,4),ones(2,3,3,3),ones(2).half())
F.conv1d(ones(3,4,5,5),ones(2,3,3),ones(2).half())
F.conv1d(ones(3,4),ones(2,3,3),ones(2).half(),stride=(1,2))
F.conv2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3), ones(2,dtype=c64))
F.conv2d(ones(3,4,dtype=c64), ones(2,2,3,3))
F.conv2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3,dtype=c64), stride=0)
F.conv2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3), stride=0)
F.conv2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3), padding='x')
F.conv2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3), padding='same')
F.conv_transpose2d(ones(1,3,4,4,dtype=c64), ones(2,2,3,3))
F.conv_transpose2d(ones(1,2,4,4,dtype=c64), ones(2,2,3,3))
F.conv_transpose2d(ones(1,2,4,4,dtype=c64), ones(2,2,3,3,dtype=c64),ones(2))
F.conv2d(ones(1,3,4,4), ones(2,3,3,3,dtype=c64))
F.conv2d(ones(1,3,4,4), ones(2,2,3,3,dtype=c64))
F.conv1d(ones(3,4),ones(2,3,3),ones(2).double(),padding='same')
F.conv1d(ones(3,4),ones(2,3,3),ones(2).long(),padding='valid')
F.conv2d(ones(1,3,4,4),ones(2,3,3,3),ones(2).double(),padding='same')
F.conv2d(ones(2,3,4,4),ones(2,3,3,3),ones(2).double(),padding='same')
F.conv2d(ones(1,3,4,4).to(c64),ones(2,3,3,3).to(c64),ones(2),padding='same')
F.conv2d(ones(1,3,4,4).long(),ones(2,3,3,3).long(),ones(2),padding='same')
F.conv3d(ones(1,3,4,4,4),ones(2,3,3,3,3),ones(2).double(),padding='same')
F.conv2d(ones(1,3,4,4,dtype=f64),ones(2,3,3,3,dtype=f64),ones(2),1,'same',2)
""")
def convolutions(torch, line):
    return _shown(torch, line)


@case(compiled=False).lines("""
nn.Conv2d(3,2,3)(ones(1,3,5,5,dtype=i64))
nn.Conv2d(3,2,3)(ones(1,3,5,5,dtype=torch.uint8))
nn.Conv2d(3,2,3)(ones(5,5,dtype=torch.uint8))
nn.Conv2d(3,2,3)(ones(5,5))
nn.Conv2d(3,2,3,padding_mode='reflect',padding=9)(ones(1,3,5,5))
nn.Conv2d(3,2,3).half()(ones(1,3,5,5))
nn.Conv2d(3,2,3)(ones(1,3,5,5).half())
nn.Conv1d(3,2,3)(ones(1,3,5).double())
nn.Conv3d(3,2,3)(ones(1,3,5,5,5).double())
nn.ConvTranspose2d(3,2,3)(ones(1,3,5,5).double())
nn.ConvTranspose2d(3,2,3,bias=False)(ones(1,3,5,5).double())
nn.Linear(3,2)(ones(4,3).double())
nn.Linear(3,2)(ones(4,4).double())
nn.Linear(3,2)(ones(4,3).long())
nn.LayerNorm(3)(ones(2,3).double())
nn.LayerNorm(3)(ones(2,4).double())
nn.LayerNorm(3)(ones(2,4))
nn.GroupNorm(2,4)(ones(2,4,3).double())
nn.GroupNorm(2,4)(ones(2,3,3).double())
nn.BatchNorm2d(3)(ones(2,3,4,4).double())
nn.BatchNorm2d(3)(ones(2,4,4,4).double())
nn.BatchNorm1d(3)(ones(2,4).double())
nn.InstanceNorm2d(3,affine=True)(ones(2,3,4,4).double())
nn.RMSNorm(3)(ones(2,4).double())
nn.Embedding(3,4)(ones(2))
nn.Embedding(3,4)(T([3]))
nn.AvgPool2d(2)(T(1.))
nn.AvgPool2d(2)(ones(2,2))
nn.MaxPool2d(2)(T(1.))
nn.AvgPool1d(2)(T(1.))
nn.Unfold(2)(T(1.))
nn.Unfold(2)(ones(2,2))
nn.Fold(4,2)(T(1.))
nn.AlphaDropout()(ones(3,dtype=torch.bool))
nn.Dropout()(ones(3,dtype=torch.bool))
nn.Dropout()(ones(3,dtype=i64))
nn.Dropout2d()(ones(3,dtype=torch.bool))
nn.FeatureAlphaDropout()(ones(3,3,dtype=torch.bool))
nn.EmbeddingBag(3,4)(ones(2,2,dtype=c64))
nn.EmbeddingBag(3,4)(ones(2,2,dtype=torch.bool))
nn.EmbeddingBag(3,4)(ones(2,2))
nn.EmbeddingBag(3,4)(ones(2,dtype=torch.bool),T([0]))
nn.GRU(3,4)(ones(2,3).double())
nn.LSTM(3,4)(ones(2,5,2))
nn.LSTMCell(3,4)(ones(2,3).double())
nn.GRUCell(3,4)(ones(2,2))
nn.RNNCell(3,4)(ones(2,3),ones(3,4))
nn.Bilinear(2,3,4)(ones(2,2),ones(2,3).double())
nn.Bilinear(2,3,4)(ones(2,2),ones(3,3))
nn.PReLU(2)(ones(3,3))
nn.PReLU(2)(ones(3,2).double())
nn.CosineSimilarity()(ones(3,2),ones(3,3))
nn.PixelShuffle(2)(ones(3,2,2))
nn.Upsample(scale_factor=2)(ones(3))
nn.Upsample(scale_factor=2,mode='bilinear')(ones(1,2,3))
nn.ReflectionPad2d(2)(ones(1,2,2))
nn.ZeroPad2d(-3)(ones(1,2,2))
nn.Transformer(4,2,1,1,8)(ones(3,2,4),ones(3,3,4))
nn.AvgPool2d(2)(T(1.))
nn.AvgPool3d(2)(T(1.))
nn.AvgPool1d(2)(T(1.))
nn.MaxPool1d(2)(T(1.))
nn.MaxPool2d(2)(T(1.))
nn.MaxPool3d(2)(T(1.))
nn.LPPool2d(2,2)(T(1.))
nn.LPPool1d(2,2)(T(1.))
nn.LPPool3d(2,2)(T(1.))
nn.AdaptiveAvgPool2d(2)(T(1.))
nn.AdaptiveAvgPool1d(2)(T(1.))
nn.AdaptiveMaxPool1d(2)(T(1.))
nn.AdaptiveMaxPool2d(2)(T(1.))
nn.FractionalMaxPool2d(2,2)(T(1.))
nn.AvgPool2d(2)(ones(3))
nn.AvgPool3d(2)(ones(3))
nn.AvgPool3d(2)(ones(3,3))
nn.MaxPool2d(2)(ones(3))
nn.MaxPool3d(2)(ones(3))
nn.Unfold(2)(T(1.))
nn.Unfold(2)(ones(3))
nn.Unfold(2)(ones(3,3))
nn.Unfold(2)(ones(3,3,3))
nn.Fold(4,2)(ones(3))
nn.Fold(4,2)(ones(3,3))
nn.ReflectionPad1d(1)(T(1.))
nn.ReplicationPad2d(1)(T(1.))
nn.CircularPad1d(1)(T(1.))
nn.ConstantPad1d(1,1)(T(1.))
nn.Upsample(2)(T(1.))
nn.PixelShuffle(2)(T(1.))
nn.PixelUnshuffle(2)(T(1.))
nn.ChannelShuffle(2)(T(1.))
nn.Softmax(0)(T(1.))
nn.LogSoftmax(1)(T(1.))
nn.Softmin(1)(T(1.))
nn.GLU()(T(1.))
nn.Softmax2d()(T(1.))
nn.Linear(1,2)(T(1.))
nn.LayerNorm(1)(T(1.))
nn.GroupNorm(1,1)(T(1.))
nn.BatchNorm1d(1)(T(1.))
nn.BatchNorm2d(1)(T(1.))
nn.InstanceNorm1d(1)(T(1.))
nn.LocalResponseNorm(1)(T(1.))
nn.RMSNorm(1)(T(1.))
nn.Dropout1d()(T(1.))
nn.Dropout2d()(T(1.))
nn.Dropout3d()(T(1.))
nn.AlphaDropout()(T(1.))
nn.FeatureAlphaDropout()(T(1.))
nn.Embedding(3,2)(T(1))
nn.EmbeddingBag(3,2)(T(1))
nn.EmbeddingBag(3,2)(ones(2,dtype=torch.bool),T([0]))
nn.EmbeddingBag(3,2)(ones(2,2,dtype=torch.uint8))
nn.EmbeddingBag(3,2)(ones(2,2).half())
nn.EmbeddingBag(3,2)(ones(2).half(),T([0]))
nn.EmbeddingBag(3,2)(ones(2,dtype=torch.uint8),T([0]))
nn.EmbeddingBag(3,2)(ones(2,dtype=torch.long),T([0.]))
nn.EmbeddingBag(3,2)(ones(2,dtype=torch.long),T([0],dtype=torch.int32))
nn.EmbeddingBag(3,2)(ones(2,2,dtype=c64))
F.embedding_bag(ones(2,2,dtype=torch.bool),ones(3,2))
nn.CosineSimilarity()(T(1.),T(1.))
nn.PairwiseDistance()(T(1.),T(1.))
nn.Flatten()(T(1.))
nn.Flatten(0)(T(1.))
nn.PReLU()(T(1.))
nn.GRU(1,1)(T(1.))
nn.LSTMCell(1,1)(T(1.))
nn.Bilinear(1,1,1)(T(1.),T(1.))
nn.CrossEntropyLoss()(T(1.),T(0))
nn.NLLLoss()(T(1.),T(0))
nn.MultiMarginLoss()(T(1.),T(0))
nn.MultiLabelMarginLoss()(T(1.),T(0))
nn.TripletMarginLoss()(*[T(1.)]*3)
nn.CTCLoss()(T(1.),T(0),T(1),T(1))
nn.GaussianNLLLoss()(T(1.),T(1.),T(1.))
nn.CosineEmbeddingLoss()(T(1.),T(1.),T(1.))
nn.MarginRankingLoss()(T(1.),T(1.),T(1.))
nn.MultiLabelSoftMarginLoss()(T(1.),T(1.))
""")
def layers(torch, line):
    return _shown(torch, line)


@case
def gradients_of_biases_of_another_dtype(torch):
    f = torch.nn.functional
    x = torch.ones(1, 1, 2, 2, requires_grad=True)
    weight = torch.ones(1, 2, 2, 2, requires_grad=True)
    bias = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    f.conv_transpose2d(x, weight, bias).pow(2).sum().backward()
    yield x.grad, weight.grad, bias.grad
    x = torch.ones(1, 3, 4, 4, requires_grad=True)
    weight = torch.ones(2, 3, 3, 3, requires_grad=True)
    bias.grad = None
    f.conv2d(x, weight, bias, padding="same").pow(2).sum().backward()
    yield x.grad, weight.grad, bias.grad


@case
def rms_norm_warns_once_of_other_weights(torch):
    for dtype in torch.float64, torch.complex64, torch.float16:
        x = torch.ones(2, 3, dtype=dtype)
        yield torch.nn.functional.rms_norm(x, (3,), torch.ones(3))


@case
def normalizations_of_few_dimensions(torch):
    f, ones = torch.nn.functional, torch.ones
    for shape in (0,), (3,), (1,), (), (0, 3), (2, 0), (3, 2):
        for channels in {(*shape, 1)[0], (*shape, 1, 1)[1]}:
            for has_statistics, affine, training in itertools.product(
                [False, True], repeat=3
            ):
                for norm in f.batch_norm, f.instance_norm:
                    statistics, scales = (
                        (ones(channels), ones(channels)) if given else (None, None)
                        for given in (has_statistics, affine)
                    )
                    yield attempt(norm, ones(shape), *statistics, *scales, training)
                    yield statistics


@case
def similarities_of_few_dimensions(torch):
    for shape in (), (3,), (0,), (2, 3):
        for other in (), (3,), (1,), (2, 3), (2, 1):
            for dim in 0, 1, -1, -2:
                x = torch.ones(shape, requires_grad=True)
                y = attempt(
                    torch.nn.functional.cosine_similarity, x, torch.ones(other), dim
                )
                yield y
                if isinstance(y, torch.Tensor):
                    yield torch.autograd.grad(y.sum(), x)


@case.over(dilation=[1, 2], transposed=[False, True])
def empty_kernels(torch, dilation, transposed):
    F = torch.nn.functional
    for kernel in (0,), (0, 3), (1, 0), (0, 0), (1, 0, 1), (2, 2, 0):
        n = len(kernel)
        call = getattr(F, f"conv_transpose{n}d" if transposed else f"conv{n}d")
        x, w = torch.zeros(1, 1, *[4] * n), torch.zeros(1, 1, *kernel)
        yield attempt(call, x, w, dilation=dilation)
        yield attempt(call, x, w, dilation=dilation, stride=2, padding=1)
