"""Casts, copies and other memory, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


@case(raises=AssertionError).lines(r"""
torch.ones(2).contiguous(memory_format=torch.channels_last)
torch.ones(2).contiguous(memory_format=torch.preserve_format)
torch.ones(2).clone(memory_format=torch.channels_last)
torch.ones(2).to()
torch.ones(2).to('foo')
torch.ones(2).to(torch.float64, torch.int64)
torch.ones(2).to('cpu', torch.float64)
torch.ones(2).to(torch.ones(2,dtype=torch.int32))
torch.ones(2).to(dtype=torch.float64)
torch.ones(2).to(device='cpu', dtype=torch.float64, non_blocking=True)
x=torch.ones(2);x.to('cpu') is x
x=torch.ones(2);x.to(torch.float32,copy=True) is x
torch.ones(2).cpu()
torch.ones(2).type()
torch.ones(2).type(torch.float64)
torch.ones(2).type('torch.DoubleTensor')
torch.ones(2).type(torch.LongTensor)
torch.ones(2).type(3)
torch.ones(2).type(int)
torch.ones(2).type([])
torch.ones(2).type(np.float32)
torch.ones(2).type(torch.nn.Parameter)
torch.ones(2,dtype=torch.int32).type(torch.Tensor)
torch.ones(2,dtype=torch.int32).type('torch.Tensor')
torch.ones(2).type('float')
torch.ones(2).type(torch.int32,foo=1)
torch.ones(2).cuda('cpu')
torch.ones(2).xpu()
torch.ones(2).xpu('cpu')
torch.ones(2).mtia()
torch.ones(2).mtia('cpu')
torch.ones(2).ipu('cpu')
torch.nn.Linear(1, 1).xpu()
torch._C._nn._parse_to('cpu', torch.half, memory_format=torch.channels_last)
torch._C._nn._parse_to(torch.ones(1).double(), non_blocking=True)
torch._C._nn._parse_to('cpu', copy=True)
torch.ones(2).type('foo')
torch.ones(2).type_as(torch.ones(2,dtype=torch.int32))
(torch.ones(2,requires_grad=True)).double()
(torch.ones(2,requires_grad=True)).to(torch.int64)
(torch.ones(2,requires_grad=True)).clone()
(torch.ones(2,3,requires_grad=True)).t().contiguous()
torch.ones(2).copy_(torch.ones(3))
torch.ones(2).copy_(torch.ones(1))
torch.ones(2).copy_(torch.ones(3,2))
torch.ones(2).copy_(3)
torch.ones(2).copy_([1,2])
torch.ones(2).fill_('a')
torch.ones(2).fill_(torch.ones(2))
torch.ones(2).fill_(torch.tensor(3))
torch.ones(2,dtype=torch.uint8).fill_(300)
torch.ones(2,dtype=torch.int64).fill_(2.5)
torch.ones(2,dtype=torch.int64).fill_(1j)
torch.ones(2,requires_grad=True).fill_(2)
(torch.ones(2,requires_grad=True)*2).fill_(2)
(torch.ones(2,requires_grad=True)*2).fill_(torch.tensor(2.))
(torch.ones(2,requires_grad=True)*2).copy_(torch.ones(2))
torch.ones(2).resize_(3).shape
torch.ones(2,requires_grad=True).resize_(3)
torch.ones(2).pin_memory()
torch.ones(2).is_pinned()
torch.ones(2).set_(torch.zeros(3))
torch.ones(2).set_()
""")
def convert(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def casts(torch):
    x = torch.tensor(
        [300.0, -1.0, -300.5, 1e10, -1e10, 1e20, float("nan"), float("inf"), 255.7]
    )
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "bool", "uint16"):
        kind = getattr(torch, dtype)
        yield x.to(kind), x.double().to(kind), (x * 1).to(kind)
    yield x[:3].half().to(torch.uint8), torch.tensor([-1, 300]).to(torch.uint8)
    yield torch.tensor([1 + 2j, 0j]).to(torch.bool), torch.ones(2).cfloat()


@case.over("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
def casts_to_eight_bits(torch, name):
    inf, kind = float("inf"), getattr(torch, f"float8_{name}")
    x = torch.tensor([1.0, 464, 480, 5e4, 6e4, 240, 248, -500, -1e9, 1e30, inf, -inf])
    x = torch.cat([x, torch.tensor([float("nan")])])
    yield x.to(kind).float(), x.double().to(kind).float(), (x * 1).to(kind).float()
    yield x.bfloat16().to(kind).float(), torch.tensor([1, 500, 1000]).to(kind).float()
    yield torch.tensor([500.0, 1e9, inf], dtype=kind).float()
    yield torch.zeros(2, dtype=kind).copy_(torch.tensor([500.0, 1e9])).float()
    leaf = torch.tensor([1.0, 500.0], requires_grad=True)
    leaf.to(kind).float().sum().backward()
    yield leaf.grad


@case
def itself_if_nothing_changes(torch):
    x = torch.ones(2, 3)
    yield x.to(torch.float32) is x, x.float() is x, x.double() is x, x.cpu() is x
    yield x.contiguous() is x, x.t().contiguous().stride(), x.t().clone().stride()
    yield x.t().double().stride()
    yield x.clone(memory_format=torch.contiguous_format).stride()


@case
def gradients(torch):
    w = torch.ones(2, requires_grad=True)
    z = w.double()
    (z * z).sum().backward()
    yield z, w.grad, w.half().requires_grad, w.int().requires_grad
    z = torch.tensor([1 + 2j], requires_grad=True)
    z.to(torch.float32).sum().backward()
    yield z.grad
    for change in (
        lambda y, s: y.fill_(3),
        lambda y, s: y.copy_(s),
        lambda y, s: y.fill_(s),
        lambda y, s: y.zero_(),
        lambda y, s: y.copy_(s.expand(2).double()),
    ):
        x = torch.ones(2, requires_grad=True)
        s = torch.tensor(3.0, requires_grad=True)
        y = change(x * 2, s)
        y.sum().backward()
        yield y, x.grad, s.grad
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.fill_(1)
    yield attempt(z.sum().backward)


@case
def in_place(torch):
    i = torch.zeros(3, dtype=torch.int32)
    yield i.copy_(torch.tensor([1.7, -2.7, 300.0]))
    yield torch.zeros(3, dtype=torch.bool).copy_(torch.tensor([1.7, 0, 300.0]))
    x = torch.zeros(2, 3)
    x[:, 1].copy_(torch.ones(2))
    x[0].fill_(4)
    x.t()[2].zero_()
    yield x, x._version
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        w.fill_(2).copy_(torch.tensor([1.0, 3.0]))
    yield w, w._version, w.is_leaf
    yield attempt(w.zero_), attempt(w.copy_, torch.ones(2))


@case
def data(torch):
    x = torch.ones(3)
    x.data = torch.arange(3.0)
    yield x
    y = torch.zeros(2)
    x.data = y
    y.add_(1)
    yield x, x.data_ptr() == y.data_ptr()
    p = torch.ones(2, requires_grad=True)
    q = p * 2
    p.data = torch.full((2,), 5.0)
    q.sum().backward()
    yield p, p.grad, p.is_leaf
    p.data.add_(1)
    p.data[0] = 9
    yield p, p._version, p.data._version
    p.grad.data.zero_()
    yield p.grad
    x = torch.ones(3, requires_grad=True)
    y = x * 3
    d = y.detach()
    y.data.mul_(2)
    yield y, y._version, d
    d.add_(1)
    yield y, y._version, d._version


@case
def out(torch):
    # Handing a tensor out ends PyTorch's leave to resize it: copies are shown.
    x = torch.ones(3)
    yield x.resize_(2, 2) is x, x.shape, x.resize_(0).shape
    o = torch.empty(0)
    yield torch.add(torch.ones(2), 1, out=o) is o, o.clone()
    yield torch.add(torch.ones(2, 3), 1, out=o) is o, o.clone()
    i = torch.ones(2, dtype=torch.int64)
    yield attempt(lambda: torch.add(torch.ones(2), 1, out=i)), i
    w = torch.ones(2, requires_grad=True)
    yield attempt(lambda: torch.add(w, 1, out=torch.ones(2)))
    yield torch.arange(6.0).resize_(2, 2), torch.ones(3).resize_as_(torch.ones(2, 1))
    v = torch.zeros(2, 3)
    torch.add(torch.ones(2), 1, out=v[:, 1])
    yield v


@case
def complex_to_real(torch):
    x, c = torch.ones(3), torch.tensor([1 + 2j, 3j, 4.0], requires_grad=True)
    yield x.copy_(c.detach())
    x[0] = c[1].detach()
    yield x
    x[:] = torch.tensor(2j)
    yield x
    x = torch.zeros(3)
    x[:2] = c[1:] * 2
    yield x, torch.autograd.grad(x.sum(), c)
    whole = torch.zeros(2, dtype=torch.int64)
    whole[0] = torch.tensor(5 + 1j)
    yield whole
