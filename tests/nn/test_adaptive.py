"""Losses with layers of their own, gradients of convolutions, DataParallel."""

from __future__ import annotations

import importlib
from typing import Any

from tests.nn.test_layers import numbers
from tests.oracle import attempt, case, evaluate


def scope(torch: Any) -> dict[str, Any]:
    return {"x": lambda *shape: numbers(torch, *shape)}


@case.over(False, True)
def adaptive_softmax(torch, head_bias):
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(
        8, 10, [2, 5], div_value=2.0, head_bias=head_bias
    )
    yield repr(layer), dict(layer.state_dict()), layer.cutoffs, layer.head_size
    x = numbers(torch, 5, 8)
    given = layer(x, torch.tensor([0, 4, 9, 1, 3]))
    given.loss.backward()
    yield given.output, given.loss, type(given).__name__
    yield {name: p.grad for name, p in layer.named_parameters()}
    yield layer.log_prob(x).detach(), layer.predict(x), layer.predict(x[:1])
    yield layer(x[0], torch.tensor(7)).output, layer(x[:1], torch.tensor([1])).loss
    torch.manual_seed(3)
    layer.reset_parameters()
    yield layer.tail[1][0].weight


@case.lines("""
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 2])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 2])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [0, 2])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 10])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2.5])
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(x(2, 8), torch.tensor([1, 11]))
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(x(2, 8), torch.tensor([1]))
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(x(1, 1, 8), torch.tensor([1]))
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(x(1, 8), torch.tensor(1))
    nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2])(x(1, 8), torch.tensor([[1]]))
    nn.LinearCrossEntropyLoss(4, 3)
    nn.LinearCrossEntropyLoss(4, 3)(x(2, 4), torch.tensor([0, 2])).detach()
    nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True, reduction="none")(x(2, 4), torch.tensor([[0, 2], [1, 1]])).detach()
    nn.LinearCrossEntropyLoss(4, 3, label_smoothing=0.1, weight=torch.ones(3))(x(4), torch.tensor(2)).detach()
    nn.LinearCrossEntropyLoss(4, 3, ignore_index=2, options=nn.LinearCrossEntropyOptions())(x(2, 4), torch.tensor([0, 2])).item()
    nn.LinearCrossEntropyLoss(4, 3, weight=torch.ones(2))
    nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2)
    F.linear_cross_entropy(x(2, 4), x(3, 4), x(2, 3).softmax(1), ignore_index=1)
    F.linear_cross_entropy(x(2, 4), x(3, 4), x(2, 3).softmax(1))
    F.linear_cross_entropy(x(2, 4), x(3, 5), torch.tensor([0, 1]))
    F.linear_cross_entropy(x(2, 2, 4), x(3, 4), torch.tensor([0, 1]))
    F.linear_cross_entropy(x(2, 4), x(4), torch.tensor([0, 1]))
    F.linear_cross_entropy(x(2, 4), x(3, 4), torch.tensor([0, 1]), linear_bias=x(4))
    F.linear_cross_entropy(x(4), x(3, 2, 4), torch.tensor([0, 1]))
    F.linear_cross_entropy(x(2, 4), x(3, 4), torch.tensor([0, 1]), label_smoothing=0.1, options=nn.LinearCrossEntropyOptions())
    nn.LinearCrossEntropyOptions(acc_policy="x")
    nn.LinearCrossEntropyOptions(chunking_method="x")
    nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:2")
    nn.LinearCrossEntropyOptions(batch_chunk_size=0)
    nn.LinearCrossEntropyOptions(acc_dtype=torch.int32)
    nn.grad.conv1d_input((1, 2, 5), x(3, 2, 3), x(1, 3, 3))
    nn.grad.conv2d_input((1, 2, 5, 5), x(4, 1, 3, 3), x(1, 4, 3, 3), stride=2, padding=1, groups=2)
    nn.grad.conv2d_weight(x(1, 2, 5, 5), (3, 2, 2, 2), x(1, 3, 4, 4))
    nn.grad.conv3d_weight(x(1, 1, 3, 3, 3), (1, 1, 2, 2, 2), x(1, 1, 2, 2, 2))
    nn.factory_kwargs({"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}})
    nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}})
    nn.factory_kwargs({"x": 1}), nn.factory_kwargs(None)
    nn.DataParallel(nn.Linear(2, 3))
    m = nn.DataParallel(nn.Linear(2, 3)); m(x(4, 2)).detach(), m.device_ids, list(m.state_dict())
""")  # noqa: E501
def lines(torch, line):
    result = attempt(evaluate, torch, line, **scope(torch))
    return repr(result) if isinstance(result, torch.nn.Module) else result


@case
def import_paths(torch):
    """Names that scripts import from the modules of layers."""
    wanted = {
        "utils": "_single _pair _triple _quadruple _ntuple _reverse_repeat_tuple",
        "loss": "_Loss _WeightedLoss LinearCrossEntropyLoss",
        "batchnorm": "_BatchNorm _NormBase",
        "conv": "_ConvNd _ConvTransposeNd LazyConv2d",
        "pooling": "_MaxPoolNd _AvgPoolNd",
        "dropout": "_DropoutNd",
        "instancenorm": "_InstanceNorm",
        "activation": "MultiheadAttention",
        "padding": "_ConstantPadNd _ReflectionPadNd _ReplicationPadNd",
        "channelshuffle": "ChannelShuffle",
        "pixelshuffle": "PixelShuffle",
        "adaptive": "AdaptiveLogSoftmaxWithLoss",
        "rnn": "RNNBase apply_permutation",
        "linear": "NonDynamicallyQuantizableLinear",
        "lazy": "LazyModuleMixin",
    }
    for name, names in wanted.items():
        module = importlib.import_module(f"{torch.__name__}.nn.modules.{name}")
        yield name, [hasattr(module, each) for each in names.split()]
    types = importlib.import_module(f"{torch.__name__}.nn.common_types")
    yield types._size_2_t is not None, hasattr(types, "_ratio_3_t")
    state = {"module.a": 1, "b": 2}
    utils = torch.nn.modules.utils
    yield utils.consume_prefix_in_state_dict_if_present(state, "module."), state
