"""Every layer: its text, its parameters, what it computes and what it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.oracle import attempt, case, evaluate


def numbers(torch: Any, *shape: int) -> Any:
    """Fixed numbers between -2 and 2, none twice in a row."""
    count = 1
    for size in shape:
        count *= size
    values = [((i * 37) % 101 - 50) / 25 for i in range(count)]
    return torch.tensor(values).reshape(shape)


def scope(torch: Any) -> dict[str, Any]:
    return {"x": lambda *shape: numbers(torch, *shape), "long": torch.long}


# A layer, and its input.
LAYERS = """
    nn.Identity(3, a=4); x(2, 3)
    nn.Linear(3, 4); x(2, 3)
    nn.Linear(3, 4, bias=False); x(3)
    nn.Bilinear(2, 3, 2); x(2, 2), x(2, 3)
    nn.Conv1d(2, 4, 3, padding=1, groups=2); x(1, 2, 5)
    nn.Conv2d(2, 3, (2, 3), stride=(1, 2), padding="valid", bias=False); x(1, 2, 5, 5)
    nn.Conv2d(2, 3, 3, padding="same", dilation=2); x(2, 5, 5)
    nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"); x(1, 2, 5, 5)
    nn.Conv2d(2, 2, 2, padding=(0, 1), padding_mode="circular"); x(1, 2, 3, 3)
    nn.Conv3d(1, 2, 2); x(1, 1, 3, 3, 3)
    nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1); x(1, 2, 4)
    nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1, groups=2); x(1, 2, 3, 3)
    nn.ConvTranspose2d(1, 1, 3, stride=2); x(1, 1, 2, 2), [6, 5]
    nn.ConvTranspose3d(1, 1, 2, bias=False); x(1, 1, 2, 2, 2)
    nn.BatchNorm1d(3); x(4, 3)
    nn.BatchNorm1d(3, momentum=None, affine=False); x(2, 3, 4)
    nn.BatchNorm1d(3, track_running_stats=False, bias=False); x(2, 3, 4)
    nn.BatchNorm2d(2, eps=0.1, momentum=0.5); x(2, 2, 2, 2)
    nn.BatchNorm3d(2); x(2, 2, 1, 2, 2)
    nn.SyncBatchNorm(3); x(4, 3)
    nn.InstanceNorm1d(2); x(2, 2, 4)
    nn.InstanceNorm1d(2, affine=True, track_running_stats=True); x(2, 2, 4)
    nn.InstanceNorm2d(2, affine=True); x(2, 3, 3)
    nn.InstanceNorm3d(1); x(1, 1, 2, 2, 2)
    nn.LayerNorm(4); x(2, 4)
    nn.LayerNorm((2, 4), eps=0.1, bias=False); x(2, 2, 4)
    nn.LayerNorm([4], elementwise_affine=False); x(2, 4)
    nn.GroupNorm(2, 4); x(1, 4, 3)
    nn.GroupNorm(1, 4, affine=False); x(2, 4)
    nn.RMSNorm(4); x(2, 4)
    nn.RMSNorm((2, 2), eps=0.1, elementwise_affine=False); x(1, 2, 2)
    nn.LocalResponseNorm(3, alpha=0.1); x(1, 4, 2, 2)
    nn.CrossMapLRN2d(3, alpha=0.1); x(1, 4, 2, 2)
    nn.CrossMapLRN2d(2, alpha=0.1); x(1, 4, 2, 2)
    nn.Embedding(5, 3); torch.tensor([[0, 4], [2, 2]])
    nn.Embedding(5, 3, padding_idx=-1, max_norm=1.0); torch.tensor([0, 4])
    nn.Embedding(5, 3, norm_type=1, scale_grad_by_freq=True); torch.tensor([0, 0])
    nn.Embedding.from_pretrained(x(3, 2), padding_idx=0); torch.tensor([0, 1])
    nn.EmbeddingBag(5, 3); torch.tensor([0, 1, 4]), torch.tensor([0, 2])
    nn.EmbeddingBag(5, 3, mode="sum", padding_idx=1); torch.tensor([[0, 1], [1, 4]])
    nn.EmbeddingBag(5, 3, mode="max", include_last_offset=False); torch.tensor([[1, 4]])
    nn.RNNCell(3, 4); x(2, 3)
    nn.RNNCell(3, 4, False, "relu"); x(3), x(4)
    nn.LSTMCell(3, 2); x(2, 3)
    nn.LSTMCell(3, 2, bias=False); x(3), (x(2), x(2) / 2)
    nn.GRUCell(3, 2); x(2, 3), x(2, 2)
    nn.GRUCell(3, 2, dtype=torch.float64); x(3).double()
    nn.Dropout(); x(3, 4)
    nn.Dropout(0.2, inplace=True); x(3)
    nn.Dropout1d(0.5); x(2, 3, 2)
    nn.Dropout2d(0.5); x(2, 3, 2, 2)
    nn.Dropout3d(0.5); x(1, 3, 1, 2, 2)
    nn.AlphaDropout(0.5); x(3, 4)
    nn.FeatureAlphaDropout(0.5); x(2, 3, 2)
    nn.Threshold(0.1, 20); x(5)
    nn.ReLU(inplace=True); x(5)
    nn.RReLU(); x(5)
    nn.RReLU(0.1, 0.3, inplace=True); x(5)
    nn.Hardtanh(-0.5, 0.5); x(5)
    nn.ReLU6(); x(5) * 5
    nn.Sigmoid(); x(5)
    nn.Hardsigmoid(); x(5)
    nn.Tanh(); x(5)
    nn.SiLU(); x(5)
    nn.Mish(); x(5)
    nn.Hardswish(); x(5)
    nn.ELU(0.5); x(5)
    nn.CELU(0.5, inplace=True); x(5)
    nn.SELU(); x(5)
    nn.GLU(0); x(4, 2)
    nn.GELU(); x(5)
    nn.GELU("tanh"); x(5)
    nn.Hardshrink(); x(5)
    nn.Softshrink(0.3); x(5)
    nn.LeakyReLU(0.2); x(5)
    nn.LogSigmoid(); x(5)
    nn.Softplus(beta=2, threshold=1); x(5)
    nn.PReLU(2); x(3, 2)
    nn.Softsign(); x(5)
    nn.Tanhshrink(); x(5)
    nn.Softmin(dim=1); x(2, 3)
    nn.Softmax(dim=0); x(2, 3)
    nn.Softmax(); x(2, 3)
    nn.Softmax2d(); x(2, 1, 3)
    nn.LogSoftmax(-1); x(2, 3)
    nn.Flatten(); x(2, 3, 2)
    nn.Unflatten(1, (2, 3)); x(2, 6)
    nn.MaxPool1d(2); x(1, 2, 5)
    nn.MaxPool2d(2, stride=1, padding=1, ceil_mode=True); x(1, 1, 3, 3)
    nn.MaxPool2d(2, return_indices=True); x(1, 2, 4, 4)
    nn.MaxPool3d(2, dilation=1); x(1, 1, 2, 4, 4)
    nn.MaxUnpool1d(2); x(1, 1, 2), torch.tensor([[[1, 2]]])
    nn.MaxUnpool2d(2, stride=2); x(1, 1, 1, 2), torch.tensor([[[[0, 3]]]])
    nn.AvgPool1d(2, padding=1, count_include_pad=False); x(1, 2, 4)
    nn.AvgPool2d(2, divisor_override=3); x(1, 2, 4, 4)
    nn.AvgPool3d(2); x(1, 1, 2, 2, 4)
    nn.LPPool1d(2, 2); x(1, 2, 4)
    nn.LPPool2d(1.5, 2, stride=1); x(1, 1, 3, 3).abs()
    nn.FractionalMaxPool2d(2, output_size=3); x(1, 2, 5, 5)
    nn.FractionalMaxPool3d(2, output_ratio=0.5, return_indices=True); x(1, 1, 4, 4, 4)
    nn.AdaptiveMaxPool1d(2, return_indices=True); x(1, 2, 5)
    nn.AdaptiveMaxPool2d((2, None)); x(1, 1, 5, 3)
    nn.AdaptiveAvgPool1d(3); x(1, 2, 5)
    nn.AdaptiveAvgPool2d(1); x(2, 3, 3)
    nn.AdaptiveAvgPool3d((1, 2, 2)); x(1, 1, 2, 3, 3)
    nn.CircularPad1d((1, 2)); x(1, 1, 4)
    nn.ConstantPad1d(1, 0.5); x(1, 2)
    nn.ConstantPad2d((1, 0, 0, 1), 3); x(1, 2, 2)
    nn.ReflectionPad1d(2); x(1, 4)
    nn.ReflectionPad2d((1, 1, 0, 1)); x(1, 3, 3)
    nn.ReplicationPad2d(1); x(1, 2, 2)
    nn.ReplicationPad3d((1, 0, 0, 0, 0, 1)); x(1, 1, 2, 2, 2)
    nn.ZeroPad1d(1); x(1, 2)
    nn.ZeroPad2d((1, 1, 2, 0)); x(1, 1, 2, 2)
    nn.Upsample(scale_factor=2); x(1, 1, 2, 2)
    nn.Upsample(size=(3, 5), mode="bilinear"); x(1, 1, 2, 2)
    nn.UpsamplingNearest2d(scale_factor=(2, 1)); x(1, 1, 2, 2)
    nn.UpsamplingBilinear2d(size=3); x(1, 1, 2, 2)
    nn.PixelShuffle(2); x(1, 4, 1, 2)
    nn.PixelUnshuffle(2); x(1, 1, 2, 4)
    nn.ChannelShuffle(2); x(1, 4, 1, 2)
    nn.PairwiseDistance(p=1, keepdim=True); x(2, 3), x(2, 3) + 1
    nn.CosineSimilarity(dim=0); x(2, 3), x(3)
    nn.Unfold((2, 2), stride=2); x(1, 1, 4, 4)
    nn.Fold((3, 3), 2); x(1, 4, 4)
    nn.L1Loss(); x(3), x(3) * 2
    nn.MSELoss(reduction="sum"); x(3), x(3) * 2
    nn.MSELoss(size_average=False); x(3), x(3) * 2
    nn.NLLLoss(weight=torch.tensor([1.0, 2.0]), ignore_index=1); x(3, 2), torch.tensor([0, 1, 0])
    nn.CrossEntropyLoss(); x(3, 4), torch.tensor([0, 3, 1])
    nn.CrossEntropyLoss(x(4).abs(), label_smoothing=0.1); x(2, 4), torch.tensor([0, 3])
    nn.BCELoss(); x(3).sigmoid(), torch.tensor([0.0, 1.0, 1.0])
    nn.BCEWithLogitsLoss(pos_weight=x(3).abs()); x(3), torch.tensor([0.0, 1.0, 1.0])
    nn.PoissonNLLLoss(full=True); x(3), x(3).abs()
    nn.GaussianNLLLoss(); x(3), x(3) + 1, x(3).abs()
    nn.CTCLoss(); x(5, 2, 3).log_softmax(2), torch.tensor([[1, 2], [2, 1]]), (5, 4), (2, 1)
    nn.KLDivLoss(reduction="batchmean"); x(2, 3), x(2, 3).softmax(1)
    nn.HingeEmbeddingLoss(0.5); x(3), torch.tensor([1, -1, 1])
    nn.SmoothL1Loss(beta=0.5); x(3), x(3) * 2
    nn.HuberLoss(delta=0.5); x(3), x(3) * 2
    nn.SoftMarginLoss(); x(3), torch.tensor([1, -1, 1])
    nn.MultiLabelSoftMarginLoss(); x(2, 3), torch.tensor([[0, 1, 1], [1, 0, 0]])
    nn.CosineEmbeddingLoss(0.1); x(2, 3), x(2, 3) + 1, torch.tensor([1, -1])
    nn.MarginRankingLoss(0.5); x(3), x(3) * 2, torch.tensor([1, -1, 1])
    nn.MultiMarginLoss(p=2); x(2, 3), torch.tensor([0, 2])
    nn.MultiLabelMarginLoss(); x(1, 4), torch.tensor([[3, 0, -1, 1]])
    nn.TripletMarginLoss(swap=True); x(2, 3), x(2, 3) + 1, x(2, 3) * 2
    nn.TripletMarginWithDistanceLoss(margin=0.5); x(2, 3), x(2, 3) + 1, x(2, 3) * 2
