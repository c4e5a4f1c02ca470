"""Every optimizer and flag, several steps, compared with PyTorch."""

from __future__ import annotations

from typing import Any

from tests.oracle import attempt, case


def parameters(torch: Any, dtype: str = "float32") -> list[Any]:
    kind = getattr(torch, dtype)
    values = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]
    if kind.is_complex:
        values = [[v + 0.5j * v * v for v in row] for row in values]
    return [
        torch.nn.Parameter(torch.tensor(values, dtype=kind)),
        torch.nn.Parameter(torch.tensor(values[0], dtype=kind)),
        torch.nn.Parameter(torch.tensor(values[1][:1], dtype=kind)),
    ]


def steps(torch: Any, optimizer: Any, params: list[Any], n: int) -> None:
    """Steps with gradients that differ; a third parameter has some only."""
    for step in range(n):
        optimizer.zero_grad()
        for i, p in enumerate(params):
            if i < 2 or step % 2:
                p.grad = p.detach() * (1.5 - step % 3)
        optimizer.step()


def outcome(optimizer: Any, params: list[Any]) -> Any:
    return (
        [p.detach() for p in params],
        [dict(optimizer.state[p]) for p in params if p in optimizer.state],
    )


# The flags of each optimizer that change its formula.
FLAGS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
    ],
    "Adam": [
        {"lr": 0.1},
        {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
        {"lr": 0.1, "maximize": True, "betas": (0.5, 0.7), "eps": 1e-3},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "AdamW": [{"lr": 0.1}, {"lr": 0.1, "amsgrad": True, "maximize": True}],
    "RMSprop": [
        {"lr": 0.1},
        {"lr": 0.1, "centered": True, "momentum": 0.5},
        {"lr": 0.1, "weight_decay": 0.1, "alpha": 0.5, "maximize": True},
    ],
    "Adagrad": [
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "initial_accumulator_value": 0.5},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.5, "weight_decay": 0.1, "maximize": True}],
    "Adamax": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "betas": (0.5, 0.7)},
    ],
    "NAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "momentum_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "RAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "ASGD": [
        {"lr": 0.1},
        {"lr": 0.1, "t0": 2, "lambd": 0.1, "weight_decay": 0.1, "maximize": True},
    ],
    "Rprop": [
        {"lr": 0.1},
        {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2), "maximize": True},
    ],
}
CASES = {
    f"{name}-{i}": (name, flags)
    for name, all_flags in FLAGS.items()
    for i, flags in enumerate(all_flags)
}


@case.over(CASES)
def after_steps(torch, name, flags):
    params = parameters(torch)[:2]
    optimizer = getattr(torch.optim, name)(params, **flags)
    steps(torch, optimizer, params, 7)
    return outcome(optimizer, params)


@case.over("float64", "complex64")
def dtypes(torch, dtype):
    for name in FLAGS:
        params = parameters(torch, dtype)[1:2]
        optimizer = getattr(torch.optim, name)(params, lr=0.1)
        for step in range(2):
            params[0].grad = params[0].detach() * (step + 1)
            optimizer.step()
        yield name, outcome(optimizer, params)


@case.over("SGD", "Adam")
def some_gradients_missing(torch, name):
    params = parameters(torch)
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    steps(torch, optimizer, params, 4)
    return outcome(optimizer, params)


