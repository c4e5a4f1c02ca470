"""Writes through `.data` to results that gradients use, or to what is used beside them.

PyTorch's formula uses what the memory holds by the time of the backward.
"""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case

COMPILED_EVERY = 16

FUNCTIONS = {
    "exp": lambda torch, x: x.exp(),
    "exp2": lambda torch, x: x.exp2(),
    "expm1": lambda torch, x: x.expm1(),
    "exp_": lambda torch, x: (x * 1).exp_(),
    "sigmoid": lambda torch, x: x.sigmoid(),
    "tanh": lambda torch, x: x.tanh(),
    "tan": lambda torch, x: x.tan(),
    "sqrt": lambda torch, x: x.sqrt(),
    "rsqrt": lambda torch, x: x.rsqrt(),
    "reciprocal": lambda torch, x: x.reciprocal(),
    "relu": lambda torch, x: x.relu(),
    "softmax": lambda torch, x: x.softmax(-1),
    "log_softmax": lambda torch, x: x.log_softmax(0),
    "logsumexp": lambda torch, x: x.logsumexp(0),
    "logsumexp, kept": lambda torch, x: x.logsumexp((0, -1), keepdim=True),
    "prod": lambda torch, x: x.prod(),
    "prod, along": lambda torch, x: x.prod(-1, keepdim=True),
    "max": lambda torch, x: x.max(),
    "min": lambda torch, x: x.min(),
    "amax": lambda torch, x: x.amax(0),
    "amin": lambda torch, x: x.amin(-1, keepdim=True),
    "std": lambda torch, x: x.std(),
    "std, along": lambda torch, x: x.std(1, keepdim=True, correction=0),
    "median": lambda torch, x: x[:, :1].median(),
    "cumprod": lambda torch, x: x.cumprod(-1),
    "cumprod, first": lambda torch, x: x.cumprod(0),
    "logcumsumexp": lambda torch, x: x.logcumsumexp(1),
    "i0e": lambda torch, x: torch.special.i0e(x),
    "ndtri": lambda torch, x: torch.special.ndtri(x / 4),
    "inv": lambda torch, x: torch.linalg.inv(x[:, 1:]),
    "cholesky": lambda torch, x: torch.linalg.cholesky(x @ x.T + torch.eye(2)),
    "cholesky, upper": lambda torch, x: torch.linalg.cholesky(x @ x.T, upper=True),
    "norm": lambda torch, x: x.norm(),
    "norm, 3": lambda torch, x: x.norm(3, 1),
    **{
        f"vector norm, {p}": lambda torch, x, p=p: torch.linalg.vector_norm(x, p, -1)
        for p in (0.5, 1, 1.5, 2, 3, float("inf"))
    },
}


def to_result(torch, x, y):
    y.data.mul_(2)


def to_piece(torch, x, y):
    y.data[(0,) * y.ndim] += 0.5


def to_operand(torch, x, y):
    x.data.add_(0.25)


def to_zero(torch, x, y):
    x.data[0, 0] = 0
    to_result(torch, x, y)


WRITES = {f.__name__: f for f in (to_result, to_piece, to_operand, to_zero)}


@case.over(name=list(FUNCTIONS), write=list(WRITES))
def overwritten_unseen(torch, name, write):
    for inner, read, create in product((False, True), repeat=3):
        values = [[0.5, 1.5, 1.0], [1.25, 0.25, 0.75]]
        x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        z = x * 1 if inner else x
        y = FUNCTIONS[name](torch, z)
        if read:
            y.sum().item()
        WRITES[write](torch, z, y)
        weights = torch.arange(1.0, y.numel() + 1).view_as(y)
        loss = (y * weights).sum()
        # (PyTorch's second derivatives of these are no tensors that can be read.)
        create = create and name not in ("vector norm, 1", "vector norm, inf")
        # (Where there are zeros PyTorch takes the operand for these then.)
        create = create and not (name.startswith("cumprod") and write == "to_zero")
        (g,) = torch.autograd.grad(loss, x, create_graph=create)
        yield g.detach()
        if create and g.requires_grad:
            yield torch.autograd.grad(g.square().sum(), x)


@case
def several_zeros(torch):
    for values in ([2.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 2.0], [0.0, 0.0, 0.0, 1.0]):
        x = torch.tensor([values, [1.0, 2.0, 3.0, 4.0]], requires_grad=True)
        y = x.cumprod(1)
        y.data.mul_(2)
        yield torch.autograd.grad((y * torch.arange(1.0, 9.0).view(2, 4)).sum(), x)


@case
def half_and_complex(torch):
    for dtype in (torch.bfloat16, torch.complex128):
        x = torch.tensor([0.5, 1.5], dtype=dtype, requires_grad=True)
        for function in ("exp", "tanh", "sqrt", "reciprocal", "prod", "cumprod"):
            y = getattr(x, function)(*([0] if function == "cumprod" else []))
            y.data.mul_(2)
            yield torch.autograd.grad(y.sum().abs(), x)


@case
def zeros_along_a_dimension(torch):
    """Gradients that are zero give zero, of numbers that nearly overflow too."""
    for dtype in (torch.float32, torch.complex128):
        for large in (1.0, 300.0, 1e4):
            x = torch.tensor([1.0, large, -large], dtype=dtype, requires_grad=True)
            y = x.logcumsumexp(0)
            y.data.mul_(1)
            for grad in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]):
                grad = torch.tensor(grad, dtype=dtype)
                (found,) = torch.autograd.grad(y, x, grad, retain_graph=True)
                yield found + 0
    with torch.no_grad():
        z = torch.tensor([1 + 2j, 2 - 1j], dtype=torch.complex128)
    z.requires_grad_()
    yield torch.autograd.gradcheck(lambda z: z.logcumsumexp(0), (z,), fast_mode=True)


