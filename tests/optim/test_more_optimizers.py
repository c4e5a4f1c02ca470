"""Adafactor, Muon, LBFGS and SparseAdam, compared with PyTorch."""

from __future__ import annotations

import copy
from typing import Any

import torchshim
from tests.optim.test_rules import outcome, parameters, steps
from tests.oracle import attempt, case

ADAFACTOR: list[dict[str, Any]] = [
    {},
    {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "foreach": True},
    {"eps": (1e-3, 1e-2), "d": 2.0, "beta2_decay": -0.5},
]


def matrices(torch: Any, dtype: str = "float32") -> list[Any]:
    kind = getattr(torch, dtype)
    return [
        torch.nn.Parameter(torch.randn(*shape).to(kind)) for shape in ((3, 5), (4, 2))
    ]


@case.over({str(i): flags for i, flags in enumerate(ADAFACTOR)})
def adafactor(torch, flags):
    params = [*matrices(torch), *parameters(torch)]
    params.append(torch.nn.Parameter(torch.randn(2, 3, 2)))
    optimizer = torch.optim.Adafactor(params, **flags)
    steps(torch, optimizer, params, 4)
    yield outcome(optimizer, params)
    again = torch.optim.Adafactor(params)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(torch, again, params, 1)
    yield outcome(again, params), again.state_dict()["param_groups"]


@case
def adafactor_texts(torch):
    params, kind = parameters(torch), torch.optim.Adafactor
    yield repr(kind(params)), kind.__module__.split(".", 1)[1]
    for flags in (
        {"lr": -1.0},
        {"lr": torch.ones(2)},
        {"beta2_decay": 1.0},
        {"eps": (-1.0, 1.0)},
        {"eps": (None, -1.0)},
        {"d": 0.5},
        {"weight_decay": -1.0},
    ):
        yield attempt(kind, params, **flags)
    params = parameters(torch, "complex64")
    yield attempt(steps, torch, kind(params), params, 1)
    params, lr = parameters(torch), torch.tensor(0.1)
    optimizer = kind(params, lr=lr)
    steps(torch, optimizer, params, 2)
    yield outcome(optimizer, params)


@case.over(
    {
        "plain": {},
        "rms": {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "nesterov": False},
        "decay": {"lr": 0.1, "weight_decay": 0.5, "momentum": 0.5, "ns_steps": 3},
    }
)
def muon(torch, flags):
    for dtype in ("float32", "float64"):
        params = matrices(torch, dtype)
        optimizer = torch.optim.Muon(params, **flags)
        steps(torch, optimizer, params, 3)
        # Iterations in bfloat16: only where they agree to its precision.
        yield [(p.detach() * 64).round() for p in params]
        yield [optimizer.state[p]["momentum_buffer"] for p in params]


@case
def muon_texts(torch):
    params, kind = matrices(torch), torch.optim.Muon
    yield repr(kind(params)), kind.__module__.split(".", 1)[1]
    for flags in (
        {"lr": -1.0},
        {"momentum": -1.0},
        {"weight_decay": -1.0},
        {"adjust_lr_fn": "x"},
    ):
        yield attempt(kind, params, **flags)
    yield attempt(kind, parameters(torch))
    for flags in ({"ns_steps": 100}, {"ns_coefficients": (1.0, 2.0)}):
        yield attempt(steps, torch, kind(params, **flags), params, 1)
    complex_params = [torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))]
    yield attempt(steps, torch, kind(complex_params), complex_params, 1)


def fit(torch: Any, dtype: Any = None, **flags: Any) -> Any:
    """LBFGS on Rosenbrock's function and a least-squares problem."""
    p = torch.nn.Parameter(torch.tensor([-1.5, 2.0], dtype=dtype))
    q = torch.nn.Parameter(torch.tensor([[1.0], [3.0]], dtype=dtype))
    optimizer = torch.optim.LBFGS([p, q], **flags)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2 + (q**2).sum()
        loss.backward()
        calls.append(torch.is_grad_enabled())
        return loss

    return optimizer, (p, q), closure, calls


@case.over(
    {
        "plain": {"lr": 0.05, "max_iter": 6},
        "wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 6},
        "short": {"lr": 0.1, "history_size": 2, "max_iter": 5},
        "few": {"line_search_fn": "strong_wolfe", "max_eval": 5},
        "loose": {"lr": 0.05, "tolerance_change": 0.5},
    }
)
def lbfgs(torch, flags):
    optimizer, params, closure, calls = fit(torch, torch.float64, **flags)
    with torch.no_grad():
        for _ in range(3):
            yield optimizer.step(closure)
            yield [p.detach().clone() for p in params], len(calls), all(calls)
    state = dict(optimizer.state[params[0]])
    for name in ("old_dirs", "old_stps", "ro", "al"):
        state[name] = [v for v in state.get(name, []) if v is not None][:4]
    yield state, list(optimizer.state_dict()["state"])


def test_a_growing_history_is_few_programs():
    optimizer, params, closure, _ = fit(torchshim, lr=0.01, max_iter=5)
    optimizer.step(closure)
    before = torchshim.explain()
    for _ in range(6):
        optimizer.step(closure)
    assert len(optimizer.state[params[0]]["ro"]) > 16
    # One for each power of two: 8, 16 and 32, and what a second step does otherwise.
    assert len(torchshim.explain(before)) <= 8


