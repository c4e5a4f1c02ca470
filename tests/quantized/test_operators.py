"""What can be done with quantized tensors: views, writes, functions, pooling."""

from tests.oracle import attempt, case
from tests.quantized.shown import shown

_SETUP = """
T = torch.tensor; F = torch.nn.functional; nan = float('nan')
x = T([[-1., 0., 1., 2.], [.3, .26, -5., 100.]])
q = torch.quantize_per_tensor(x, .1, 10, torch.quint8)
other = torch.quantize_per_tensor(x, 1., 0, torch.quint8)
i = torch.quantize_per_tensor(torch.arange(12.).view(1, 3, 4) - 5, .25, 10, torch.qint8)
y = torch.arange(12.).view(3, 4)
b = T([.5, 1., 1.5])
c = torch.quantize_per_channel(y, T([.1, .2, .5]), T([1, 2, 3]), 0, torch.quint8)
w = torch.quantize_per_channel(y, T([.1, .2, .5, .7]), T([1, 2, 3, 4]), 1, torch.qint8)
"""


def _names(torch):
    exec(_SETUP, found := {"torch": torch})
    return found


@case(warnings=False).lines("""
q[0], q[0, 1], q[:, 1:], q[..., None].shape, q[T([1, 0])]
q.t(), q.T, q.view(8), q.reshape(4, 2), q.flatten(), q.permute(1, 0).contiguous()
q.unsqueeze(0).shape, q.squeeze().shape, q.expand(2, 2, 4).shape, q.select(0, 0)
q.narrow(0, 0, 1), q.split(1), q.chunk(2), q.unbind(), q.transpose(0, 1).is_contiguous()
q.flip(0), q.repeat(1, 2), q.as_strided((2,), (1,)), q.unfold(0, 1, 1).shape
q.movedim(0, 1).shape, q.unflatten(1, (2, 2)).shape, q.tensor_split(2, 1)
q.clone(), q.detach(), q.cpu(), q.data, q.index_select(0, T([0]))
list(q), torch.stack([q, q]), torch.cat([q, q], 1)
torch.cat([q, other]), torch.stack([q, other])
torch.channel_shuffle(q.view(1, 2, 2, 2), 2)
torch.pixel_shuffle(q.view(1, 8, 1, 1), 2).shape
c[1:], c[:, 1:], c[1], c[1, 2], c[::2], c[0]
c.narrow(0, 1, 2), c.split([1, 2]), c.unbind(), list(c), c.chunk(3)
c.unsqueeze(0), c.unsqueeze(1), c.unsqueeze(-1), c.view(3, 2, 2), c.squeeze(0)
w, w[0], w[:, 0], w[:, 1:3], w.int_repr()
c.clone(), c.contiguous(), c.detach(), c.to('cpu')
q.to('cpu') is q, q.to(q) is q, q.to(torch.quint8) is q, q.to('cpu', copy=True) is q
q == q, q != x, q > 0, q < x, 1. < q, q >= q.clone(), c > 1, c == c
torch.equal(q, q.clone()), torch.equal(q, other), torch.equal(q, x)
torch.equal(c, c.clone())
q[0, 1].item(), float(q[0, 2]), bool(q[0, 0]), int(q[0, 2])
torch.relu(q), F.relu(q), q.relu(), F.relu6(i)
F.hardtanh(q, 0, 1), torch.clamp(q, 0, 1)
q.clamp(max=1.), F.leaky_relu(i, .1), torch.threshold(i, .3, 1.), F.gelu(i)
q.sigmoid(), q.tanh(), F.hardsigmoid(q), i.sigmoid(), i.tanh(), F.hardsigmoid(i)
q.max(), q.min(), q.max(1), q.min(0), q.topk(1), q.argsort(), i.msort()
q.sort(), q.sort(1, True).values
q.mean(), q.mean(1), q.mean((0, 1), keepdim=True), q.std(1)
torch.empty_like(q).q_scale(), torch.ones_like(q), torch.full_like(q, 3.)
torch.empty_like(c).qscheme()
F.dropout(q, training=False)
F.max_pool1d(i, 2), F.max_pool2d(i[None], 2), F.max_pool2d(i[None], 2, padding=1)
F.avg_pool2d(i[None], 2), F.avg_pool2d(i[None], 3, padding=1)
F.adaptive_avg_pool2d(i[None], (1, 2))
F.avg_pool2d(i[None], 3, padding=1, count_include_pad=False)
F.interpolate(i[None], scale_factor=2)
F.interpolate(i[None], scale_factor=2, mode='bilinear')
F.upsample_nearest(i[None], (6, 2)), F.upsample_bilinear(i[None], scale_factor=2)
F.grid_sample(q[None, None], torch.rand(1, 2, 3, 2) * 3 - 1.5, align_corners=False)
F.pad(i, (1, 1)), F.pad(i, (1, 1), value=2.)
F.pad(i, (1, 1), mode='reflect')
torch.quantized_max_pool1d(i, [2]), torch.quantized_max_pool2d(i[None], [2, 2])
torch.quantized_max_pool3d(i[None], [1, 2, 2], [1, 1, 1], [0, 0, 0], [-3, 1, 1])
torch.quantized_max_pool3d(i[None], [1])
torch.quantized_max_pool2d(i[None], [2, 2], [1])
torch.quantized_max_pool2d(i[None], [2, 0])
torch.quantized_max_pool2d(i[None], [2, 2], [0, 1])
torch.quantized_max_pool2d(i[None], [2, 2], [], [1, 2])
torch.quantized_batch_norm(i.view(1, 3, 2, 2), b, b, b, b + 1, .1, .5, 3)
q.masked_fill(x > 0, 1.)
""")
def results(torch, line):
    return shown(eval(line, _names(torch)))


