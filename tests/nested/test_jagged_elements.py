"""Element-wise functions, copies and writes of jagged nested tensors."""

from __future__ import annotations

from tests.nested import seen, shown
from tests.nested.test_jagged import holes, jagged
from tests.oracle import case

ALONE = (
    "abs acos angle atan bitwise_not ceil cos erf erfinv exp expm1 floor frac isfinite "
    "isinf isnan lgamma log log1p logical_not neg positive reciprocal relu round rsqrt "
    "sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc"
).split()
LAYERS = (
    "celu elu gelu hardshrink hardsigmoid hardtanh leaky_relu mish relu relu6 selu "
    "sigmoid silu softplus softshrink softsign tanh tanhshrink"
).split()
TOGETHER = (
    "add atan2 bitwise_and copysign div eq fmax fmin fmod ge gt hypot ldexp le lt "
    "logaddexp logical_and maximum minimum mul ne nextafter pow remainder sub xlogy"
).split()


@case.over(name=ALONE)
def single(torch, name):
    return shown(torch, f"torch.{name}(x)", x=jagged(torch))


@case.over(name=LAYERS)
def activations(torch, name):
    return shown(torch, f"F.{name}(x)", x=jagged(torch))


@case.over(name=TOGETHER)
def pairs(torch, name):
    x = jagged(torch)
    yield shown(torch, f"torch.{name}(x, x + 1)", x=x)
    yield shown(torch, f"torch.{name}(x, torch.tensor([1., 2., 3.]))", x=x)
    yield shown(torch, f"torch.{name}(torch.tensor([1., 2., 3.]), x)", x=x)
    yield shown(torch, f"torch.{name}(x, y)", x=x, y=jagged(torch))


@case.lines(r"""
x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 / x, x / 2, x ** 2, 2 ** x, -x, abs(x), +x
x == x, x != 1, x < 1, x >= 0, 1 > x
~(x > 0), (x > 0) & (x < 2), (x > 0) | True, (x > 0) ^ (x > 1)
x % 2, x.long() << 1, x.long() >> 1
x // 2
x + torch.tensor(1.)
x + torch.ones(3), x + torch.ones(1, 1, 3), x + torch.ones(1, 3)
x + torch.arange(6.).view(2, 1, 3)
x + torch.arange(2.).view(2, 1, 1)
x + torch.arange(18.).view(2, 3, 3)
torch.arange(18.).view(2, 3, 3) * x
x.transpose(1, 2) + torch.arange(6.).view(2, 3, 1)
x.unsqueeze(1) + torch.arange(6.).view(2, 1, 1, 3)
x + torch.ones(2, 3)
x.transpose(1, 2) * torch.ones(2, 1, 1)
F.dropout(h, 0.5)
x.transpose(1, 2).add_(1), x.transpose(1, 2) * x.transpose(1, 2)
x + torch.ones(4, 1, 3)
x + torch.ones(5)
x + torch.ones(1, 1, 1, 3)
x + torch.ones(2, 2, 1, 3)
x.atan2(y)
x.add_(y)
x ** y
x.sum(-1) + torch.ones(2, 1)
x.sum(-1, keepdim=True) * x, x * x.sum(-1, keepdim=True)
x.clamp(0, 1), x.clamp(min=0.5), x.clamp(max=1), torch.clamp(x, min=x * 0 + 1)
x.clip(0, 1)
x.masked_fill(x > 0, 7.), x.masked_fill(x > 0, torch.tensor(2.))
torch.where(x > 0, x, 1.), torch.where(x > 0, x, -x)
torch.where(x > 0, x, torch.ones(3))
x.where(x > 0, 5.), x.where(x > 0, x * 10)
torch.where(x > 0, x, torch.ones(2, 1, 3))
x.lerp(x + 1, 0.5)
x.nan_to_num(), x.round(decimals=1), x.logit(0.1), x.polygamma(1) if False else 1
torch.addcmul(x, x, x)
torch.maximum(x, y)
torch.special.expit(x), torch.special.erf(x), torch.special.xlog1py(x, x)
torch.frexp(x)
F.relu(x, inplace=True), x
F.threshold(x, 0.5, 2.), F.leaky_relu(x, 0.3), F.elu(x, 2.)
F.gelu(x, approximate='tanh')
F.hardswish(x)
F.logsigmoid(x)
x.add_(1), x.mul_(2), x.sub_(x * 0.5), x.exp_(), x.clamp_(max=3), x.neg_(), x
x += 1; x *= 2; x -= 1; x /= 2; x
x.add_(torch.ones(3)), x._values
x.zero_(), x.fill_(3.), x
x.copy_(x * 2), x
x.copy_(y * 2), x
x.copy_(z)
x.apply_(lambda e: e + 1), x
z.add_(1); v, z
v = x.values(); v.add_(1); x
x[0].zero_(), x
x.unbind()[1].fill_(9.), x
x.clone(), x.clone() is x, x.contiguous() is x
x.transpose(1, 2).contiguous(), x.transpose(1, 2).clone()
h.clone(), h.contiguous(), h + 1, h.sin()
x.detach(), x.data
x.to(torch.float64), x.double(), x.half(), x.bfloat16(), x.long(), x.bool(), x.int()
x.to(torch.float32) is x, x.float() is x, x.cpu() is x, x.to('cpu') is x
x.to('cpu', torch.float64), x.to(x.double()), x.type(torch.int32), x.type_as(x.double())
torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2.)
torch.ones_like(x, dtype=torch.int32)
torch.empty_like(x).shape, torch.rand_like(x), torch.randn_like(x)
torch.randint_like(x, 5)
torch.zeros_like(x, requires_grad=True)
x.new_zeros(()), x.new_ones(())
x.new_zeros(3)
x._is_view(), x.share_memory_() is x
torch.isclose(x, x + 1e-9), torch.isclose(x, x + 1)
torch.testing.assert_close(x, x)
F.dropout(x, 0.5)
F.dropout(x, 0.5, training=False), F.dropout(x, 0.0)
torch.dropout(x, 0.5, False)
x.cumsum(1)
x.sort()
x.std()
x.norm()
x.flip(0)
x.repeat(1, 1, 1)
torch.allclose(x, x)
x.nonzero()
F.mse_loss(x, x)
F.normalize(x)
""")
def lines(torch, line):
    h = holes(torch)
    v = torch.arange(4.0)
    z = torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 1, 4]))
    return shown(torch, line, x=jagged(torch), y=jagged(torch), h=h, v=v, z=z)


@case
def writes_under_no_grad(torch):
    x = jagged(torch, requires_grad=True)
    with torch.no_grad():
        x.add_(1)
    return seen(x), x._version


@case
def zeros_of_inference(torch):
    with torch.inference_mode():
        x = jagged(torch)
        return seen(x * 2), (x * 2).is_inference()
