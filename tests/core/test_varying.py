"""Floats of layers and losses that a schedule changes: compiled in, then given."""

from __future__ import annotations

import pytest

from tests.oracle import attempt, case

UP = (0.3, 0.35, 0.45, 0.6, 0.75)
ORDERS = (1.3, 2.5, 1.7, 0.6, 3.0)


def images(x):
    return x.reshape(1, 4, 3, 1)


def labels(torch):
    return torch.tensor([0, 3, 2])


def half(torch):
    """Probabilities of each class."""
    return torch.linspace(0.1, 1.2, 12).reshape(3, 4)


def shifted(torch):
    return torch.linspace(-1.1, 1.3, 12).reshape(3, 4)


def renormed(torch, x, v, p):
    """In place, and not differentiable: what a table becomes."""
    table = x.detach().clone()
    return torch.embedding_renorm_(table, torch.tensor([0, 2]), v, p) * x


# By operator, and the values that its number takes where these are not `UP`. Where the
# derivative has none in PyTorch, only the first is compared.
CASES = {
    "leaky_relu": lambda torch, F, x, v: F.leaky_relu(x, v),
    "elu": lambda torch, F, x, v: F.elu(x, v),
    "celu": lambda torch, F, x, v: F.celu(x, v),
    "softplus": lambda torch, F, x, v: F.softplus(x, v),
    "softplus, threshold": lambda torch, F, x, v: F.softplus(x, 1.5, v - 0.5),
    "hardtanh": lambda torch, F, x, v: F.hardtanh(x, -v, 1.5 * v),
    "hardshrink": lambda torch, F, x, v: F.hardshrink(x, v),
    "softshrink": lambda torch, F, x, v: F.softshrink(x, v),
    "logit": lambda torch, F, x, v: torch.logit(x.sigmoid(), v / 3),
    "smooth_l1_loss": lambda torch, F, x, v: F.smooth_l1_loss(
        x, shifted(torch), beta=v
    ),
    "huber_loss": lambda torch, F, x, v: F.huber_loss(x, shifted(torch), delta=v),
    "smoothed_nll_loss": lambda torch, F, x, v: F.cross_entropy(
        x, labels(torch), label_smoothing=v
    ),
    "soft_cross_entropy": lambda torch, F, x, v: F.cross_entropy(
        x, half(torch), label_smoothing=v
    ),
    "_bounded_below": lambda torch, F, x, v: F.gaussian_nll_loss(
        x, shifted(torch), half(torch), eps=v
    ),
    "multi_margin_loss": lambda torch, F, x, v: F.multi_margin_loss(
        x, labels(torch), margin=v
    ),
    "layer_norm": lambda torch, F, x, v: F.layer_norm(x, (4,), eps=v),
    "rms_norm": lambda torch, F, x, v: F.rms_norm(x, (4,), eps=v),
    "group_norm": lambda torch, F, x, v: F.group_norm(images(x), 2, eps=v),
    "batch_norm_train": lambda torch, F, x, v: F.batch_norm(
        images(x), None, None, training=True, eps=v
    ),
    "batch_norm_eval": lambda torch, F, x, v: F.batch_norm(
        images(x), torch.zeros(4), torch.ones(4), eps=v
    ),
    "instance_norm_train": lambda torch, F, x, v: F.instance_norm(images(x), eps=v),
    "instance_norm_eval": lambda torch, F, x, v: F.instance_norm(
        images(x), torch.zeros(4), torch.ones(4), use_input_stats=False, eps=v
    ),
    "local_response_norm": lambda torch, F, x, v: F.local_response_norm(
        images(x), 2, alpha=v, beta=v + 0.5, k=v
    ),
    "cosine_similarity": lambda torch, F, x, v: F.cosine_similarity(
        x, shifted(torch), eps=v
    ),
    "pairwise_distance": lambda torch, F, x, v: F.pairwise_distance(
        x, shifted(torch), p=v, eps=v / 10
    ),
    "cdist": lambda torch, F, x, v: torch.cdist(x, shifted(torch), p=v),
    "pdist": lambda torch, F, x, v: torch.pdist(x, p=v),
    "dist": lambda torch, F, x, v: torch.dist(x, shifted(torch), p=v),
    "norm": lambda torch, F, x, v: x.norm(v, dim=1),
    "vector_norm": lambda torch, F, x, v: torch.linalg.vector_norm(x, v),
    "vector_norm, complex": lambda torch, F, x, v: torch.linalg.vector_norm(
        torch.complex(x, shifted(torch)), v
    ),
    "renorm": lambda torch, F, x, v: x.renorm(v, 0, v),
    "embedding_renorm": lambda torch, F, x, v: renormed(torch, x, v, v),
    "isclose": lambda torch, F, x, v: (
        torch.isclose(x, shifted(torch), rtol=v, atol=v / 10) * x
    ),
    "allclose.values": lambda torch, F, x, v: (
        x * float(torch.allclose(x, shifted(torch), rtol=v, atol=v * 2))
    ),
    "quantile.scalar": lambda torch, F, x, v: x.quantile(v, 1),
    "nanquantile.scalar": lambda torch, F, x, v: x.nanquantile(v),
    "fused_attention": lambda torch, F, x, v: F.scaled_dot_product_attention(
        x.reshape(1, 1, 3, 4), *[shifted(torch).reshape(1, 1, 3, 4)] * 2, scale=v
    ),
    "attention": lambda torch, F, x, v: F.scaled_dot_product_attention(
        x, shifted(torch), shifted(torch), dropout_p=v
    ),
}
VALUES = dict.fromkeys(
    ("pairwise_distance", "cdist", "pdist", "dist", "norm", "vector_norm", "renorm"),
    ORDERS,
)
VALUES |= {"vector_norm, complex": ORDERS, "embedding_renorm": ORDERS}
# What has no derivative of its derivative in PyTorch.
ONCE = (
    "multi_margin_loss",
    "cdist",
    "pdist",
    "fused_attention",
    "vector_norm, complex",
    "attention",
    "batch_norm_eval",
    "instance_norm_eval",
)


