"""Integers, floats and strings of other classes: enumerations, NumPy's arrays."""

from __future__ import annotations

import enum

import numpy as np

from tests.oracle import attempt, case, evaluate


class Axis(enum.IntEnum):
    LAST = 2


VALUES = ("cpu", "cpu:0", "reflect", "linear", "floor", "sum", "relu")
NAMES = ("CPU", "FIRST", "REFLECT", "LINEAR", "FLOOR", "SUM", "RELU")
# As `class Name(str, Enum)`, whose `str` is that of the member.
Name = enum.Enum("Name", dict(zip(NAMES, VALUES, strict=True)), type=str)


class Own(int):
    pass


class Share(float):
    pass


KINDS = {"enumeration": Axis.LAST, "own": Own(2), "numpy": np.int16(2)}


@case.over(
    call="""
        x.softmax(n)
        F.softmax(x, dim=n)
        x.max(n)
        x.max(dim=n).indices
        x.std(n), x.var(dim=(n,), correction=1)
        torch.std(x, correction=n)
        torch.quantile(x, 0.5, dim=n)
        x.sum((n, 0)), x.flatten(1, n), x.roll((n, n), (n, 0))
        x.repeat_interleave(n, 0)
        F.group_norm(x.reshape(1, 4, 6), n)
        F.pixel_shuffle(x.reshape(1, 4, 2, 3), n)
        F.glu(x, n)
        F.pad(x, (n, n))
        F.layer_norm(x.reshape(3, 4, 2), (n,))
        F.conv2d(x.reshape(1, 2, 3, 4), torch.ones(2, 1, 1, 1), groups=n)
        F.adaptive_avg_pool2d(x, (n, n))
        torch.Tensor(n).shape, torch.LongTensor(n).shape, torch.Tensor(n, 1).shape
        nn.LayerNorm(n).weight, nn.Softmax(n)(x), nn.Flatten(1, n)(x)
        torch.full((n,), n), torch.arange(n), torch.zeros(n, n)
        x.unbind(n)[0], x.select(n, 1), x.transpose(0, n), x.chunk(n, n)[1]
        x[..., n], x[:, :, :n], x.narrow(n, 0, 1), x.cumsum(n), x.topk(n, n)
    """.strip().split("\n        "),
    kind=[*KINDS],
)
def static(torch, call, kind):
    for _ in range(2):  # known, the second time
        x = torch.arange(24.0).reshape(2, 3, 4)
        yield evaluate(torch, call, x=x, n=KINDS[kind])


@case.lines("""
x.sum((n, 0))
x.flip((n,))
F.pad(x, (n, n))
F.layer_norm(x.reshape(3, 4, 2), (n,))
F.adaptive_avg_pool2d(x, (n, n))
F.avg_pool2d(x, (n, n))
x.roll((n, n), (n, 0))
x.amax((0, n))
torch.Tensor(n).shape
x.softmax(n)
x.unflatten(2, (n, n))
x.permute(n, 0, 1)
""")
def arrays_without_dimensions(torch, line):
    x = torch.arange(24.0).reshape(2, 3, 4)
    for _ in range(2):
        yield attempt(evaluate, torch, line, x=x, n=np.array(2))


@case.lines("""
F.leaky_relu(x, s)
F.elu(x, s)
torch.clamp(x, s, 3)
F.layer_norm(x, (2,), eps=s)
F.smooth_l1_loss(x, x + 1, beta=s)
torch.quantile(x, s)
torch.isclose(x, x + 0.25, rtol=s)
x.masked_fill(x > 1, s)
torch.optim.SGD([x], lr=s).param_groups[0]["lr"] * 2
""")
def own_floats(torch, line):
    return evaluate(torch, line, x=torch.ones(2), s=Share(0.5))


@case.lines("""
torch.device(S.CPU), torch.device(S.CPU, 0), torch.device(S.CPU) == torch.device("cpu")
x.to(S.CPU).device, torch.zeros(1, device=S.FIRST).device
nn.Linear(1, 1, device=S.CPU).to(S.CPU).weight.device
torch.Generator(S.CPU).device
F.pad(x, (1, 1), S.REFLECT)
F.interpolate(x, 2, mode=S.LINEAR)
torch.div(x, 2, rounding_mode=S.FLOOR)
F.mse_loss(x, x + 1, reduction=S.SUM)
nn.RNN(3, 2, nonlinearity=S.RELU).nonlinearity == "relu"
str(nn.ModuleDict({S.LINEAR: nn.ReLU()}))
""")
def own_strings(torch, line):
    return evaluate(torch, line, x=torch.arange(6.0).view(1, 2, 3), S=Name)
