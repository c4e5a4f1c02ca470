"""Weights that keep a gradient for each example, as functions of layers take them."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case, evaluate


def expanded(torch):
    name = f"{torch.__name__}.nn.utils._expanded_weights.expanded_weights_utils"
    return importlib.import_module(name)


def parameter(torch, *shape):
    count = torch.Size(shape).numel()
    return torch.nn.Parameter(torch.arange(float(count)).view(shape) / 7)


def weight(torch, *shape, batch=3, how="sum"):
    made = expanded(torch).ExpandedWeight
    return made(parameter(torch, *shape), batch, loss_reduction=how)


@case.lines(
    """
    F.linear(X.view(3, 2, 4), E(5, 4), E(5))
    F.conv1d(X, E(4, 2, 2), E(4))
    F.conv1d(X, E(4, 1, 3), E(4), groups=2, padding="same")
    F.conv2d(X.view(3, 2, 2, 2), E(2, 2, 1, 2), None, 1, 1)
    F.conv3d(X.view(3, 2, 2, 2, 1), E(2, 2, 1, 2, 1), stride=2)
    F.embedding(torch.tensor([[0, 1], [2, 1], [1, 1]]), E(3, 2))
    F.embedding(torch.tensor([[0, 1], [2, 1], [1, 1]]), E(3, 2), padding_idx=1)
    F.layer_norm(X, (4,), E(4), E(4))
    F.layer_norm(X, (2, 4), weight=E(2, 4))
    F.group_norm(X, 2, E(2), E(2))
    F.instance_norm(X, weight=E(2), bias=E(2), eps=1e-3)
    """
)
def layers(torch, line):
    made = []

    def E(*shape):
        made.append(weight(torch, *shape))
        return made[-1]

    X = torch.linspace(-1, 1, 24).view(3, 2, 4).requires_grad_()
    out = evaluate(torch, line, F=torch.nn.functional, X=X, E=E)
    (out * torch.linspace(0, 1, out.numel()).view(out.shape)).sum().backward()
    yield out.detach(), X.grad
    for each in made:
        yield each.orig_weight.grad_sample, each.orig_weight.grad


@case
def running_statistics(torch):
    x = torch.linspace(-1, 1, 24).view(3, 2, 4)
    mean, var, own = torch.zeros(2), torch.ones(2), weight(torch, 2)
    torch.nn.functional.instance_norm(x, mean, var, own).sum().backward()
    yield mean, var


@case
def means_and_smaller_batches(torch):
    F = torch.nn.functional
    x = torch.arange(12.0).view(3, 4)
    own = weight(torch, 2, 4, how="mean")
    for _ in range(2):
        F.linear(x, own).sum().backward()
        yield own.orig_weight.grad_sample
    own = weight(torch, 2, 4)
    own.set_allow_smaller_batches(True)
    F.linear(x[:2], own).sum().backward()
    yield own.orig_weight.grad_sample
    own = weight(torch, 2, 4)
    own.set_batch_first(False)
    F.linear(torch.arange(24.0).view(2, 3, 4), own).sum().backward()
    yield own.orig_weight.grad_sample
    yield own.shape, own.dtype, own.batch_size, own.loss_reduction, own.batch_first


@case
def refusals(torch):
    F, utils = torch.nn.functional, expanded(torch)
    x, own = torch.arange(12.0).view(3, 4), weight(torch, 5, 4)
    help = utils.forward_helper
    for first in (weight(torch, 3, 4), 3, torch.tensor(1.0), torch.ones(0, 4)):
        yield attempt(help, F.linear, (first, own), {})
    for first in (torch.ones(2, 4), torch.ones(4)):
        yield attempt(F.linear, first, own), attempt(help, F.linear, (first, own), {})
    yield help(F.linear, (x, own), {"bias": weight(torch, 5)})
    for call in (torch.exp, F.relu, lambda w: w + 1, lambda w: w[0], repr, len):
        yield attempt(call, own)
    yield attempt(F.bilinear, x, x, own)
    yield attempt(F.batch_norm, x, None, None, weight(torch, 4), training=True)
    yield attempt(F.group_norm, x.view(3, 2, 2), 3, weight(torch, 2))
    for wrong in (3, torch.ones(1)):
        yield attempt(utils.ExpandedWeight, wrong, 1, "sum")


@case
def helpers(torch):
    utils = expanded(torch)
    grads = torch.ones(3, 4)
    values = (weight(torch, 4), torch.ones(4), 3, None, parameter(torch, 4))
    for value in values:
        yield attempt(utils.set_grad_sample_if_exists, value, lambda own: grads)
        yield hasattr(value, "grad_sample")
        yield attempt(utils.unpack_expanded_weight_or_tensor, value)
        yield attempt(utils.unpack_expanded_weight_or_tensor, value, len)
    yield values[0].orig_weight.grad_sample
    yield utils.standard_kwargs(("a", "b"), (1, 2, 3)), utils.standard_kwargs((), (1,))
    y = torch.arange(24.0).view(2, 3, 4)
    for n in range(3):
        yield utils.sum_over_all_but_batch_and_last_n(y, n)
    mean, second = weight(torch, 2, how="mean"), weight(torch, 2)
    yield utils.maybe_scale_by_batch_size(torch.ones(2), mean)
    yield utils.maybe_scale_by_batch_size(torch.ones(2), second)
    second.set_batch_first(False)
    yield utils.is_batch_first((y, 3)), utils.is_batch_first((y, mean))
    yield attempt(utils.is_batch_first, (mean, second))
    handled = utils.ExpandedWeight.handled_functions
    yield sorted(function.__name__ for function in handled)
