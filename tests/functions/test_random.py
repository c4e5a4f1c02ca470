"""Random numbers, bit for bit, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case(exact=True)
def new_tensors(torch):
    torch.manual_seed(0)
    yield torch.rand(3, 2), torch.randn(20), torch.randn(3, 3)
    yield torch.randint(0, 10, (5,)), torch.randint(3, 7, (2, 2), dtype=torch.int32)
    yield torch.randperm(10), torch.normal(2.0, 3.0, (3,))
    yield torch.normal(torch.arange(3.0), torch.ones(3))
    yield torch.normal(torch.arange(3.0), 2.0), torch.normal(1.0, torch.ones(2))
    yield torch.bernoulli(torch.full((5,), 0.5))
    yield torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)
    yield torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 4, replacement=True)
    yield torch.rand(2, dtype=torch.complex64), torch.randn(3, dtype=torch.float64)
    yield torch.randn(3, dtype=torch.bfloat16), torch.rand(2, out=torch.empty(2))
    yield torch.rand(2, requires_grad=True), torch.rand(size=(2,)), torch.rand([2, 1])
    yield torch.randint(1, 5, size=(2,)), torch.randint(high=5, size=(2,))
    yield torch.randint(low=1, high=5, size=(2,))


@case(exact=True).over(
    ("uniform_", (1, 2)),
    ("normal_", (1, 2)),
    ("random_", ()),
    ("random_", (5,)),
    ("random_", (5, 9)),
    ("bernoulli_", ()),
    ("bernoulli_", (0.9,)),
    ("exponential_", (2,)),
    ("geometric_", (0.3,)),
    ("log_normal_", ()),
    ("cauchy_", ()),
)
def in_place(torch, name, arguments):
    def fill(x):
        return getattr(x, name)(*arguments)

    x = torch.empty(2, 3)
    yield fill(x) is x, x, x._version
    y = torch.ones(2, requires_grad=True) * 2
    z = y * 1
    fill(z)
    yield z
    z.sum().backward()
    yield fill(torch.empty(2, 3).t()), fill(torch.empty(4, 6)[:, ::2])
    yield fill(torch.empty(4, 6, 5).permute(2, 0, 1))[0]
    base = torch.zeros(3, 4)
    fill(base[1])
    yield base
    w = torch.ones(2, requires_grad=True)
    yield attempt(fill, w), attempt(fill, torch.ones(3).expand(2, 3))
    with torch.no_grad():
        yield fill(w), w.is_leaf, w._version
    saved = torch.ones(2, requires_grad=True) * 2
    square = saved * saved
    fill(saved)
    yield attempt(square.sum().backward)


@case(exact=True)
def like(torch):
    y = torch.empty(4, 6, 5).permute(2, 0, 1)
    yield torch.rand_like(y), torch.randn_like(y)[0], torch.randint_like(y, 5)[0]
    yield torch.rand_like(y).stride(), torch.randn_like(y, dtype=torch.float64)[0]
    yield torch.randint_like(y, high=5)[0], torch.randint_like(y, high=5, low=2)[0]
    yield torch.randint(high=5, size=(3,)), torch.randint(high=5, low=3, size=(3,))
    yield torch.randint_like(y, 2, 4)[0], torch.empty(5, 4).normal_()


@case(exact=True)
def generators(torch):
    g = torch.Generator().manual_seed(5)
    yield torch.rand(2, generator=g), torch.randn(2, generator=g)
    yield torch.randperm(3, generator=g), torch.empty(2).uniform_(generator=g)
    state = g.get_state()
    a = torch.rand(2, generator=g)
    g.set_state(state)
    yield (a == torch.rand(2, generator=g)).all(), state.dtype, state.shape, state[:16]
    twin = g.clone_state()
    yield torch.rand(1, generator=g), torch.rand(1, generator=twin)
    torch.manual_seed(3)
    yield torch.initial_seed(), g.initial_seed(), g.device
    yield torch.default_generator.initial_seed()
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    yield (a == torch.rand(2)).all()
    with torch.random.fork_rng():
        b = torch.rand(2)
    yield (b == torch.rand(2)).all()
    yield torch.thread_safe_generator(), torch.random.thread_safe_generator()


@case.lines("""
torch.randint(3, 3, (2,))
torch.randint(5)
torch.randint('a', (2,))
torch.randint(2.5, (2,))
torch.randperm(-1)
torch.randperm(300, dtype=torch.uint8)
torch.normal(0., -1., (2,))
torch.rand(2, dtype=torch.int64)
torch.randn(2, dtype=torch.int64)
torch.rand(2, generator=3)
torch.rand(-1)
torch.multinomial(torch.tensor([1, 2]), 1)
torch.multinomial(torch.ones(3), 4)
torch.multinomial(torch.ones(3), 0)
torch.multinomial(torch.ones(2, 2, 2), 1)
torch.empty(2).uniform_(3, 2)
torch.empty(2).uniform_(1, 2, 3)
torch.empty(2).normal_(std=-1)
torch.empty(2).exponential_(0)
torch.empty(2).geometric_()
torch.empty(2).geometric_(2)
torch.empty(2).bernoulli_(2)
torch.empty(2).random_(5, 5)
torch.empty(2, dtype=torch.int64).normal_()
torch.ones(2, requires_grad=True).uniform_()
torch.manual_seed(2**65)
torch.bernoulli(torch.tensor([2.]))
torch.bernoulli(torch.tensor([0.3, 0.4], requires_grad=True))
torch.Generator(3.5)
torch.Generator('meta')
""")
def errors(torch, line):
    return evaluate(torch, line)


@case
def draws_in_a_recording(torch):
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        y = x * torch.rand(3) + torch.randn(3)
        yield y.sum()
        (y * torch.randint(3, (3,))).sum().backward()
    yield x.grad


@case(exact=True)
def pending_parameters(torch):
    """What is known only when the recording runs changes no bit of the numbers."""
    torch.manual_seed(7)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        base = torch.arange(40, dtype=dtype).reshape(4, 10) / 64
        chance = base + 0.125
        yield torch.bernoulli(chance), torch.zeros(4, 10).bernoulli_(chance)
        yield torch.zeros(2, 10, dtype=torch.int64).bernoulli_(chance[0])
        yield torch.bernoulli(chance.t()), torch.bernoulli(chance.t()).stride()
        mean, std = base * 3, base.abs() + 1
        yield torch.normal(mean, std), torch.normal(mean[:, :1], std[0])
        yield (
            torch.normal(mean, 0.3),
            torch.normal(0.7, std),
            torch.normal(mean[0], std),
        )
        yield torch.normal(mean.float(), std), torch.normal(mean, std.float())
        point = mean[0, 0]
        yield torch.normal(point, 2.0), torch.normal(1.0, std[0, 0])
        yield torch.normal(point, std[0, 0]), torch.normal(point, std)
        weights = base + 0.5
        yield torch.multinomial(weights, 1)
        if dtype != torch.bfloat16:  # whose scores are often equal
            yield torch.multinomial(weights[1], 3)
            yield torch.multinomial(weights.t().contiguous().t(), 2)
            yield torch.multinomial((base.t() + 0.5), 2)
        yield torch.multinomial(weights, 5, replacement=True)
        yield torch.multinomial(weights[0], 2, True), torch.rand(2)
    mean = torch.ones(2, 3, dtype=torch.complex64) * 2
    yield torch.normal(mean, torch.ones(3) * 2)


@case
def wrong_pending_parameters(torch):
    x = torch.ones(3)
    yield attempt(lambda: torch.bernoulli(x * 2).tolist())
    yield attempt(lambda: torch.zeros(3).bernoulli_(x - 3).tolist())
    yield attempt(lambda: torch.normal(x, x - 2).tolist())
    yield attempt(lambda: torch.normal(0.0, x - 2).tolist())
    yield attempt(lambda: torch.normal(x * 2, torch.ones(3, dtype=torch.cfloat)))
    yield attempt(lambda: torch.multinomial(x - 2, 1).tolist())
    yield attempt(lambda: torch.multinomial(x - 1, 1).tolist())
    yield attempt(lambda: torch.multinomial(x / 0, 2, True).tolist())
    yield attempt(lambda: torch.multinomial(x - 1, 2, True).tolist())
    yield attempt(lambda: torch.multinomial(x - 2, 2, True).tolist())


@case
def normal_parameters(torch):
    """Parameters that require grad stay in the graph, with gradients of zero."""
    mean, std = (torch.ones(2, requires_grad=True) for _ in range(2))
    made = torch.normal(mean, std), torch.normal(mean, 2.0), torch.normal(1.0, std)
    grads = torch.autograd.grad(sum(m.sum() for m in made), (mean, std))
    return [m.grad_fn.name() for m in made], grads


@case
def no_weights(torch):
    for shape, count in (((0, 3), 2), ((0,), 2), ((2, 0), 1), ((2,), 0), ((2,), 3)):
        for replacement in (False, True):
            yield attempt(torch.multinomial, torch.ones(shape), count, replacement)
    yield attempt(torch.multinomial, torch.ones(2**24 + 1), 2)
    yield attempt(torch.searchsorted, torch.tensor(1.0), 1.0)


@case(exact=True, warnings=False).lines("""
torch.bernoulli(d)
d.bernoulli()
torch.poisson(d)
torch.normal(d, 1.0)
torch.normal(0.0, d)
torch.normal(d, torch.ones(2))
d.clone().bernoulli_(d)
torch.bernoulli(d) * d
""")
def tangents(torch, line):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        d = fw.make_dual(torch.tensor([0.25, 0.75]), torch.ones(2))
        yield fw.unpack_dual(evaluate(torch, line, d=d))
        leaf = torch.tensor([0.25, 0.75], requires_grad=True)
        d = fw.make_dual(leaf, torch.ones(2))
        yield fw.unpack_dual(evaluate(torch, line, d=d)).tangent
        with torch.no_grad():
            yield fw.unpack_dual(evaluate(torch, line, d=d)).tangent
