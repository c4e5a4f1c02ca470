"""Edges of what tensors are made of, computed and written to, as PyTorch tests them."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

NAMES = {"inf": float("inf"), "nan": float("nan")}


def shown(torch, line):
    return evaluate(
        torch,
        line,
        x=torch.arange(6.0).reshape(2, 3),
        i=torch.arange(6).reshape(2, 3),
        b=torch.tensor([[True, False, True], [False, True, True]]),
        c=torch.tensor([1 + 2j, 3 - 1j]),
        d=torch.tensor([[1 + 2j, 3 - 1j], [1j, 0]]),
        t=torch.tensor([True, False]),
        z=torch.tensor([0, 0]),
        **NAMES,
    )


@case.lines("""
b.clone().index_reduce_(0, z, b, "prod")
b.clone().index_reduce_(0, torch.tensor([0]), b[1:], "amax")
b.clone().index_reduce_(0, torch.tensor([0]), b[1:], "amin")
b.clone().index_reduce_(0, z, b, "prod", include_self=False)
b.clone().index_reduce_(0, z, b, "amax", include_self=False)
b.clone().index_reduce_(0, z, b, "amin", include_self=False)
b.clone().index_reduce_(0, z, b, "mean", include_self=False)
b.clone().index_reduce_(0, z, b, "mean")
d.index_reduce_(0, z, d.clone(), "prod")
d.index_reduce_(0, z, d.clone(), "prod", include_self=False)
d.index_reduce_(0, z, d.clone(), "mean")
d.index_reduce_(0, z, d.clone(), "mean", include_self=False)
d.index_reduce_(0, z, d.clone(), "amax")
d.index_reduce_(0, z, d.clone(), "amin", include_self=False)
c.clone().index_reduce_(0, z, c, "prod", include_self=False)
c.clone().index_reduce_(0, z, c, "mean")
c.clone().index_reduce_(0, z, c, "amax")
t.index_reduce_(0, z[:1], t[:1].clone(), "amax")
t.index_reduce_(0, z[:1], t[:1].clone(), "amax", include_self=False)
t.index_reduce_(0, z[:1], t[:1].clone(), "mean")
torch.put(torch.tensor([]), torch.tensor([0]), torch.tensor([9.]))
x.clone().masked_scatter_(b.byte(), torch.arange(10.))
torch.scatter(x, 0, z[None], x, value=2)
x.requires_grad_().scatter(0, z[None], x, reduce="multiply").sum().backward()
x.requires_grad_().scatter(0, z[None], 2., reduce="multiply").sum().backward()
x.requires_grad_().scatter(0, z[None], x, reduce="add").sum().backward()
x.requires_grad_().scatter(0, z[None], 2., reduce="add").requires_grad
i.scatter(0, z[None], 2, reduce="add")
""")
def written(torch, line):
    return shown(torch, line)


@case(stride=True).lines("""
x.t().sort(0)
x.t().sort(1, descending=True)
x.t().sort(stable=True)
torch.ones(2, 3, 4).permute(2, 0, 1).sort()
torch.ones(2, 6)[:, ::2].sort()
torch.ones(2, 1).expand(2, 3).sort()
torch.ones(1, 1, 3).sort()
torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).sort(1)
x.t().argsort(0)
x.t().argsort(stable=True, dim=0)
torch.msort(x.t())
x.t().renorm(2, 0, 1.)
x.t().renorm_(2, 0, 1.)
x.t().diff()
x.t().diff(dim=0)
x.t().diff(dim=0, n=2)
x.t().diff(dim=0, prepend=x.t()[:1])
x.t().diff(n=0)
b.t().diff(dim=0)
torch.ones(2, 3, 4).permute(2, 0, 1).diff(dim=0)
torch.ones(2, 6)[:, ::2].diff()
torch.ones(2, 1).expand(2, 3).diff()
torch.ones(2, 1).expand(2, 3).diff(dim=0)
""")
def strides(torch, line):
    return shown(torch, line)


@case(exact=True).lines("""
torch.lgamma(torch.tensor([1., 2.]))
torch.lgamma(torch.tensor([1., 2.], dtype=torch.float64))
""")
def exactly(torch, line):
    return shown(torch, line)


@case.lines("""
torch.clamp(x, 1j)
torch.clamp(x, 1j, 2)
torch.clamp(c, 1j)
x.clamp_(1j)
x.clamp_min(1j)
i.clamp(1j)
torch.constant_pad_nd(i, (1, 1), 1 + 0j)
torch.constant_pad_nd(x, (1, 1), 1j)
torch.arange(3 + 0j)
torch.arange(0, 3, 1 + 0j)
torch.arange(0, 3j)
torch.isin(x, 1j)
torch.isin(1 + 0j, x)
""")
def complex_numbers(torch, line):
    return shown(torch, line)


@case.lines("""
torch.bitwise_not(x.half())
torch.bitwise_and(x.bfloat16(), x.half())
x.half() & 2
torch.gcd(x.half(), x.half())
torch.lcm(b, x.half())
x.half() << 1
torch.special.zeta(c, c)
torch.cdist(c, c)
torch.cdist(i, i[:, :2])
torch.cdist(i, i)
x.__div__(2)
x.__idiv__(2)
x.mean(dtype=torch.int64)
""")
def dtypes(torch, line):
    return shown(torch, line)


@case.lines("""
torch.randperm(2049, dtype=torch.half).shape
torch.randperm(256, dtype=torch.uint8).long().sum()
torch.randperm(257, dtype=torch.uint8)
torch.randperm(128, out=torch.empty(0, dtype=torch.int8)).shape
torch.randperm(2050, dtype=torch.half)
torch.randperm(300, dtype=torch.bfloat16).shape
torch.randperm(2**24 + 2, dtype=torch.float)
torch.randperm(300, dtype=torch.int8)
x.random_(2.5)
x.random_(True)
i.random_(0, 2**63)
i.random_(2**64)
i.random_(-2**63, None)
torch.corrcoef(torch.tensor([1.]))
torch.corrcoef(x[:, :1])
torch.trapezoid(x, x, dx=2)
torch.trapezoid(x, x, dim=0)
torch.cumulative_trapezoid(x, x, dx=2)
torch.tensor([1, torch.tensor([3, 4])])
torch.tensor([torch.tensor([1., 2]), torch.tensor([3, 4])])
torch.tensor([torch.tensor([[1]]), torch.tensor([2.])])
torch.clamp(b, min=True)
torch.clamp(b, True, True)
torch.clamp(b, max=b)
torch.clamp(b, b, b)
b.clamp_max(True)
b.clamp_(True)
torch.nonzero(i, out=i)
torch.linalg.cross(x, x, out=x)
torch.cross(x, x + 1, 1, out=x)
y = torch.zeros(3, requires_grad=True); y.set_(x)
y = torch.zeros(3, requires_grad=True); y.set_(x.storage())
y = torch.zeros(3, requires_grad=True); y.set_()
x.apply_(lambda a: "a")
x.apply_(lambda a: [])
x.map_(x, lambda a, b: {})
i.apply_(lambda a: object)
b.apply_(lambda a: {})
c.apply_(lambda a: None)
i.apply_(lambda a: None)
torch.tensor(1.).flip(1)
torch.tensor(1.).flip((0, 0))
torch.tensor(1.).flip((0, -2))
torch.tensor(1.).unbind(0)
torch.tensor(1.).unbind(-2)
torch.unbind_copy(torch.tensor(1.), 1)
torch.tensor(1.).roll(1, 1)
torch.tensor(1.).roll((1, 2), (-1, 3))
torch.tensor(1.).cummax(1)
torch.tensor(1.).cummin(-2)
torch.tensor([1j]).cummax(0)
torch.zeros(1, 2).squeeze(0, 2)
torch.zeros(1, 2).squeeze(0, 0)
torch.zeros(1, 2).count_nonzero(0, 0)
torch.zeros(1, 2).squeeze(0, 1.5)
""")
def refused(torch, line):
    return shown(torch, line)


@case(stride=True).lines("""
torch.quantile(y, torch.tensor([0.1, 0.5]), dim=0)
torch.quantile(y, torch.tensor([0.1, 0.5]), dim=1)
torch.quantile(y, torch.tensor([0.1, 0.5]), dim=1, keepdim=True)
torch.quantile(y, torch.tensor([0.1, 0.5]), dim=0, keepdim=True)
torch.quantile(y, torch.tensor([0.1, 0.5]))
torch.quantile(y, torch.tensor([0.1, 0.5]), keepdim=True)
torch.quantile(y, torch.tensor(0.5), dim=1)
torch.nanquantile(y, torch.tensor([0.1, 0.5, 0.7]), dim=1)
F.avg_pool1d(y.transpose(1, 2), 2)
F.adaptive_avg_pool1d(y.transpose(1, 2), 2)
F.adaptive_max_pool1d(y.transpose(1, 2), 2)
F.max_pool1d(y.transpose(1, 2), 2)
F.avg_pool1d(y, 2)
F.avg_pool1d(y[0].t(), 2)
F.avg_pool1d(y[:, :1], 2)
F.adaptive_avg_pool1d(y.transpose(0, 2), 3)
F.max_pool3d(v, 2)
F.max_pool3d(v[0], 2)
F.avg_pool3d(v, 2)
F.avg_pool3d(v[0], 2)
F.adaptive_avg_pool3d(v[0], 2)
F.adaptive_max_pool3d(v[0], 2)
F.max_pool2d(v[:, :, 0], 2)
F.max_pool2d(v[0, :, 0], 2)
F.glu(torch.cat([v, v]), 2)
F.glu(v.contiguous(), 2)
F.glu(y.transpose(0, 1), 0)
F.glu(y.transpose(1, 2), 2)
""")
def laid_out(torch, line):
    v = torch.arange(192.0).view(1, 3, 4, 4, 4)
    v = v.to(memory_format=torch.channels_last_3d)
    return evaluate(torch, line, y=torch.arange(60.0).view(3, 4, 5), v=v)


@case.lines(r"""
torch.cholesky_inverse(torch.tensor([[1.0, 0], [1, 0]]))
torch.cholesky_inverse(torch.zeros(2, 2, 2), upper=True)
torch.cov(c.detach(), aweights=w), torch.cov(c.detach(), fweights=w.long(), aweights=w)
torch.corrcoef(c).grad_fn.name()
torch.ops.aten.slice(x, 1)
torch.ops.aten.slice(x, 1, 1, 9, 2)
x.to(memory_format=torch.channels_last)
x.float(memory_format=torch.channels_last)
F.conv1d(k, k.detach())
F.conv1d(k[0], k.detach(), bias=torch.ones(3, dtype=torch.complex64))
F.conv_transpose1d(k, k.detach())
F.scaled_dot_product_attention(h, h, h)
F.scaled_dot_product_attention(h.bfloat16(), h.bfloat16(), h.bfloat16(), is_causal=True)
F.rrelu(x, 0.0, 0.0, training=True).sum().backward(), x.grad.sum()
torch.func.grad(lambda x: F.rrelu(x, training=True).sum())(torch.ones(3))
torch.einsum("...ik,...j->ij", x[0], x[0, 0, 0])
torch.einsum("iij,k->ik", x[0, :, :1, :1].expand(2, 2, 1), torch.ones(3))
""")
def nodes_and_refusals(torch, line):
    x = torch.ones(1, 2, 2, 3, requires_grad=True)
    c = torch.tensor([[1 + 1j, 2, 3], [4, 5j, 6]], requires_grad=True)
    k = torch.ones(3, 3, 2, dtype=torch.complex64, requires_grad=True)
    h = torch.ones(2, 3, 8, dtype=torch.float16, requires_grad=True)
    return evaluate(torch, line, x=x, c=c, k=k, h=h, w=torch.tensor([1.0, 2, 3]))


@case.over(dtype=("float32", "float64"), other=("float32", "float64", "bfloat16"))
def dtypes_of_losses(torch, dtype, other):
    F = torch.nn.functional
    x = torch.tensor([0.25, 0.5], dtype=getattr(torch, dtype))
    y = x.to(getattr(torch, other))
    for reduction in ("none", "mean"):
        for loss in (F.binary_cross_entropy_with_logits, F.binary_cross_entropy):
            yield attempt(loss, x, y, reduction=reduction)
            yield loss(x, x, weight=y, reduction=reduction)
        yield F.binary_cross_entropy_with_logits(x, x, None, None, None, reduction, y)
        yield F.soft_margin_loss(x, y, reduction=reduction)


@case.lines("""
torch.arange(0, 2, 0.3, dtype=torch.int32)
torch.arange(3, 0, -0.5, dtype=torch.int16)
torch.arange(0, 3, 0.5, dtype=torch.int64)
torch.tensor(1.0).movedim(0, -1)
torch.tensor(1.0).movedim(1, 0)
t ** True
t ** False
t.pow_(True)
True ** t
t ** torch.tensor(True)
t ** t
torch.pow(t, True, out=torch.empty(2))
""")
def numbers_of_no_size(torch, line):
    return shown(torch, line)


@case
def capsules_of_what_requires_grad(torch):
    x = torch.ones(2, requires_grad=True)
    yield torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    yield attempt(x.__dlpack__)


@case
def types_of_several_results(torch):
    import copy

    x = torch.tensor([2.0, 1.0])
    for result in (x.sort(), x.aminmax(), torch.linalg.slogdet(torch.eye(2))):
        kind = type(result)
        yield kind(tuple(result)), kind(list(result)), kind((1, 2)[: len(result)])
        yield attempt(kind, (1,)), attempt(kind, (1, 2, 3, 4)), attempt(kind, 1)
        yield attempt(kind)
        yield attempt(lambda r=result: r.nope), hasattr(result, "values")
        yield attempt(setattr, result, kind.__match_args__[0], 1)
        yield copy.copy(result), copy.deepcopy(result)


@case.lines("""
torch.combinations(z, 2, 1)
torch.segment_reduce(x[0], "sum", lengths=torch.tensor([3]), unsafe=1)
torch.vander(x[0], increasing="x")
torch.multinomial(x, 2, "x")
torch.multinomial(x, 2, 1)
torch.unique_consecutive(z, return_counts=1)
torch.unique_consecutive(z, return_inverse=None)
torch.unique(z, sorted="x")
torch.unique(z, return_inverse=1)
torch.unique(z, return_counts="x")
torch.unique(z, sorted="x", dim=0)
torch.einsum(3, x)
torch.einsum(None, x)
""")
def what_is_no_flag(torch, line):
    return shown(torch, line)