@case
def often(torch):
    """A loop whose walks are remembered, with writes in some of its iterations."""
    for i in range(6):
        x = torch.tensor([0.5, 1.5], requires_grad=True)
        y = x.exp().tanh()
        if i in (2, 3, 5):
            y.data.mul_(0.5)
        y.sum().backward()
        yield x.grad


@case
def twice(torch):
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    y = x.exp()
    y.data.mul_(2)
    y.sum().backward()
    yield x.grad
    yield attempt(y.sum().backward)
    y = x.exp()
    y.mul_(2)
    y.data.mul_(2)
    yield attempt(y.sum().backward)


@case
def results_that_hooks_give_back(torch):
    """The gradient is that of the result that saved-tensor hooks unpack."""
    functions = {
        "exp": torch.exp,
        "expm1": torch.expm1,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "tan": torch.tan,
        "sqrt": torch.sqrt,
        "rsqrt": torch.rsqrt,
        "reciprocal": torch.reciprocal,
        "relu": torch.relu,
        "softmax": lambda x: torch.softmax(x, -1),
        "log_softmax": lambda x: torch.log_softmax(x, 0),
        "cumprod": lambda x: torch.cumprod(x, 1),
        "logsumexp": lambda x: torch.logsumexp(x, 1),
        "prod": lambda x: torch.prod(x, 1),
        "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
        "std": lambda x: torch.std(x, dim=1),
        "inv": torch.linalg.inv,
        "exp_": lambda x: x.mul(1).exp_(),
    }
    hooks = torch.autograd.graph.saved_tensors_hooks
    data = [[1.3, 0.4], [0.2, 0.9]]
    ways = {
        "rounded": (lambda t: t, lambda t: (t * 4).round() / 4),
        "copied": (lambda t: t.clone(), lambda t: t.clone()),
        "themselves": (lambda t: t, lambda t: t),
        "numpy": (lambda t: t.detach().numpy(), lambda a: torch.tensor(a)),
    }
    for name, function in functions.items():
        for pack, unpack in ways.values():
            x = torch.tensor(data, dtype=torch.float64, requires_grad=True)
            with hooks(pack, unpack):
                y = function(x)
            yield name, torch.autograd.grad(y.sum(), x, retain_graph=True)
            (grad,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
            yield grad.detach() if name == "inv" else grad
            yield torch.autograd.grad(grad.sum(), x, allow_unused=True)


@case
def results_overwritten_under_hooks(torch):
    """Hooks that give back what they got see what is written there later."""
    same = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    for read in (False, True):
        for function in (torch.exp, torch.tanh, lambda x: torch.softmax(x, 0)):
            x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
            with same:
                y = function(x)
            if read:
                yield y.tolist()
            with torch.no_grad():
                y.fill_(2)
            (y.sum() + x.logsumexp(0)).backward()
            yield x.grad

    def wrong(t):
        return torch.ones(4)

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, wrong):
        y = torch.ones(3, requires_grad=True).exp()
    yield type(attempt(y.sum().backward)).__name__


@case
def operands_that_hooks_give_back_written_to(torch):
    """The results beside them are as they were."""
    functions = (
        lambda x: x.prod(),
        lambda x: x.flatten().prod(),
        lambda x: x.cumprod(0).sum(),
        lambda x: x.logsumexp(0),
        lambda x: x.flatten().norm(),
        lambda x: x.std(0),
        lambda x: x.exp().sum(),
    )
    pairs = (
        (lambda x: x, lambda x: x),
        (lambda x: x.detach().clone(), lambda x: x),
        (lambda x: x.detach(), lambda x: x * 2),
    )
    for pack, unpack in pairs:
        for function in functions:
            for read in (False, True):
                x = torch.tensor([0.5, 0.75, 1.0], dtype=torch.float64)
                x.requires_grad_()
                with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                    y = function(x)
                if read:
                    y.item()
                x.data.add_(-0.25)
                y.backward()
                yield x.grad


VIEWS = {
    "slice": lambda x: x[0, :2],
    "column": lambda x: x.view(6, 1)[2:],
    "of a view": lambda x: x.mT[1:].unsqueeze(0),
}


@case.over(view=list(VIEWS), name=["exp", "tanh", "sigmoid", "relu", "sqrt", "rsqrt"])
def written_through_a_view_then_overwritten(torch, view, name):
    """The result is that piece of the memory; its versions may be the base's own."""
    writes = (
        lambda x, v: x.data.add_(0.25),
        lambda x, v: v.data.add_(0.25),
        lambda x, v: x.add_(0.25),
    )
    for write, apart, read, create in product(writes, *[(False, True)] * 3):
        values = torch.tensor([[0.5, 1.5, 1.0], [1.25, 0.25, 0.75]])
        w = torch.ones(2, 3, requires_grad=True)
        x = values.clone()
        if apart:
            x.data = values.clone()
        x.mul_(w)
        v = VIEWS[view](x)
        getattr(v, name + "_")()
        y = v.sum()
        if read:
            y.item()
        write(x, v)
        found = attempt(torch.autograd.grad, y, w, create_graph=create)
        yield found
        if create and isinstance(found, tuple) and name != "relu":
            yield attempt(torch.autograd.grad, found[0].sum(), w)
