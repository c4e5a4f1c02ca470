"""How many programs are compiled, and how long the first step takes.

Each scenario is a training step that is steady but for one thing. Two steps are taken
without it; the number is that of the programs that further steps, with it, compile.
To see why one was compiled, print `torchshim.explain()` after the scenario.
"""

import time
from functools import partial

from ._case import JAX, Case, Goal, only_torchshim, torch_api
from ._mlp import SMALL, jax_step, torch_parts, torch_step

MORE_STEPS = 12
BATCH, SMALLER_BATCH = 8, 5


class Trainer:
    """A model and its step, of which the scenarios change one thing each."""

    def __init__(self, torch):
        self.torch = torch
        parts = torch_parts(torch, SMALL)
        self.model, self.optimizer, self.inputs, self.labels, self.loss_function = parts

    def loss(self, inputs=None, labels=None):
        inputs = self.inputs if inputs is None else inputs
        labels = self.labels if labels is None else labels
        return self.loss_function(self.model(inputs), labels)

    def finish(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def steady(torch):
    trainer = Trainer(torch)
    return lambda i: trainer.finish(trainer.loss())


def learning_rate(torch):
    trainer = Trainer(torch)

    def step(i):
        for group in trainer.optimizer.param_groups:
            group["lr"] = 1e-3 / (1 + i)
        return trainer.finish(trainer.loss())

    return step


def loss_weight(torch):
    trainer = Trainer(torch)
    return lambda i: trainer.finish(trainer.loss() * (1.0 + 0.1 * i))


def slice_start(torch):
    trainer = Trainer(torch)
    inputs = torch.randn(BATCH * (MORE_STEPS + 1), SMALL.sizes[0])
    labels = torch.randint(0, 10, (BATCH * (MORE_STEPS + 1),))

    def step(i):
        start = i * BATCH
        return trainer.finish(
            trainer.loss(inputs[start : start + BATCH], labels[start : start + BATCH])
        )

    return step


def index(torch):
    trainer = Trainer(torch)
    q = torch.rand(MORE_STEPS + 1)
    return lambda i: trainer.finish(trainer.loss() * q[i])


def exponent(torch):
    trainer = Trainer(torch)
    return lambda i: trainer.finish(trainer.loss() ** (2 + i))


def arange_bound(torch):
    """The rows of a growing window: the same number of them, from another place."""
    trainer = Trainer(torch)
    inputs = torch.randn(BATCH + MORE_STEPS, SMALL.sizes[0])

    def step(i):
        rows = torch.arange(i, i + BATCH)
        return trainer.finish(trainer.loss(inputs[rows]))

    return step


def random_read(torch):
    """Random numbers are drawn, and read, between forward and backward."""
    trainer = Trainer(torch)

    def step(i):
        noise = torch.randn(BATCH, SMALL.sizes[0])
        loss = trainer.loss(trainer.inputs + 0.1 * noise)
        weight = 1.0 + float(torch.rand(()))
        return trainer.finish(loss * weight)

    return step


def smaller_batch(torch):
    """Every fourth batch is a smaller one, as at the end of an epoch."""
    trainer = Trainer(torch)

    def step(i):
        size = SMALLER_BATCH if i % 4 == 3 else BATCH
        return trainer.finish(
            trainer.loss(trainer.inputs[:size], trainer.labels[:size])
        )

    return step


def programs(torch, scenario):
    """The programs of the two first steps, then of the others."""
    step = scenario(torch)
    before = len(torch.explain().programs)
    step(0)
    step(0)
    warm = len(torch.explain().programs)
    for i in range(1, MORE_STEPS + 1):
        step(i)
    return warm - before, len(torch.explain().programs) - warm


def first_programs(torch, scenario):
    return lambda: programs(torch, scenario)[0]


def later_programs(torch, scenario):
    return lambda: programs(torch, scenario)[1]


def torch_first_step(torch, with_setup):
    def sample():
        start = time.perf_counter()
        step = torch_step(torch, SMALL)
        if not with_setup:
            start = time.perf_counter()
        step()
        return time.perf_counter() - start

    return sample


def jax_first_step(with_setup):
    import jax  # noqa: F401 - the import isn't measured, here or above
    import optax  # noqa: F401

    def sample():
        start = time.perf_counter()
        step = jax_step(SMALL)
        if not with_setup:
            start = time.perf_counter()
        step()
        return time.perf_counter() - start

    return sample


# Scenario, and the programs allowed after the first two steps. A static number that
# is seen to vary costs one more program, which takes it as an argument.
SCENARIOS = {
    "steady, Adam's step count grows": (steady, 0),
    "learning rate": (learning_rate, 0),
    "loss weight": (loss_weight, 0),
    "slice start": (slice_start, 0),
    "index q[i]": (index, 0),
    "exponent x**i": (exponent, 1),
    "arange bound": (arange_bound, 1),
    "random numbers read": (random_read, 0),
    "smaller last batch": (smaller_batch, 1),
}

CASES = [
    Case(
        name="steady, first two steps",
        unit="programs",
        engines=only_torchshim(first_programs, steady),
        goals=(Goal(2),),
        fresh=True,
        rounds=1,
    ),
    *(
        Case(
            name=name,
            unit="programs more",
            engines=only_torchshim(later_programs, scenario),
            goals=(Goal(limit),),
            fresh=True,
            rounds=1,
        )
        for name, (scenario, limit) in SCENARIOS.items()
    ),
    Case(
        name=f"first step, {SMALL}",
        unit="s",
        engines={
            **torch_api(torch_first_step, False),
            JAX: partial(jax_first_step, False),
        },
        goals=(Goal(1.5, JAX),),
        fresh=True,
    ),
    Case(
        name="set-up and first step",
        unit="s",
        engines={
            **torch_api(torch_first_step, True),
            JAX: partial(jax_first_step, True),
        },
        fresh=True,
    ),
]
