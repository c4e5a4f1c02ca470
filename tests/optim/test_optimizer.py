"""The protocol of `Optimizer`: groups, state dicts, hooks, subclasses."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

from tests.oracle import attempt, case


def make(torch: Any, **options: Any) -> tuple[Any, list[Any]]:
    params = [torch.nn.Parameter(torch.tensor([float(i + 1)])) for i in range(3)]
    for p in params:
        p.grad = torch.ones(1)
    return torch.optim.Adam(params, **options), params


def optimizer_module(torch: Any) -> Any:
    """`torch.optim.optimizer`, which PyTorch has as a module, not as an attribute."""
    return sys.modules[torch.optim.Optimizer.__module__]


@case
def groups(torch):
    p, q, r = (torch.nn.Parameter(torch.ones(1)) for _ in range(3))
    kind = torch.optim.SGD
    yield attempt(kind, [])
    yield attempt(kind, p)
    yield attempt(kind, {p})
    yield attempt(kind, [{"params": {p}}])
    yield attempt(kind, [1])
    yield attempt(kind, ["a"])
    yield attempt(kind, [p * 2])
    yield attempt(kind, [p, p])
    yield attempt(kind, [{"params": [p]}, {"params": [p]}])
    yield attempt(kind, [("a", p), q])
    yield attempt(kind, [{"lr": 1}])
    optimizer = kind([("first", p)])
    yield optimizer.param_groups[0]["param_names"], optimizer.param_groups[0].keys()
    yield attempt(optimizer.add_param_group, {"params": q})
    optimizer.add_param_group({"params": [("second", q)], "lr": 0.5})
    yield [g["lr"] for g in optimizer.param_groups], repr(optimizer)
    yield attempt(optimizer.add_param_group, [r])
    optimizer = kind(iter([p, q]), lr=0.1)
    optimizer.add_param_group({"params": r, "momentum": 0.9})
    yield optimizer.state_dict(), optimizer.defaults, optimizer.state
    required = optimizer_module(torch).required
    yield repr(required), attempt(torch.optim.Optimizer, [p], {"lr": required})


@case
def zeroing(torch):
    optimizer, params = make(torch)
    grad = params[0].grad
    optimizer.zero_grad(set_to_none=False)
    yield grad, params[0].grad is grad
    params[1].grad = (params[1] * 2).clone()
    optimizer.zero_grad(False)
    yield params[1].grad, params[1].grad.requires_grad
    optimizer.zero_grad()
    yield params[0].grad, grad


@case
def state_dicts(torch):
    optimizer, params = make(torch, lr=0.1)
    optimizer.step()
    state = optimizer.state_dict()
    yield state
    yield state["state"][0]["exp_avg"] is optimizer.state[params[0]]["exp_avg"]
    other, more = make(torch, lr=0.7)
    other.load_state_dict(copy.deepcopy(state))
    yield other.param_groups[0]["lr"]
    for each in (optimizer, other):
        each.step()
    yield [p.detach() for p in more], other.state_dict()["state"]
    yield attempt(other.load_state_dict, {"state": {}, "param_groups": []})
    short = {"state": {}, "param_groups": [{**state["param_groups"][0], "params": [0]}]}
    yield attempt(other.load_state_dict, short)
    plain = copy.deepcopy(state)
    plain["state"][0]["step"] = 3
    plain["state"]["extra"] = [1, 2]
    other.load_state_dict(plain)
    yield other.state[more[0]]["step"], other.state["extra"]
    double = [torch.nn.Parameter(torch.ones(1, dtype=torch.float64)) for _ in range(3)]
    other = torch.optim.AdamW(double)
    other.load_state_dict(state)
    yield other.state_dict()


@case
def copies(torch):
    optimizer, _ = make(torch, lr=0.1)
    optimizer.step()
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        yield repr(twin), twin.state_dict()["state"][1]
        for p in twin.param_groups[0]["params"]:
            p.grad = torch.ones(1)
        twin.step()
        yield [p.detach() for p in twin.param_groups[0]["params"]]


@case
def hooks(torch):
    seen: list[Any] = []
    optimizer, params = make(torch)
    other, _ = make(torch)
    module = optimizer_module(torch)
    handles = [
        optimizer.register_step_pre_hook(
            lambda o, args, kwargs: seen.append(("pre", o is optimizer, len(args)))
        ),
        optimizer.register_step_post_hook(
            lambda o, args, kwargs: seen.append(("post", params[0].item()))
        ),
        module.register_optimizer_step_pre_hook(
            lambda o, args, kwargs: seen.append(("all pre", kwargs))
        ),
        module.register_optimizer_step_post_hook(
            lambda o, args, kwargs: seen.append(("all post", len(args)))
        ),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1}),
        optimizer.register_load_state_dict_pre_hook(
            lambda o, s: seen.append(sorted(s)), prepend=True
        ),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    optimizer.step(closure=None)
    optimizer.load_state_dict(optimizer.state_dict())
    other.step()
    yield list(seen)
    for handle in handles:
        handle.remove()
    seen.clear()
    optimizer.step()
    yield seen
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    error = attempt(optimizer.step)
    yield type(error), str(error).split(" must ")[1]
    yield str(error).split(" at ")[0]
    again, params = make(torch)
    again.register_step_pre_hook(
        lambda o, args, kwargs: (args[:1], {"closure": lambda: 5})
    )
    yield again.step()


@case
def closures(torch):
    p = torch.nn.Parameter(torch.tensor([2.0]))
    optimizer = torch.optim.SGD([p], lr=0.1)
    grad_mode = []

    def closure():
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        grad_mode.append(torch.is_grad_enabled())
        return loss

    with torch.no_grad():
        yield optimizer.step(closure).detach(), grad_mode, torch.is_grad_enabled()
    yield p.detach(), optimizer.step(closure).item(), torch.is_grad_enabled()


@case
def subclasses(torch):
    class Descent(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state["seen"] = torch.zeros_like(p)
                    state["seen"].add_(p.grad.abs())
                    p.add_(p.grad, alpha=-group["lr"])

    params = [torch.nn.Parameter(torch.tensor([1.0, 2.0]))]
    optimizer = Descent(params)
    for _ in range(3):
        optimizer.zero_grad()
        (params[0] ** 2).sum().backward()
        optimizer.step()
        yield params[0].detach().clone()
    yield optimizer.state_dict(), repr(optimizer), Descent.step.hooked
    plain = torch.optim.Optimizer(params, {})
    yield attempt(plain.step)


@case
def parameters_keep_their_identity(torch):
    optimizer, params = make(torch, lr=0.5)
    p = params[0]
    view, version = p.detach(), p._version
    optimizer.step()
    yield p.is_leaf, p.requires_grad, p.grad_fn, view, p._version > version
    yield torch.equal(p, view), p.grad


@case(message=False)
def parameters_without_shapes(torch):
    for name in ("Adagrad", "SGD", "Adam", "ASGD"):
        parameter = torch.nn.parameter.UninitializedParameter()
        made = attempt(lambda n=name, p=parameter: type(getattr(torch.optim, n)([p])))
        yield made if isinstance(made, Exception) else made.__name__