def start(torch):
    """Some elements within the bounds of the functions, others beyond."""
    x = torch.tensor([-2.0, -0.7, -0.4, -0.2, 0.1, 0.31, 0.5, 0.65, 0.9, 1.4, 2.0, 3.0])
    return x.reshape(3, 4).requires_grad_()


@case.over(*CASES)
def follows_a_schedule(torch, name):
    for v in VALUES.get(name, UP):
        torch.manual_seed(0)
        x = start(torch)
        y = CASES[name](torch, torch.nn.functional, x, v)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=name not in ONCE)
        yield y, g.detach()
        if g.requires_grad:
            yield torch.autograd.grad((g * g).sum(), x)


@case
def values_with_an_algorithm_of_their_own(torch):
    F = torch.nn.functional
    x = start(torch)
    t = shifted(torch)
    for v in (0.5, 0.7, 0.0, 0.9, 1.0, 2.0, 2.5, float("inf"), -0.5, 0.8, float("nan")):
        yield v
        yield attempt(F.leaky_relu, x, v)
        yield attempt(F.softshrink, x, v)
        if v == v:
            yield attempt(F.hardtanh, x, v - 1, v)
        yield attempt(F.smooth_l1_loss, x, t, beta=v)
        yield attempt(F.huber_loss, x, t, delta=v)
        yield attempt(F.celu, x, v)
        yield attempt(F.cross_entropy, x, labels(torch), label_smoothing=v)
        yield attempt(x.quantile, v)
        yield attempt(F.layer_norm, x, (4,), eps=v)
        yield attempt(x.norm, v)
        yield attempt(x.renorm, v, 0, 1.0)
        yield attempt(x.renorm, 2, 0, v)
        yield attempt(torch.cdist, x, t, v)


@case
def numbers_as_they_come(torch):
    """Integers, NumPy's numbers and tensors among the values."""
    np = pytest.importorskip("numpy")
    for v in (1, 2.5, np.float64(0.5), np.float32(0.25), torch.tensor(0.75), 3, True):
        yield torch.nn.functional.softplus(start(torch), v)
        yield attempt(torch.nn.functional.leaky_relu, start(torch), v)


@case
def in_place(torch):
    for v in (0.2, 0.3, 0.4, -0.5):
        x = start(torch)
        y = torch.nn.functional.leaky_relu_(x * 1, v)
        yield y.detach()
        yield attempt(torch.autograd.grad, y.sum(), x)
        z = torch.nn.functional.hardtanh_(x * 1, -v - 1, v + 1)
        yield z, torch.autograd.grad(z.sum(), x)


@case.over("float16", "bfloat16", "float64", "int64", "uint8")
def kinds(torch, dtype):
    F, kind = torch.nn.functional, getattr(torch, dtype)
    x = (start(torch).detach() * 3).to(kind)
    for v in (0.3, 0.7, 1.3, 40.0, 3000.0):
        yield attempt(F.leaky_relu, x, v)
        yield attempt(F.hardtanh, x, v, 2 * v)
        yield attempt(F.hardtanh, x, -v - 1, v)
        yield attempt(F.softplus, x, v)
        yield attempt(F.huber_loss, x, x + 1, delta=v)
        yield attempt(F.layer_norm, x, (4,), eps=v)
        yield attempt(F.softshrink, x, v)


@case
def on_one_line(torch):
    """Blocks of one network, whose number is another in each."""
    for step in range(4):
        x, total = start(torch), torch.zeros(())
        for block in range(6):
            x = torch.nn.functional.elu(x * 1.1, 0.2 + 0.1 * block + 0.01 * step)
            total = total + torch.nn.functional.huber_loss(x, x * 0, delta=block + 1)
        yield total.item()