@case
def lbfgs_state(torch):
    optimizer, params, closure, _ = fit(torch, lr=0.05, max_iter=3)
    optimizer.step(closure)
    state = optimizer.state_dict()
    yield {k: type(v).__name__ for k, v in state["state"][0].items()}
    other, more, closure, _ = fit(torch, lr=0.05, max_iter=3)
    with torch.no_grad():
        for p, q in zip(params, more, strict=True):
            q.copy_(p)
    other.load_state_dict(copy.deepcopy(state))
    other.step(closure)
    yield [p.detach() for p in more], other.state[more[0]]["n_iter"]
    # At the minimum nothing moves.
    for p in more:
        p.data = torch.zeros_like(p)
    more[0].data += 1
    yield other.step(closure), other.state[more[0]]["func_evals"]


@case
def lbfgs_texts(torch):
    p, kind = torch.nn.Parameter(torch.ones(2)), torch.optim.LBFGS
    yield repr(kind([p]))
    yield attempt(kind, [p], lr=-1.0)
    yield attempt(kind, [p], lr=torch.ones(2))
    yield attempt(kind, [{"params": [p]}, {"params": [torch.ones(1)]}])
    yield attempt(kind([p]).step)
    optimizer, _, closure, _ = fit(torch, line_search_fn="x")
    yield attempt(optimizer.step, closure)
    optimizer, params, closure, _ = fit(torch, lr=torch.tensor(0.05), max_iter=2)
    optimizer.step(closure)
    yield [p.detach() for p in params]


@case
def lbfgs_of_complex_parameters(torch):
    p = torch.nn.Parameter(torch.tensor([1 + 2j, -1j], dtype=torch.complex128))
    unused = torch.nn.Parameter(torch.ones(1, dtype=torch.complex128))
    optimizer = torch.optim.LBFGS([p, unused], lr=0.5, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = (p * p.conj()).real.sum() + (p.real**4).sum()
        loss.backward()
        return loss

    for _ in range(2):
        yield optimizer.step(closure), p.detach().clone()


@case
def sparse_adam(torch):
    p, kind = torch.nn.Parameter(torch.ones(2)), torch.optim.SparseAdam
    yield repr(kind([p]))
    for flags in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.5)}):
        yield attempt(kind, [p], **flags)
    yield attempt(kind, [torch.ones(1, dtype=torch.complex64)])
    optimizer = kind([p])
    yield optimizer.step(lambda: 3)
    p.grad = torch.ones(2)
    yield attempt(optimizer.step)


@case(warnings=False).over(False, True)
def sparse_adam_of_embeddings(torch, maximize):
    table = torch.nn.Embedding(6, 3, sparse=True)
    bag = torch.nn.EmbeddingBag(5, 3, mode="sum", sparse=True)
    params = [*table.parameters(), *bag.parameters()]
    optimizer = torch.optim.SparseAdam(params, lr=0.1, maximize=maximize)
    for i in range(4):
        optimizer.zero_grad()
        rows = table(torch.tensor([i, (i * 2) % 6, i]))
        loss = (rows**2).sum() + bag(torch.tensor([[i, 4]])).exp().sum()
        loss.backward()
        optimizer.step()
        yield loss, [p.detach().clone() for p in params]
    yield dict(optimizer.state[table.weight])


@case
def another_state_for_a_while(torch):
    swap = torch.optim.swap_in_optimizer_params_and_state
    params = parameters(torch)[:2]
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)

    def use(parameters, state):
        with swap(optimizer, parameters, state):
            for p in parameters.values():
                p.grad = torch.ones_like(p)
            optimizer.step()

    given = {"a": torch.zeros(2, 3), "b": torch.zeros(3)}
    yield attempt(use, given, optimizer.state_dict())
    steps(torch, optimizer, params, 1)
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 1.0
    before = [p.detach().clone() for p in params]
    use(given, state)
    yield given, state, outcome(optimizer, params)
    yield all(torch.equal(p, q) for p, q in zip(params, before, strict=True))
    yield optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["params"][0].shape
    group = state["param_groups"][0]
    for wrong in (
        [],
        {"state": []},
        {"state": {}},
        {"state": {params[0]: {}}, "param_groups": [group]},
        {"state": {0: 1}, "param_groups": [group]},
        {"state": {}, "param_groups": []},
        {"state": {}, "param_groups": [3]},
        {"state": {}, "param_groups": [{**group, "params": ["a", "b"]}]},
        {"state": {}, "param_groups": [{**group, "params": [0]}]},
        {"state": {}, "param_groups": [{**group, "more": 1}]},
        {"state": {7: {}}, "param_groups": [group]},
    ):
        yield attempt(use, given, wrong)
    yield attempt(use, {"a": given["a"]}, state)


def sparse_gradient(torch, rows):
    if rows:
        indices, values = torch.tensor([[0, 2, 0]]), torch.ones(3, 2)
    else:
        indices, values = torch.tensor([[0, 2, 0], [1, 1, 0]]), torch.arange(3.0)
    return torch.sparse_coo_tensor(indices, values, (3, 2))


SPARSE = {
    "sparse_adam": ("SparseAdam", {}),
    "sparse_adam_maximize": ("SparseAdam", {"maximize": True}),
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    "sgd_fused": ("SGD", {"lr": 0.1, "fused": True}),
    "adagrad": ("Adagrad", {"lr": 0.1, "maximize": True}),
    "adagrad_decay": ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "rmsprop": ("RMSprop", {}),
    "muon": ("Muon", {}),
}


@case(warnings=False).over(SPARSE)
def sparse_gradients(torch, kind, options):
    for rows in (True, False):
        p = torch.nn.Parameter(torch.arange(6.0).view(3, 2).clone())
        optimizer = getattr(torch.optim, kind)([p], **options)
        for _ in range(2):
            p.grad = sparse_gradient(torch, rows)
            yield attempt(optimizer.step), p.detach().clone()
        p.grad = torch.ones(3, 2)
        # A buffer that has been sparse takes no dense gradient.
        if kind != "SparseAdam" and "momentum" not in options:
            yield optimizer.step(), p.detach().clone()