"""  # noqa: E501


@case.lines(LAYERS)
def layers(torch, line):
    text, inputs = line.split("; ")
    names = scope(torch)
    layer = evaluate(torch, text, **names)
    yield (
        repr(layer),
        list(layer.__constants__) if hasattr(layer, "__constants__") else None,
    )
    yield dict(layer.state_dict())
    given = evaluate(torch, inputs, **names)
    given = given if isinstance(given, tuple) else (given,)
    torch.manual_seed(1)
    yield layer(*given)
    layer.eval()
    yield layer(*given), [(n, p.requires_grad) for n, p in layer.named_parameters()]
    yield dict(layer.named_buffers())


@case.lines("""
    nn.Bilinear(0, 1, 1)
    nn.Conv1d(2, 2, 1, groups=0)
    nn.Conv1d(3, 2, 1, groups=2)
    nn.Conv1d(2, 3, 1, groups=2)
    nn.Conv2d(1, 1, 2, stride=2, padding="same")
    nn.ConvTranspose2d(1, 1, 2, padding_mode="reflect")
    nn.ConvTranspose2d(1, 1, 3, stride=2)(x(1, 1, 2, 2), [9, 9])
    nn.ConvTranspose2d(1, 1, 3, stride=2)(x(1, 1, 2, 2), [9])
    nn.BatchNorm1d(2)(x(2, 2, 2, 2))
    nn.BatchNorm2d(2)(x(2, 2, 2))
    nn.BatchNorm1d(3)(x(1, 3))
    nn.InstanceNorm1d(2)(x(2))
    nn.InstanceNorm1d(2, affine=True)(x(3, 3, 4))
    nn.InstanceNorm1d(2)(x(1, 3, 4))
    nn.GroupNorm(2, 3)
    nn.Embedding(3, 2, padding_idx=3)
    nn.Embedding(3, 2, padding_idx=-4)
    nn.Embedding(3, 2, _weight=x(2, 2))
    nn.Embedding.from_pretrained(x(3))
    nn.EmbeddingBag(3, 2, padding_idx=3)
    nn.RNNCell(3, 2)(x(1, 1, 3))
    nn.RNNCell(3, 2)(x(3), x(1, 1, 2))
    nn.RNNCell(3, 2, nonlinearity="x")(x(3))
    nn.RNNCell(3, 2)(x(1, 4))
    nn.RNNCell(3, -1)
    nn.LSTMCell(3, 2)(x(3), (x(2), x(1, 1, 2)))
    nn.LSTMCell(3, 2)(x(2, 3), x(2, 2))
    nn.LSTMCell(3, 2)(x(2, 3), (x(2, 2),))
    nn.LSTMCell(3, 2)(x(2, 3), (x(2, 2), x(1, 2)))
    nn.GRUCell(3, 2)(x(2, 3), x(2, 4))
    nn.GRUCell(3, 2)(x(2, 3), x(1, 2))
    torch.gru_cell(x(1, 3), x(1, 2), x(6, 3), x(5, 2))
    torch.gru_cell(x(1, 3), x(1, 2), x(4, 3), x(6, 2))
    torch.rnn_relu_cell(x(1, 3), x(1, 2), x(4, 3), x(2, 2))
    nn.Dropout(1.5)
    nn.Dropout(-0.1)
    nn.Hardtanh(1, 0)
    nn.Hardtanh(min_value=-2)
    nn.Softmax2d()(x(2))
    nn.Unflatten(1, 3)
    nn.Unflatten(1, (2, "a"))
    nn.CircularPad2d(1)(x(2))
    nn.HuberLoss(delta="a")
    nn.MultiMarginLoss(p=3)
    nn.MultiMarginLoss(weight=x(2, 2))
    nn.TripletMarginLoss(margin=0)
    nn.TripletMarginWithDistanceLoss(margin=0)
    nn.NLLLoss2d()
    nn.FractionalMaxPool2d(2)
    nn.FractionalMaxPool2d(2, output_size=1, output_ratio=0.5)
    nn.FractionalMaxPool2d(2, output_ratio=1.5)
    nn.FractionalMaxPool3d(0, output_size=1)