@case
def many_iterations(torch):
    for step in range(3):
        x, w = start(torch), torch.eye(4) * 0.99
        y = x
        for i in range(40):
            y = torch.nn.functional.layer_norm(y @ w, (4,), eps=0.01 * i + 0.1 * step)
            y = torch.nn.functional.leaky_relu(y, 0.02 * i + 0.001)
        yield y, torch.autograd.grad(y.square().sum() + y.prod(), x)


@case
def read_before_the_backward(torch):
    found = []
    for v in (0.3, 0.4, 0.6, 0.9):
        x = start(torch)
        y = torch.nn.functional.elu(x, v)
        yield y.sum().item()
        found.append((x, y))
    for x, y in reversed(found):
        yield torch.autograd.grad(y.sum(), x)


@case
def what_nodes_show(torch):
    for v in (0.3, 0.4, 0.6, 2):
        x = start(torch)
        F = torch.nn.functional
        yield F.leaky_relu(x, v).grad_fn._saved_negative_slope
        node = F.softplus(x, v, v + 1).grad_fn
        yield float(node._saved_beta), node._saved_threshold
        yield torch.linalg.vector_norm(x, v + 0.1, 0).grad_fn._saved_ord
        yield F.layer_norm(x, (4,), eps=v / 7).grad_fn.name()


@case
def results_given_other_data(torch):
    for v in (1.5, 2.5, 3.5, 0.7):
        x = start(torch)
        y = x.norm(v, dim=1)
        y.data = y.data * 1.5
        yield torch.autograd.grad(y.sum(), x)


@case(warnings=False)
def transforms(torch):
    F = torch.nn.functional
    for v in (0.3, 0.4, 0.6, 0.9):

        def loss(row, v=v):
            normed = F.layer_norm(F.celu(row, v), (4,), eps=v)
            return F.smooth_l1_loss(normed, row, beta=v) + row.norm(v + 1)

        x = start(torch).detach()
        yield torch.func.vmap(loss)(x)
        yield torch.func.vmap(torch.func.grad(loss))(x)
        yield torch.func.jvp(loss, (x[0],), (x[1],))
        yield torch.func.hessian(lambda row: F.elu(row, 1.5).square().sum())(x[0])


def operators():
    from torchshim._core.op import REGISTRY

    return {name for name, op in REGISTRY.items() if op.varies}


def test_every_operator_with_floats_that_vary_is_among_the_cases():
    assert operators() == {name.split(",")[0] for name in CASES}


@pytest.mark.parametrize("name", sorted(operators()))
def test_their_names_are_those_of_static_parameters(name):
    from torchshim._core.op import IN_RANGE, REGISTRY, STATIC

    op = REGISTRY[name]
    roles = {p.name: p.role for p in op.params}
    for parameter, (low, high, *special) in op.varies.items():
        assert roles[parameter] == STATIC
        assert low < IN_RANGE < high and IN_RANGE not in special


# Of each step: one that reads a value within the loss is two, and what precedes the
# gradients is run apart once it has been a third thing.
PROGRAMS = {
    "_bounded_below": [2, 1, 0, 0, 0],
    "allclose.values": [2, 1, 0, 0, 0],
    "isclose": [1, 2, 2, 0, 0],
}


@pytest.mark.parametrize("name", CASES)
def test_the_second_value_is_the_last_program(compiled, name):
    import torchshim as torch

    made = []
    for v in VALUES.get(name, UP):
        x = start(torch)
        before = compiled()
        loss = CASES[name](torch, torch.nn.functional, x, v).sum()
        loss.backward()
        (loss.detach() + x.grad.sum()).item()
        made.append(compiled() - before)
    assert made == PROGRAMS.get(name, [1, 1, 0, 0, 0])


def test_values_of_their_own_are_programs_of_their_own(compiled, all_compiled):
    import torchshim as torch

    made = []
    for slope in (0.3, 0.2, 0.1, 0.0, 0.15, 0.0, 0.25):
        before = compiled()
        torch.nn.functional.leaky_relu(start(torch), slope).sum().item()
        made.append(compiled() - before)
    assert made == [1, 1, 0, 1, 0, 0, 0]


def test_a_training_in_which_all_numbers_follow_schedules_is_two_programs(compiled):
    import torchshim as torch
    from torchshim import nn

    torch.manual_seed(0)
    norm, act, drop = nn.LayerNorm(8), nn.LeakyReLU(0.3), nn.Dropout(0.5)
    model = nn.Sequential(nn.Linear(4, 8), norm, act, drop, nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    made = []
    for step in range(1, 7):
        before = compiled()
        norm.eps, act.negative_slope = 1e-5 * step, 0.3 / step
        drop.p, criterion.label_smoothing = 0.5 / step, 0.1 / step
        optimizer.param_groups[0].update(lr=1e-3 * step, weight_decay=0.1 / step)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1 / step)
        optimizer.step()
        assert loss.item() > 0
        made.append(compiled() - before)
    assert made == [1, 1, 0, 0, 0, 0]