@case.over(*FLAGS)
def texts(torch, name):
    kind = getattr(torch.optim, name)
    params = parameters(torch)
    yield repr(kind(params)), kind.__module__.split(".", 1)[1]
    yield repr(kind([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=1))
    yield attempt(kind, params, lr=-1.0)
    yield attempt(kind, params, lr=torch.ones(2))
    yield attempt(kind, params, weight_decay=-1.0)
    yield attempt(kind, params, eps=-1.0)
    yield attempt(kind, params, betas=(1.0, 0.5))
    yield attempt(kind, params, betas=(0.5, -0.5))
    yield kind(params).state_dict()


@case.over("SGD", "Adam", "AdamW", "Adagrad")
def fused(torch, name):
    kind = getattr(torch.optim, name)
    params = parameters(torch)
    yield attempt(kind, params, fused=True, foreach=True)
    yield attempt(kind, params, fused=True, differentiable=True)
    optimizer = kind(params, fused=True)
    steps(torch, optimizer, params, 3)
    yield outcome(optimizer, params)
    params = parameters(torch)
    optimizer = kind(params, foreach=True)
    steps(torch, optimizer, params, 3)
    yield outcome(optimizer, params)


@case
def capturable_needs_an_accelerator(torch):
    for name in FLAGS:
        if name in ("SGD", "Adagrad"):
            continue
        for flags in ({}, {"foreach": True}):
            params = parameters(torch)
            kind = getattr(torch.optim, name)
            optimizer = kind(params, capturable=True, **flags)
            yield name, attempt(steps, torch, optimizer, params, 1)


@case
def foreach_is_not_differentiated(torch):
    for name in FLAGS:
        params = parameters(torch)
        optimizer = getattr(torch.optim, name)(
            params, foreach=True, differentiable=True
        )
        yield name, attempt(steps, torch, optimizer, params, 1)
    yield torch.optim.SGD(params, lr=float("nan")).defaults["lr"]


@case.over("SGD", "Adam", "AdamW", "RMSprop", "NAdam")
def learning_rate_as_a_tensor(torch, name):
    params = parameters(torch)
    lr = torch.tensor(0.1)
    optimizer = getattr(torch.optim, name)(params, lr=lr)
    steps(torch, optimizer, params, 2)
    lr.fill_(0.01)
    steps(torch, optimizer, params, 2)
    yield outcome(optimizer, params), optimizer.param_groups[0]["lr"]


@case
def adams_errors(torch):
    params = parameters(torch)
    kind = torch.optim.Adam
    yield attempt(kind, params, lr=torch.tensor(0.1), foreach=True)
    yield attempt(kind, params, betas=(0.9, torch.tensor(0.9)))
    yield attempt(kind, params, betas=(torch.ones(2) * 0.5, torch.ones(2) * 0.5))
    yield attempt(
        kind, params, betas=(torch.tensor(0.5), torch.tensor(0.5)), foreach=True
    )
    yield attempt(torch.optim.SGD, params, momentum=-1)
    yield attempt(torch.optim.SGD, params, nesterov=True)
    yield attempt(torch.optim.SGD, params, momentum=0.5, dampening=1, nesterov=True)
    yield attempt(torch.optim.Rprop, params, etas=(1.5, 2.0))
    yield attempt(torch.optim.Adadelta, params, rho=2.0)


@case.over("SGD", "Adam")
def through_the_step(torch, name):
    # The step itself is differentiated: a learnt learning rate.
    lr = torch.tensor(0.1, requires_grad=True)
    weight = torch.tensor([1.0, -2.0], requires_grad=True)
    param = weight.clone()
    param.grad = torch.tensor([0.5, 1.5])
    optimizer = getattr(torch.optim, name)([param], lr=lr, differentiable=True)
    optimizer.step()
    (param**2).sum().backward()
    yield param.detach(), weight.grad, lr.grad


@case.over(False, True)
def gradients_flow_through_nadams_products(torch, decoupled):
    leaves = [torch.tensor([1.0, -2.0]), torch.tensor([3.0])]
    products = [torch.tensor(0.9, requires_grad=True) for _ in leaves]
    params = [leaf.requires_grad_().clone() for leaf in leaves]
    flags = {"differentiable": True, "decoupled_weight_decay": decoupled}
    optimizer = torch.optim.NAdam(params, lr=0.1, weight_decay=0.1, **flags)
    for param, product in zip(params, products, strict=True):
        param.grad = torch.full_like(param, 0.5)
        optimizer.state[param] = {
            **{"step": torch.tensor(3.0), "mu_product": product.clone()},
            **{"exp_avg": param.grad * 0.5, "exp_avg_sq": param.grad * 0.3},
        }
    optimizer.step()
    sum((param**2).sum() for param in params).backward()
    yield [product.grad for product in products], [leaf.grad for leaf in leaves]
    yield [optimizer.state[param]["mu_product"] for param in params]
    optimizer.state[params[0]]["mu_product"] = products[0]
    yield attempt(optimizer.step)


@case.over("Adagrad", "SGD")
def fused_steps_refuse_complex_numbers(torch, name):
    param = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    optimizer = getattr(torch.optim, name)([param], fused=True)
    param.grad = torch.ones(2, dtype=torch.complex64)
    yield attempt(optimizer.step)


@case
def a_first_momentum_buffer_is_detached(torch):
    weight = torch.tensor([1.0, -2.0], requires_grad=True)
    grad = torch.tensor([0.5, 1.5], requires_grad=True)
    param = weight.clone()
    optimizer = torch.optim.SGD([param], lr=0.1, momentum=0.9, differentiable=True)
    for _ in range(3):
        param.grad = grad * 2
        optimizer.step()
    (param**2).sum().backward()
    yield param.detach(), weight.grad, grad.grad


@case
def the_count_is_a_tensor(torch):
    params = parameters(torch)
    optimizer = torch.optim.Adam(params, lr=0.1)
    steps(torch, optimizer, params, 2)
    count = optimizer.state[params[0]]["step"]
    yield count, count + 1, count.is_leaf, str(count.device)
    steps(torch, optimizer, params, 1)
    yield count, count is optimizer.state[params[0]]["step"], count.item()
    # A count that is changed decides the next step's bias corrections.
    count.fill_(100)
    steps(torch, optimizer, params, 1)
    yield count, params[0].detach()
    optimizer.state[params[0]]["step"] = torch.tensor(5.0)
    steps(torch, optimizer, params, 1)
    yield optimizer.state[params[0]]["step"], params[0].detach()
