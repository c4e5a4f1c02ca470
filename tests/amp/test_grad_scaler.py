"""GradScaler on the CPU: the scale, skipped steps, states and refusals."""

from __future__ import annotations

import copy
import pickle

from tests.oracle import attempt, case, evaluate


def trained(torch, scaler, bad=(), steps=5):
    """What a small training shows, with gradients that overflow at some steps."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([[0.5]], requires_grad=True)
    optimizer = torch.optim.Adam([w, v], lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = (w * w).sum() + v.sum()
        scaler.scale(loss).backward()
        if step in bad:
            w.grad[0] = float("nan")
        scaler.step(optimizer)
        scaler.update()
        yield w.detach().clone(), w.grad, scaler.get_scale(), scaler.state_dict()


@case.over({"none": (), "second": (1,), "last two": (3, 4)})
def steps(torch, bad):
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    yield from trained(torch, scaler, bad)


@case
def clipping_after_unscaling(torch):
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((w * w / 2).sum()).backward()
    yield w.grad
    scaler.unscale_(optimizer)
    yield w.grad, torch.nn.utils.clip_grad_norm_([w], 1.0)
    yield scaler._found_inf_per_device(optimizer)
    yield scaler.step(optimizer), w
    scaler.update()


@case
def several_optimizers(torch):
    first, second = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizers = [torch.optim.SGD([p], lr=0.1) for p in (first, second)]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    losses = scaler.scale([first.sum(), (second.sum(), second.sum() * float("inf"))])
    yield losses
    losses[0].backward()
    (losses[1][0] + losses[1][1]).backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    yield first, second, scaler.get_scale()


@case
def scaled_outputs(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    yield scaler.scale((torch.ones(1), [torch.zeros(1)]))
    yield list(scaler.scale(t for t in [torch.ones(1)]))
    yield scaler.scale(torch.ones(2, dtype=torch.float16))
    yield attempt(scaler.scale, 3)


@case
def refusals(torch):
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    yield attempt(scaler.step, optimizer)
    yield attempt(scaler.unscale_, optimizer)
    yield attempt(scaler.update)
    scaler.scale(w.sum()).backward()
    yield attempt(scaler.update)
    scaler.unscale_(optimizer)
    yield attempt(scaler.unscale_, optimizer)
    yield attempt(scaler.step, optimizer, closure=None)
    yield attempt(pickle.dumps, scaler)
    scaler.step(optimizer)
    yield attempt(scaler.step, optimizer)
    yield attempt(scaler.unscale_, optimizer)
    scaler.update()
    yield attempt(scaler.update, torch.ones(2))
    yield attempt(scaler.step, torch.optim.SGD([torch.ones(1, requires_grad=True)]))
    half = torch.ones(1, dtype=torch.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    yield attempt(scaler.unscale_, torch.optim.SGD([half], lr=0.1))


@case
def states(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    yield scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()
    scaler.scale(torch.ones(1))
    scaler.update(16.0)
    yield scaler.get_scale()
    scaler.update(torch.tensor(32.0))
    yield scaler.get_scale()
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    yield (
        scaler.get_growth_factor(),
        scaler.get_backoff_factor(),
        scaler.get_growth_interval(),
    )
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    yield other.state_dict(), other.scale(torch.ones(1))
    for again in (pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        yield again.state_dict(), again.scale(torch.ones(1))
    yield attempt(scaler.load_state_dict, {})


@case.over("cpu", "cuda")
def off(torch, device):
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    yield scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()
    yield from trained(torch, scaler, steps=1)
    scaler.load_state_dict({})
    yield scaler.unscale_(None)


@case(raises=AssertionError).lines(
    """
    torch.amp.GradScaler("cpu", growth_factor=1.0)
    torch.amp.GradScaler("cpu", backoff_factor=1.0)
    torch.cpu.amp.GradScaler(4.0)._device
    torch.cuda.amp.GradScaler().is_enabled()
    torch.amp.grad_scaler.OptState.READY
    torch.GradScaler is torch.amp.GradScaler
    """
)
def making(torch, line):
    return evaluate(torch, line)


@case
def optimizers_that_scale_themselves(torch):
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True
        seen = ()

        def step(self, closure=None):
            Own.seen = self.grad_scale, self.found_inf

    w = torch.ones(1, requires_grad=True)
    optimizer = Own([w], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    yield Own.seen, hasattr(optimizer, "grad_scale"), w.grad
