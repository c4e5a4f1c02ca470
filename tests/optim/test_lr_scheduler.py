"""Every schedule, compared with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

from tests.oracle import attempt, case, evaluate


def optimizer_of(torch: Any, kind: str = "SGD", **options: Any) -> Any:
    first, second = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    groups = [{"params": [first]}, {"params": [second], "lr": 0.2}]
    return getattr(torch.optim, kind)(groups, lr=1.0, **options)


def walk(optimizer: Any, scheduler: Any, n: int) -> list[Any]:
    seen = [scheduler.get_last_lr()]
    for _ in range(n):
        optimizer.step()
        scheduler.step()
        seen.append([g["lr"] for g in optimizer.param_groups])
    return seen


SCHEDULES = """
    S.LambdaLR(o, lambda n: 0.9**n)
    S.LambdaLR(o, [lambda n: 0.9**n, lambda n: 1 / (n + 1)])
    S.MultiplicativeLR(o, lambda n: 0.95)
    S.StepLR(o, 3)
    S.StepLR(o, step_size=2, gamma=0.5)
    S.MultiStepLR(o, [2, 4, 4, 7])
    S.MultiStepLR(o, milestones=(3,), gamma=0.5)
    S.ConstantLR(o)
    S.ConstantLR(o, factor=0.5, total_iters=3)
    S.LinearLR(o)
    S.LinearLR(o, start_factor=0.5, end_factor=0.1, total_iters=4)
    S.ExponentialLR(o, 0.9)
    S.PolynomialLR(o, total_iters=4)
    S.PolynomialLR(o, 6, power=2.0)
    S.CosineAnnealingLR(o, T_max=4)
    S.CosineAnnealingLR(o, 3, eta_min=0.05)
    S.CosineAnnealingWarmRestarts(o, 3)
    S.CosineAnnealingWarmRestarts(o, 2, T_mult=2, eta_min=0.1)
    S.OneCycleLR(o, 2.0, total_steps=9)
    S.OneCycleLR(o, [2.0, 3.0], epochs=3, steps_per_epoch=3, anneal_strategy="linear")
    S.OneCycleLR(o, 2.0, total_steps=9, three_phase=True, cycle_momentum=False)
    S.CyclicLR(o, 0.1, 1.0, step_size_up=3)
    S.CyclicLR(o, 0.1, 1.0, step_size_up=2, step_size_down=3, mode="triangular2")
    S.CyclicLR(o, 0.1, [1.0, 2.0], 2, mode="exp_range", gamma=0.9)
    S.CyclicLR(o, 0.1, 1.0, 2, scale_fn=lambda n: 1 / n, cycle_momentum=False)
    S.SequentialLR(o, [S.ConstantLR(o, 0.1), S.ExponentialLR(o, 0.9)], [3])
    S.SequentialLR(o, [S.LinearLR(o), S.StepLR(o, 2), S.StepLR(o, 1)], [2, 5])
    S.ChainedScheduler([S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.9)])
