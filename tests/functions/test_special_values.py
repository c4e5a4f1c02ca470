"""Numbers that are not finite, zeros with a sign, and complex ones without a part."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

NAMES = {"inf": float("inf"), "nan": float("nan")}
INF, NAN = NAMES.values()
BASES = [0, 1, -1, 2 + 1j, 1j, INF, -INF, complex(0, INF), NAN, complex(0, NAN)]
BASES += [complex(INF, NAN), complex(-0.0, 0), 2, -2]
EXPONENTS = [0, 1, 2, 0.5, -1, -2, 1 + 1j, 1j, -1j, -1 - 1j, 3, INF, -INF, NAN]


@case
def complex_powers(torch):
    bases = torch.tensor(BASES, dtype=torch.complex64)[:, None]
    exponents = torch.tensor(EXPONENTS, dtype=torch.complex64)
    return bases**exponents


@case.over(sparse=[False, True], by_frequency=[False, True])
def gradients_of_rows_that_are_padding(torch, sparse, by_frequency):
    if sparse and by_frequency:
        return
    table = torch.ones(3, 2, requires_grad=True)
    flags = {"padding_idx": 1, "scale_grad_by_freq": by_frequency, "sparse": sparse}
    rows = torch.nn.functional.embedding(torch.tensor([0, 1, 1, 2]), table, **flags)
    rows.backward(torch.tensor([[1.0, 2.0], [NAN, INF], [3.0, 4.0], [5.0, -INF]]))
    yield table.grad.to_dense()


@case.over(0.5, -0.5)
def roots_by_powers(torch, exponent):
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([-INF, -0.0, 0.0, INF, NAN, -1.0, 4.0], dtype=kind)
        y = x.clone().requires_grad_()
        (y**exponent).sum().backward()
        # What is divided by shows the sign of a zero.
        yield x**exponent, 1 / x.pow(exponent), y.grad, x.pow_(exponent)


@case.lines("""
torch.tensor([nan, 0., 1., inf]) ** torch.zeros(4, dtype=torch.complex64)
torch.tensor([nan, 0j, 1j, inf]) ** 0
torch.tensor([nan, 0j, 1j, inf]) ** 0j
torch.tensor([nan, 0j, 1j, inf]) ** 0.5
torch.tensor([nan, 0j, 1j, inf]) ** 2
torch.tensor([0j, 1j, 2+1j]) ** -1
torch.tensor([0j, 1j, 2+1j]) ** 2.
torch.tensor([1j, 2+1j]) ** 3.
torch.tensor([-4, -0., 4.+1j]) ** 0.5
torch.tensor([-4, -0., 4.+1j]) ** (0.5+0j)
torch.tensor(0.) ** torch.zeros(2, dtype=torch.complex64)
torch.pow(nan, torch.zeros(2, dtype=torch.complex64))
torch.pow(0, torch.zeros(2, dtype=torch.complex64))
torch.pow(0j, torch.zeros(2, dtype=torch.complex64))
torch.tensor([1j, 2+1j]) + nan
torch.tensor([1j, 2+1j]) + torch.tensor([nan, 1.])
torch.tensor([1j, 2+1j]) - nan
nan - torch.tensor([1j, 2+1j])
torch.tensor([1j, 2+1j]) + inf
torch.tensor([complex(nan,1), complex(1,nan)]) + torch.tensor([1j, 1.])
torch.tensor([complex(nan,1), complex(1,nan)]) - torch.tensor([1j, 1.])
torch.add(torch.tensor([1+1j]), torch.tensor([nan+0j]), alpha=2)
torch.histc(torch.tensor([inf, inf]))
torch.histc(torch.tensor([-inf]))
torch.histc(torch.tensor([inf, inf]).double())
torch.histc(torch.tensor([-inf, -inf]).double())
torch.histc(torch.tensor([inf, inf]).half())
torch.histc(torch.tensor([inf, -inf]))
torch.histc(torch.tensor([nan, inf]))
torch.arange(0, 1e40, 1e39)
torch.arange(0, 1e6, 1e5, dtype=torch.half)
torch.linspace(0, inf, 3)
torch.logspace(1e40, 0, 3)
torch.logspace(50, 60, 3)
torch.renorm(torch.ones(2, 2), 2, 0, 1e40)
""")
def not_finite(torch, line):
    return evaluate(torch, line, **NAMES)


@case
def gradients_of_complex_sums(torch):
    x = torch.tensor([1j, 2 + 1j], requires_grad=True)
    y = torch.tensor([NAN, 1j], requires_grad=True)
    (x + y).abs().sum().backward()
    return x.grad, y.grad


@case.lines("""
x[x > 0] = torch.tensor(1j); x
x[x > 5] = torch.tensor(1j); x
x[x > 0] = torch.tensor(1+0j); x
x[x > 0] = torch.tensor([1j]); x
x[x > 0] = torch.tensor(2j, requires_grad=True); x
x[x > 0] = torch.tensor(1e300, dtype=torch.double); x
x[x > 0] = torch.tensor([[1e300]], dtype=torch.double); x
i[i > 0] = torch.tensor(1+0j); i
i[i > 0] = torch.tensor(1+1j); i
i[i > 0] = torch.tensor(1e300); i
i[i > 0] = torch.tensor(nan); i
m = i.byte(); m[i > 0] = torch.tensor(300); m
h = x.half(); h[x > 0] = torch.tensor(1e6); h
b[b] = torch.tensor([1+1j]); b
x.masked_fill(x > 0, torch.tensor(1+1j))
x.masked_fill(x > 0, torch.tensor(1e300).double())
i.masked_fill(i > 0, torch.tensor(1+1j))
""")
def written_through_masks(torch, line):
    x, b = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([True, False])
    return evaluate(torch, line, x=x, i=x.long(), b=b, **NAMES)


@case.lines("""
torch.add(torch.ones(2), np.complex64(1j))
torch.ones(2) * np.complex64(1+2j)
np.complex64(1+2j) * torch.ones(2)
torch.ones(2) * np.complex128(1+2j)
torch.full((2,), np.complex64(1+2j))
torch.ones(2).pow(np.complex64(2j))
torch.ones(2).fill_(np.complex64(1j))
torch.ones(2) == np.complex64(1)
torch.where(torch.tensor([True]), torch.ones(1), np.complex64(1j))
torch.add(torch.ones(2), 1, alpha=np.complex64(1j))
torch.tensor(np.complex64(1+2j))
F.pad(torch.ones(2), (1, 1), value=1j)
F.pad(torch.ones(2), (1, 1), value=1+0j)
F.pad(torch.ones(2) * 1j, (1, 1), value=1j)
torch.lerp(torch.ones(2), torch.zeros(2), torch.tensor(1j))
torch.lerp(torch.ones(2), torch.zeros(2), torch.tensor([1j]))
torch.lerp(torch.ones(2), torch.zeros(2), torch.tensor(0.5).double())
torch.lerp(torch.ones(2) * 1j, torch.zeros(2) * 1j, torch.tensor(0.5))
torch.lerp(torch.ones(2).long(), torch.ones(2).long(), torch.tensor(0.5))
torch.lerp(torch.ones(2), torch.zeros(2), 1j)
torch.ones(2).lerp_(torch.zeros(2), torch.tensor(1j))
torch.ones(2).long().lerp_(torch.ones(3).long(), 0.5)
torch.ones(2).long().lerp(torch.ones(2).long(), 0.5)
""")
def complex_numbers(torch, line):
    import numpy as np

    return evaluate(torch, line, np=np)


@case.lines("""
F.leaky_relu(x, 1e40)
F.elu(x, 1e40)
F.celu(x, 1e40)
F.hardtanh(x, 0, 1e40)
F.softplus(x, 1e40)
F.softplus(x, 1, 1e40)
F.hardshrink(x, 1e40)
F.hardshrink(x.half(), 1e6)
F.softshrink(x, 1e40)
F.softshrink(x.half(), -1)
F.softshrink(x.double(), -1)
F.softshrink(x.bfloat16(), 1e39)
F.leaky_relu(x, inf)
F.leaky_relu(x.half(), 1e6)
F.leaky_relu(x.half(), 1e40)
F.elu(x.double(), 1e40)
""")
def constants_of_activations(torch, line):
    return evaluate(torch, line, x=torch.tensor([1.0, -1.0]), **NAMES)


@case.lines("""
torch.zeros(True)
torch.zeros((True, 2))
torch.zeros(True, 2)
torch.eye(True)
torch.eye(2, True)
torch.randn((True, 2))
torch.full((True, 2), 1)
torch.randperm(True)
torch.randint(True, (2,))
torch.hann_window(True)
torch.tril_indices(True, 2)
torch.multinomial(torch.ones(3), True)
torch.fft.fft(x, True)
x.size(True)
x.stride(True)
x.select(0, True)
x.narrow(0, True, True)
x.narrow(0, 1, 1.)
x.narrow(0, torch.tensor(1), 1)
x.chunk(True)
x.split((True, True))
x.split((1., 1.))
x.unsafe_chunk(True)
x.roll(True)
x.roll(1.)
x.roll(1, True)
x.roll((True,), (0,))
x.roll((1.,), (0,))
x.roll([1], [0])
x.roll(torch.tensor(1))
x.roll(1, None)
""")
def truths_for_integers(torch, line):
    return evaluate(torch, line, x=torch.arange(6.0).reshape(2, 3))


@case(exact=True)
def an_identity_times_numbers(torch):
    """Zeros times what is negative or not finite, in one program with it."""
    x = torch.tensor([INF, -1.0, NAN])
    yield torch.eye(3) * x, torch.eye(3).half() * x.half(), torch.eye(2, 3) * -x.abs()
    yield torch.func.jacrev(torch.sin)(torch.tensor([1.0, 2.0])).signbit()
    yield torch.autograd.functional.jacobian(lambda x: x * -2, torch.ones(2))


@case(exact=True).over(
    "v.max()",
    "v.min()",
    "v.median()",
    "v.nanmedian()",
    "torch.maximum(v, w)",
    "torch.minimum(v, w)",
    "torch.max(v, w)",
    "torch.fmax(v, w)",
    "torch.fmin(w, v)",
    "v.amax()",
    "v.amin(1)",
)
def gradients_of_what_was_not_chosen(torch, text):
    """Zeros, which have no sign where the gradient is not multiplied."""
    for kind in (torch.float32, torch.float64):
        v = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, 3.0]], dtype=kind)
        w = torch.tensor([[1.0, 0.5, 0.5], [-3.0, NAN, 2.0]], dtype=kind)
        v.requires_grad_()
        w.requires_grad_()
        out = evaluate(torch, text, v=v, w=w)
        (-out).sum().backward()
        yield v.grad, w.grad
        for factor in (INF, NAN):
            yield torch.autograd.grad(
                evaluate(torch, text, v=v, w=w).sum() * factor, v, allow_unused=True
            )


@case
def variances_of_nothing(torch):
    z = torch.tensor([1.0, 2.0, 4.0]).to(torch.complex64)
    given = [z, z * (1 + 1j), torch.ones(0), torch.ones(0, 2), torch.ones(3).int()]
    for function in (torch.std, torch.var, torch.std_mean, torch.var_mean):
        for x in given:
            for correction in (3, -1):
                yield attempt(function, x, correction=correction)
            yield attempt(function, x, 5), attempt(function, x, (0, 0))


@case
def distances_of_bools_and_of_nothing(torch):
    ones, bools, ints = torch.ones(2), torch.ones(2).bool(), torch.ones(2).int()
    pairs = [(bools, ones), (ones, bools), (bools, bools), (ints, bools), (ints, ints)]
    pairs += [(ints, torch.ones(3).int()), (ones[:0], ones[:0]), (ones[:0], ones[:1])]
    for a, b in pairs:
        yield [attempt(torch.dist, a, b, p) for p in (2, 0, float("inf"), -1)]


@case
def ranges_of_histograms_are_checked_first(torch):
    for x in (torch.ones(3).bool(), torch.ones(3).int(), torch.ones(3) * 1j):
        yield attempt(torch.histc, x, min=2, max=1), attempt(torch.histc, x)
        yield attempt(torch.histc, x, min=float("nan"))


@case.over(
    "a.exp()",
    "a.expm1()",
    "torch.where(a < 0, a.exp(), 1)",
    "F.smooth_l1_loss(a, b)",
    "F.smooth_l1_loss(a, b, beta=0.5)",
    "F.huber_loss(a, b, reduction='sum')",
    "F.rrelu(a)",
    "F.hardswish(a)",
    "torch.det(torch.diag(a[:2].clamp(min=-2)))",
    "F.interpolate(a[None, None], scale_factor=2, mode='linear')",
    "F.interpolate(a.expand(1, 1, 3, 4), size=(2, 5), mode='bilinear')",
)
def gradients_beside_what_is_not_finite(torch, text):
    names = {**NAMES, "torch": torch, "F": torch.nn.functional}
    for first, second in (
        ([1, NAN, -2, 0.5], [1, 1, 1, 1]),
        ([90, -INF, 0, 2], [1] * 4),
    ):
        a = torch.tensor(first, dtype=torch.float32, requires_grad=True)
        b = torch.tensor(second, dtype=torch.float32, requires_grad=True)
        result = eval(text, {**names, "a": a, "b": b})
        yield result, torch.autograd.grad(result.sum(), (a, b), allow_unused=True)


@case
def infinite_distances(torch):
    a = torch.tensor([[INF], [1.0], [-INF], [0.0]])
    yield torch.cdist(a, torch.tensor([[2.0], [-1.0]]), p=INF)


@case
def gradients_beside_tiny_divisors(torch):
    for kind in (torch.float32, torch.float64):
        for scale in (1e-20, 1e-5, 1e25):
            a = torch.tensor([1.0, -2.0, 0.5], dtype=kind).mul(scale).requires_grad_()
            b = torch.tensor([1.0, 1.0, -4.0], dtype=kind).mul(scale).requires_grad_()
            (a / b).sum().backward()
            yield a.grad, b.grad
        x = torch.tensor([0, 1e-25, -1e-20, 1e-4, 1.0], dtype=kind, requires_grad=True)
        yield torch.autograd.grad(torch.sinc(x)[:3].sum(), x)


@case.over("none", "sum", "mean")
def classes_without_weight(torch, reduction):
    for value in (NAN, INF, -INF, 1.0):
        x = torch.tensor([[value, 1.0, 2.0], [3.0, 1.0, 2.0]], requires_grad=True)
        weight = torch.tensor([0.0, 1.0, 2.0])
        for goal in ([0, 1], [-100, 1], [2, 0]):
            for smoothing in (0.0, 0.1):
                loss = torch.nn.functional.cross_entropy(
                    x,
                    torch.tensor(goal),
                    weight,
                    reduction=reduction,
                    label_smoothing=smoothing,
                )
                yield loss, torch.autograd.grad(loss.sum(), x)


@case.over(0.5, NAN, -0.5, 1.5)
def probabilities_are_checked(torch, value):
    x = torch.tensor([0.25, value], requires_grad=True)
    y = torch.tensor([1.0, 0.25], requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy
    yield attempt(lambda: loss(x, y).item())
    yield attempt(lambda: loss(y, x).item())
    if value == 0.5:
        sure = torch.tensor([0.0, 1.0, 0.25], requires_grad=True)
        goal = torch.tensor([0.0, 1.0, 0.5], requires_grad=True)
        yield torch.autograd.grad(loss(sure, goal), (sure, goal))