""")
def refusals(torch, line):
    result = attempt(evaluate, torch, line, **scope(torch))
    return repr(result) if isinstance(result, torch.nn.Module) else result


@case.lines("""
    nn.Linear(i, i)
    nn.Conv2d(i, i, (i, 2), padding=i, groups=i)
    nn.ConvTranspose1d(i, 2, i, stride=i)
    nn.BatchNorm1d(i, eps=f, momentum=f)
    nn.GroupNorm(i, i, eps=f)
    nn.LayerNorm((i, 2), eps=f)
    nn.Embedding(i, i, padding_idx=1, max_norm=f)
    nn.EmbeddingBag(i, i, max_norm=f, norm_type=f, padding_idx=1)
    nn.EmbeddingBag(5, 3, max_norm=0.5, norm_type=1, scale_grad_by_freq=True)
    nn.Dropout(f)
    nn.LeakyReLU(f)
    nn.MaxPool2d(i, stride=i)
    nn.AdaptiveAvgPool2d((i, 2))
    nn.Upsample(scale_factor=i)
    nn.LSTM(i, i, i, dropout=f)
    nn.LSTMCell(i, i)
""")
def texts_of_numpy_numbers(torch, line):
    return repr(evaluate(torch, line, i=np.int64(2), f=np.float64(0.5)))


@case
def running_statistics(torch):
    layer = torch.nn.BatchNorm1d(2, momentum=None)
    for _ in range(3):
        layer(numbers(torch, 4, 2))
    count = layer.num_batches_tracked
    yield dict(layer.state_dict()), count, count + 1
    old = {k: v for k, v in layer.state_dict().items() if "num" not in k}
    yield torch.nn.BatchNorm1d(2).load_state_dict(old)
    layer.reset_running_stats()
    yield dict(layer.named_buffers()), count is layer.num_batches_tracked
    plain = torch.nn.InstanceNorm1d(2)
    yield attempt(plain.load_state_dict, {"running_mean": torch.ones(2)})
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.ReLU())
    yield repr(torch.nn.SyncBatchNorm.convert_sync_batchnorm(model))


@case
def gradients(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 3),
        nn.LayerNorm(3),
    )
    loss = nn.CrossEntropyLoss()
    loss(model(numbers(torch, 2, 1, 4, 4)), torch.tensor([0, 2])).backward()
    return {name: p.grad for name, p in model.named_parameters()}


@case.lines("""
    nn.LazyLinear(3); x(2, 4)
    nn.LazyLinear(3, bias=False); x(4)
    nn.LazyConv1d(4, 2); x(1, 3, 5)
    nn.LazyConv2d(4, 2, groups=2); x(2, 5, 5)
    nn.LazyConv3d(2, 2, bias=False); x(1, 1, 3, 3, 3)
    nn.LazyConvTranspose2d(2, 2); x(1, 3, 2, 2)
    nn.LazyBatchNorm1d(); x(3, 2)
    nn.LazyBatchNorm2d(affine=False); x(2, 2, 2, 2)
    nn.LazyInstanceNorm1d(); x(1, 2, 4)
    nn.LazyConv2d(4, 2, groups=2); x(1, 3, 5, 5)
    nn.LazyConv1d(4, 2); x(3)
""")
def lazy(torch, line):
    text, inputs = line.split("; ")
    layer = evaluate(torch, text, **scope(torch))
    yield repr(layer), layer.has_uninitialized_params(), type(layer).__name__
    yield list(layer.state_dict())
    torch.manual_seed(0)
    yield attempt(layer, evaluate(torch, inputs, **scope(torch)))
    yield repr(layer), type(layer).__name__


@case
def warnings_of_a_layer_are_told_once_for_all_its_calls(torch):
    """Those of functions, once for each line."""
    nn, x = torch.nn, torch.ones(3)
    loss, dropout, softmax = nn.L1Loss(), nn.Dropout2d(0.0), nn.Softmax()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        loss(x, x[:, None])
        loss(x, x[:, None])
        dropout(x[None])
        dropout(x[None])
        softmax(x)
        softmax(x)
        nn.LSTM(2, 2, dropout=0.5)
        nn.LSTM(2, 2, dropout=0.5)
        yield [str(one.message)[:30] for one in told]
        nn.functional.l1_loss(x, x[:, None])
        nn.functional.l1_loss(x, x[:, None])
        nn.functional.softmax(x)
        nn.functional.softmax(x)
        yield [str(one.message)[:30] for one in told[4:]]