@case(warnings=False).lines("""
c.t()
c.permute(1, 0)
c.expand(3, 4)
c.flip(0)
c.resize_(3, 4)
c.masked_fill(y > 3, 0.)
torch.cat([c, c])
c.index_select(0, T([0]))
torch.relu(c)
c.sort()
c.max()
c.min()
c.mean()
c.item()
q.copy_(torch.quantize_per_tensor(x, 1., 0, torch.qint8))
x.copy_(q)
torch.empty_like(q, dtype=torch.float)
i.t_()
""")
def refused(torch, line):
    return shown(attempt(eval, line, _names(torch)))


@case(warnings=False)
def writes(torch):
    x = torch.tensor([[-1.0, 0.0, 1.0, 2.0], [0.3, 0.26, -5.0, 100.0]])
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    y = q.clone()
    seen = y.view(8)
    seen[0] = 5.0
    yield shown((y[0, 0], y._version))
    seen.fill_(2.0)
    yield shown((y, q))
    y[0] = torch.quantize_per_tensor(x[0], 1.0, 0, torch.quint8)
    yield shown(y)
    y[1] = x[1]
    y[1, 2] = 0.5
    yield shown((y, seen))
    yield shown(
        (y.copy_(x), y.copy_(torch.quantize_per_tensor(x, 1.0, 0, torch.quint8)))
    )
    yield shown((torch.relu_(y.copy_(x)), y.masked_fill_(x > 0, 1.0)))
    yield shown((y.resize_(2, 2), y.unsqueeze_(0).shape, y.squeeze_(0).shape))
    scales, zeros = torch.tensor([0.1, 0.01]), torch.tensor([10, 0])
    c = torch.quantize_per_channel(x, scales, zeros, 0, torch.quint8)
    yield shown((c.copy_(x * 2), c.fill_(0.5)))
    c[0] = x[0]
    yield shown(c)


@case(warnings=False)
def compared(torch):
    x = torch.tensor([0.5, 1.0])
    q = torch.quantize_per_tensor(x, 0.5, 1, torch.quint8)
    torch.testing.assert_close(q, q.clone())
    far = torch.quantize_per_tensor(x * 2, 0.5, 1, torch.quint8)
    yield shown(attempt(torch.testing.assert_close, q, far))


@case(warnings=False).lines("""
F.batch_norm(q, torch.ones(2), torch.ones(2))
F.layer_norm(q, (4,))
F.instance_norm(q)
F.group_norm(q, 1)
F.conv2d(q, torch.ones(2, 2, 1, 1))
F.conv_transpose2d(q, torch.ones(2, 2, 1, 1))
F.linear(q, torch.ones(4, 4))
F.softmax(q, 1)
F.log_softmax(q, 1)
F.silu(q)
q + q
q * q
q - q
q @ q
torch.exp(q)
q.sum()
""")
def refused_by_name(torch, line):
    """Which operator an error names; what follows differs."""
    q = torch.quantize_per_tensor(torch.ones(1, 2, 4, 4), 0.5, 0, torch.quint8)
    found = attempt(eval, line, {"torch": torch, "q": q, "F": torch.nn.functional})
    return type(found).__name__, str(found).partition(" backend.")[0]
