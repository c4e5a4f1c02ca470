"""The element-wise functions that are not one operator, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines("""
x = torch.tensor([1.0, 2.0]); torch.real(x) is x, x.real is x, x.conj() is x, +x is x
x = torch.tensor([1.0]); x.resolve_conj() is x, x.resolve_neg() is x, x.is_neg()
torch.imag(torch.tensor([1.0]))
torch.real(1)
torch.positive(torch.tensor([True]))
torch.conj(torch.tensor([1 + 2j, 3 - 1j]))
torch.conj_physical(torch.tensor([1 + 2j, 3 - 1j]))
torch.tensor([1 + 2j, 3 - 1j]).imag
torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
torch.equal(torch.tensor([1, 2]), torch.tensor([1.0, 3.0]))
torch.equal(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
torch.equal(torch.tensor([1, 2]), torch.tensor([[1, 2]]))
torch.equal(torch.tensor([1, 2]), 1)
torch.allclose(torch.tensor([1.0]), torch.tensor([1.00001]))
torch.allclose(torch.tensor([1.0]), torch.tensor([1.00001]), atol=1e-4)
torch.allclose(torch.tensor([float("nan")]), torch.tensor([float("nan")]))
torch.tensor([float("nan")]).allclose(torch.tensor([float("nan")]), equal_nan=True)
torch.allclose(torch.tensor([1.0]), torch.tensor([1]))
torch.where(torch.tensor([[True, False], [True, True]]))
torch.tensor([1.0, 2.0]).where(torch.tensor([True, False]), 0.5)
torch.where(torch.tensor([1, 0], dtype=torch.uint8), 1.0, 2.0)
torch.float_power(torch.tensor([2, 3]), 2)
torch.float_power(2, torch.tensor([2, 3]))
torch.float_power(torch.tensor([2.0, 3.0]), torch.tensor([1j, 2]))
torch.float_power(2, 3)
torch.tensor([2.0], dtype=torch.float64).float_power_(2)
torch.tensor([2.0]).float_power_(2)
torch.tensor([1, 2, -3]) ** -1
2 / torch.tensor([1, 4])
7 // torch.tensor([2, -2])
7 % torch.tensor([2, -2])
1 << torch.tensor([1, 2])
-torch.tensor([True])
torch.tensor([1.5]) & 1
""")
def lines(torch, line):
    return evaluate(torch, line)


@case
def real_and_imaginary_parts_share_memory(torch):
    z = torch.tensor([1 + 2j, 3 + 4j])
    pairs = torch.view_as_real(z)
    pairs.mul_(2)
    yield z, pairs
    z.real.add_(1)
    yield z, pairs
    z.imag = torch.tensor([0.5, -0.5])
    yield z, z.imag, pairs[:, 1]
    back = torch.view_as_complex(pairs)
    back.zero_()
    yield z


@case
def gradients_of_parts(torch):
    z = torch.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    y = z.real * z.imag + z.conj().imag
    y.sum().backward()
    yield y, z.grad


@case
def gradients_of_saturated_units_are_zero(torch):
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([7, 9, 9.1, 12, -15, 20], dtype=dtype, requires_grad=True)
        x.tanh().sum().backward()
        yield x.grad == 0, x.grad.log2().round()


@case
def float_power_gradient(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.float_power(x, 3)
    y.sum().backward()
    yield y, x.grad


@case
def no_derivative(torch):
    x = torch.tensor([5.0], requires_grad=True)
    for y in (x // 2, torch.heaviside(x, x)):
        yield y
        yield attempt(y.sum().backward)


@case
def integers_divided_by_zero_change_nothing(torch):
    x = torch.tensor([1, 2])
    yield attempt(lambda: (x // torch.tensor([1, 0])).tolist())
    yield attempt(lambda: (x % 0).tolist())
    yield x + 1