"""


@case.lines(SCHEDULES)
def walks(torch, line):
    for kind in ("SGD", "Adam"):
        o = optimizer_of(torch, kind)
        S = torch.optim.lr_scheduler
        scheduler = evaluate(torch, line, S=S, o=o)
        yield walk(o, scheduler, 9)
        yield [
            {k: v for k, v in g.items() if k not in ("params", "lr")}
            for g in o.param_groups
        ]
        state = scheduler.state_dict()
        yield {k: v for k, v in state.items() if not callable(v)}
        # A copy of the state goes on where the first one stands.
        other = optimizer_of(torch, kind)
        resumed = evaluate(torch, line, S=S, o=other)
        other.load_state_dict(o.state_dict())
        resumed.load_state_dict(copy.deepcopy(state))
        yield attempt(walk, other, resumed, 2)


@case.lines(SCHEDULES)
def going_to_an_epoch(torch, line):
    o = optimizer_of(torch, momentum=0.9)
    scheduler = evaluate(torch, line, S=torch.optim.lr_scheduler, o=o)
    o.step()
    yield attempt(scheduler.step, 4), [g["lr"] for g in o.param_groups]
    yield attempt(scheduler.get_lr) if hasattr(scheduler, "get_lr") else None


@case
def plateaus(torch):
    S = torch.optim.lr_scheduler
    metrics = [1.0, 0.9, 0.95, 0.95, 0.95, 0.5, 0.6, 0.6, 0.6, 0.6]
    for options in (
        {"patience": 1},
        {"patience": 0, "factor": 0.5, "cooldown": 2},
        {"mode": "max", "patience": 2, "threshold_mode": "abs", "threshold": 0.1},
        {"mode": "max", "patience": 0, "min_lr": [0.5, 0.1]},
        {"patience": 0, "eps": 0.5},
    ):
        o = optimizer_of(torch)
        scheduler = S.ReduceLROnPlateau(o, **options)
        seen = []
        for metric in metrics:
            scheduler.step(torch.tensor(metric) if metric == 0.9 else metric)
            seen.append((scheduler.get_last_lr(), scheduler.num_bad_epochs))
        yield seen, scheduler.state_dict()
        twin = S.ReduceLROnPlateau(o)
        twin.load_state_dict(scheduler.state_dict())
        twin.step(0.6)
        yield twin.get_last_lr(), twin.best
    yield attempt(S.ReduceLROnPlateau, o, factor=1.0)
    yield attempt(S.ReduceLROnPlateau, o, mode="mid")
    yield attempt(S.ReduceLROnPlateau, o, threshold_mode="mid")
    yield attempt(S.ReduceLROnPlateau, o, min_lr=[0.1])
    yield attempt(S.ReduceLROnPlateau, 3)
    o.add_param_group({"params": torch.nn.Parameter(torch.ones(1)), "lr": 1.0})
    twin.step(0.9)
    limited = S.ReduceLROnPlateau(optimizer_of(torch), min_lr=[0.1, 0.2], patience=0)
    more = torch.nn.Parameter(torch.ones(1))
    limited.optimizer.add_param_group({"params": more})
    limited.step(1.0)
    yield attempt(limited.step, 2.0)


@case.lines("""
    S.StepLR(3, 1)
    S.LambdaLR(o, [abs])
    S.MultiplicativeLR(o, [3, 4])
    S.ConstantLR(o, 2.0)
    S.LinearLR(o, 0.0)
    S.LinearLR(o, 0.5, 1.5)
    S.ExponentialLR(o, 0.9, last_epoch=3)
    S.CosineAnnealingWarmRestarts(o, 0)
    S.CosineAnnealingWarmRestarts(o, 3, T_mult=0)
    S.CosineAnnealingWarmRestarts(o, 3, 1, "a")
    S.OneCycleLR(o, 1.0)
    S.OneCycleLR(o, 1.0, total_steps=0)
    S.OneCycleLR(o, 1.0, epochs=0, steps_per_epoch=3)
    S.OneCycleLR(o, 1.0, epochs=3, steps_per_epoch=1.5)
    S.OneCycleLR(o, 1.0, total_steps=5, pct_start=2)
    S.OneCycleLR(o, 1.0, total_steps=5, anneal_strategy="sine")
    S.OneCycleLR(o, [1.0], total_steps=5)
    S.OneCycleLR(torch.optim.Adagrad([torch.ones(1)]), 1.0, total_steps=5)
    S.CyclicLR(o, [0.1], 1.0)
    S.CyclicLR(o, 0.1, 1.0, mode="square")
    S.SequentialLR(o, [], [])
    S.SequentialLR(o, [S.StepLR(o, 1)], [3])
    S.SequentialLR(o, [3], [])
    S.SequentialLR(o, [S.ReduceLROnPlateau(o)], [])
    S.ChainedScheduler([])
    S.ChainedScheduler([S.ReduceLROnPlateau(o)])
    S.LRScheduler(o)
""")
def errors(torch, line):
    S = torch.optim.lr_scheduler
    return evaluate(torch, line, S=S, o=optimizer_of(torch))


@case
def order_of_steps(torch):
    S = torch.optim.lr_scheduler
    o = optimizer_of(torch)
    scheduler = S.StepLR(o, 1)
    scheduler.step()
    yield o.param_groups[0]["lr"]
    o = optimizer_of(torch)
    scheduler = S.StepLR(o, 1)
    o.step = lambda: None
    scheduler.step()
    yield scheduler.last_epoch, scheduler._step_count
    o = optimizer_of(torch)
    S.StepLR(o, 1)
    resumed = S.StepLR(o, 1, last_epoch=2)
    yield resumed.get_last_lr(), resumed.last_epoch
    one = S.OneCycleLR(optimizer_of(torch), 1.0, total_steps=2)
    for _ in range(2):
        one.optimizer.step()
        one.step()
    yield attempt(one.step)


@case
def rates_that_are_tensors(torch):
    rate = torch.tensor(1.0)
    p = torch.nn.Parameter(torch.ones(1))
    o = torch.optim.SGD([p], lr=rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(o, 0.5)
    p.grad = torch.ones(1)
    o.step()
    scheduler.step()
    o.step()
    yield rate, o.param_groups[0]["lr"] is rate, p.detach(), scheduler.get_last_lr()


@case
def one_cycle_of_an_older_version(torch):
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2.0, total_steps=9)
    del schedule._anneal_func_type
    schedule.anneal_func = schedule._annealing_linear
    for _ in range(3):
        optimizer.step()
        schedule.step()
        yield schedule.get_last_lr()
    schedule._anneal_func_type = "cubic"
    yield attempt(schedule.step)
