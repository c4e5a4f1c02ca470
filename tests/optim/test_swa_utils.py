"""Averaged weights: `torch.optim.swa_utils`."""

from __future__ import annotations

import copy

from tests.oracle import attempt, case


def network(torch):
    return torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)
    )


def change(torch, model):
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.mul_(0.5).add_(0.1 * i)
        for buffer in model.buffers():
            buffer += 1


FUNCTIONS = {
    "mean": lambda u: {},
    "buffers": lambda u: {"use_buffers": True},
    "swa": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "swa multi": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.75)},
    "ema multi": lambda u: {
        "multi_avg_fn": u.get_ema_multi_avg_fn(0.75),
        "use_buffers": True,
    },
}


@case.over(*FUNCTIONS)
def averages(torch, name):
    utils = torch.optim.swa_utils
    model = network(torch)
    averaged = utils.AveragedModel(model, **FUNCTIONS[name](utils))
    for _ in range(4):
        change(torch, model)
        averaged.update_parameters(model)
    yield averaged.state_dict(), averaged.n_averaged.dtype
    model.eval()
    averaged.eval()
    yield averaged(torch.ones(1, 2)), averaged.module is model
    twin = copy.deepcopy(averaged)
    twin.load_state_dict(averaged.state_dict())
    twin.update_parameters(model)
    yield twin.n_averaged, twin.module[0].weight.requires_grad


@case
def a_function_of_ones_own(torch):
    seen = []

    def largest(averages, currents, count):
        seen.append((len(averages), int(count)))
        for a, b in zip(averages, currents, strict=True):
            a.copy_(torch.maximum(a, b))

    model = network(torch)
    averaged = torch.optim.swa_utils.AveragedModel(
        model, device="cpu", multi_avg_fn=largest
    )
    for _ in range(3):
        change(torch, model)
        averaged.update_parameters(model)
    yield seen, averaged.state_dict()


@case.over(count=[1, "tensor"], dtype=["float32", "int64"])
def averages_of_several(torch, count, dtype):
    count = torch.tensor(1) if count == "tensor" else count
    old = [torch.tensor([2, 5], dtype=getattr(torch, dtype))]
    new = [torch.tensor([4, 10], dtype=getattr(torch, dtype))]
    yield attempt(torch.optim.swa_utils.get_swa_multi_avg_fn(), old, new, count)
    yield old


@case
def errors(torch):
    utils = torch.optim.swa_utils
    for make in (utils.get_ema_avg_fn, utils.get_ema_multi_avg_fn):
        yield attempt(make, 2.0)
    model = network(torch)
    yield attempt(utils.AveragedModel, model, None, min, max)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    yield attempt(utils.SWALR, optimizer, [1.0, 2.0])
    yield attempt(utils.SWALR, optimizer, 1.0, anneal_strategy="x")
    yield attempt(utils.SWALR, optimizer, 1.0, anneal_epochs=-1)


@case
def statistics_anew(torch):
    model = network(torch)
    model[1].momentum = 0.3
    batches = [torch.randn(4, 2) for _ in range(3)]
    torch.optim.swa_utils.update_bn(batches, model)
    yield model[1].state_dict(), model[1].momentum, model.training
    model.eval()
    pairs = [(x, torch.ones(4)) for x in batches]
    torch.optim.swa_utils.update_bn(pairs, model, device="cpu")
    yield model[1].state_dict(), model.training
    yield torch.optim.swa_utils.update_bn([], torch.nn.Linear(1, 1))


@case.over(strategy=["cos", "linear"], epochs=[0, 3])
def rates(torch, strategy, epochs):
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.5}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    schedule = torch.optim.swa_utils.SWALR(
        optimizer, [0.1, 0.05], anneal_epochs=epochs, anneal_strategy=strategy
    )
    for _ in range(5):
        yield schedule.get_last_lr()
        optimizer.step()
        schedule.step()
    state = schedule.state_dict()
    yield sorted(state), state["last_epoch"]
    schedule.load_state_dict(state)
    optimizer.step()
    schedule.step()
    yield schedule.get_last_lr(), attempt(schedule.get_lr)
