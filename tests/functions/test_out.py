"""`out=` of another dtype, where PyTorch refuses to cast, and of shared memory."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.mm(x, x, out=d)
torch.nonzero_static(x, size=1, out=d)
torch.bmm(x[None], x[None], out=d)
torch.addmm(x, x, x, out=d)
torch.addmv(x[0], x, x[0], out=d)
torch.baddbmm(x[None], x[None], x[None], out=d)
torch.softmax(x, 0, out=d)
torch.softmax(x, 0, dtype=torch.float64, out=d)
torch.log_softmax(x, 0, out=d.half())
torch.argmax(x, out=d)
torch.isin(x, x, out=d)
torch.msort(x, out=d)
torch.renorm(x, 2, 0, 1.0, out=d)
torch.index_add(x, 0, i, x[:1], out=d)
torch.index_copy(x, 0, i, x[:1], out=d)
torch.scatter(x, 0, i[None], 2.0, out=d)
torch.scatter_add(x, 0, i[None], x, out=d)
torch.scatter_reduce(x, 0, i[None], x, "sum", out=d)
torch.t_copy(x, out=d)
torch.view_copy(x, [4], out=d)
torch.as_strided_copy(x, [1], [1], out=d)
torch.ceil(x, out=d), torch.neg(x, out=d)
torch.neg(x, out=d)
torch.round(x, out=d)
torch.sign(x, out=d)
torch.bitwise_not(i, out=d)
torch.neg(x, out=x.clone()), torch.exp(x, out=d)
torch.abs(x, out=d), torch.nn.functional.linear(x, x)
torch.dot(x[0], x[1], out=d[:0])
torch.mv(x, x[0], out=torch.zeros(2, dtype=d.dtype))
torch.addbmm(x, x[None], x[None], out=d)
torch.matmul(x, x, out=d)
torch.inner(x, x, out=d)
torch.polar(x, x, out=d)
torch.cummax(x, 0, out=(d, i))
torch.cummax(x, 0, out=(x.clone(), d.int()))
torch.logcumsumexp(x, 0, out=d)
torch.frexp(x, out=(x.clone(), i))
torch.kthvalue(x, 1, out=(x[0].clone(), i.int()))
torch.mode(x, out=(d, i))
torch.topk(x, 1, out=(d, i))
torch.max(x, 0, out=(d, i))
torch.max(x, out=i)
torch.amax(x, out=d)
torch.mean(x, out=i)
torch.logsumexp(x, 0, out=i)
torch.all(x, out=d)
torch.any(x > 0, out=d.byte())
torch.where(x > 0, x, x, out=d)
torch.nan_to_num(x, out=d)
torch.heaviside(x, x, out=d)
torch.signbit(x, out=d)
torch.quantile(x, 0.5, out=d)
torch.float_power(x, 2, out=x)
torch.index_select(x, 0, i, out=d)
torch.take(x, i, out=d)
torch.bucketize(x, x[0], out_int32=True, out=i)
torch.histc(x, out=d)
torch.linalg.eig(x, out=(x.clone(), x.clone()))
torch.geqrf(x, out=(x.clone(), i))
torch.linalg.householder_product(x, x[0], out=i)
torch.cholesky_inverse(x.exp(), out=i)
torch.unbind_copy(x, out=(d, d))
""")
def dtypes(torch, line):
    x, d = torch.tensor([[1.5, -2.0], [3.0, 0.0]]), torch.zeros(0, dtype=torch.float64)
    return evaluate(torch, line, x=x, d=d, i=torch.tensor([1]))


# `a` lies within the memory of `b`: they share two of four elements.
@case.lines(r"""
torch.exp(a, out=b)
torch.exp(a, out=a)
torch.where(a > 0, a, b, out=b), torch.clamp(a, 0, 1, out=b)
torch.cumsum(a, 0, out=b)
torch.cumsum(a, 0, out=a)
torch.max(a, 0, out=(a[0], torch.tensor([0, 0])))
torch.mode(a, 0, out=(a[1], torch.tensor([0, 0])))
torch.topk(a, 2, out=(b, torch.zeros(2, 2, dtype=torch.int64)))
torch.sort(a, out=(a, torch.zeros(2, 2, dtype=torch.int64)))
torch.addmm(a, e, e, out=b)
torch.addr(e, e[0], a[0], out=b)
torch.outer(a[0], a[0], out=a)
torch.index_add(a, 0, i, e, out=b)
torch.index_add(e, 0, i, a, out=a)
torch.scatter(e, 0, i[None], a, out=b)
torch.scatter(a, 0, i[None], 2.0, out=a)
torch.gather(a, 0, i[None], out=a[:1])
torch.stack([a[0], a[1]], out=b)
b.scatter_(0, i[None], a)
b[:, 0].scatter_(0, i, b[:, 1])
b.index_add_(0, i, a), b.put_(i, a[0])
b.index_put_((i,), a)
b.addr_(a[0], a[0])
x = torch.arange(4.0); x[i] = x[1:3]; x
x = torch.arange(4.0); x[x > 1] = x[1:3]; x
x = torch.arange(4.0); x[[0, 1]] = x[[1, 0]]; x
x = torch.zeros(3, dtype=torch.bool); x[x] = True; x
torch.zeros(1).expand(3).index_put_((i,), e[0])
torch.take(a, i, out=b[0])
torch.index_select(a, 1, i[:1], out=torch.zeros(1).expand(3))
torch.masked_select(a, a > 1, out=b.view(4))
""")
def memory(torch, line):
    whole = torch.arange(6.0)
    a, b, e = whole[:4].view(2, 2), whole[2:].view(2, 2), torch.ones(2, 2)
    return evaluate(torch, line, a=a, b=b, e=e, i=torch.tensor([0, 1]))


@case.lines("""
torch.cumsum(f[0], 0, out=o)
torch.cumsum(n[0], 0, out=o)
torch.cumsum(n[0], 0, dtype=torch.float32, out=o)
torch.cumprod(f[0], 0, out=o)
torch.sum(f, 0, out=o)
torch.sum(n, 0, dtype=torch.float64, out=o)
torch.prod(f, 0, out=o)
torch.prod(n, 0, dtype=torch.int32, out=o)
torch.mean(n, 0, dtype=torch.float64, out=o)
torch.nansum(n, 0, dtype=torch.float32, out=o)
torch.diff(torch.arange(3.0), out=o)
torch.diff(torch.arange(3.0), n=0, out=o)
torch.linalg.vector_norm(f, dim=0, dtype=torch.float64, out=o)
torch.softmax(f[0], 0, dtype=torch.float64, out=o)
""")
def of_other_dtypes(torch, line):
    f, n = torch.tensor([[1.6, 2.6]] * 2), torch.tensor([[1, 2]] * 2)
    for kind in "float32 float64 int32 int64 bool complex64".split():
        o = torch.empty(2, dtype=getattr(torch, kind))
        yield attempt(evaluate, torch, line, f=f, n=n, o=o)


@case.lines("""
torch.median(torch.ones(2, 2), 0, out=(torch.empty(2).double(), i))
torch.nanmedian(torch.ones(2, 2), 0, out=(torch.empty(2).int(), i))
i.index_fill_(0, i, 0)
torch.zeros(1).expand(3).index_fill_(0, i, 1)
m[1:].masked_fill_(m[:-1], False)
m.masked_fill_(m, False)
""")
def refused_memory(torch, line):
    m, i = torch.tensor([True, False, True]), torch.tensor([0, 1])
    return evaluate(torch, line, m=m, i=i)


@case.lines(r"""
torch.add(z, x, out=z)
torch.add(x, z, out=z)
torch.maximum(z, x, out=z)
torch.pow(z, x, out=z)
torch.lt(z, x, out=z)
torch.lerp(z, x, 0.5, out=z)
torch.addcmul(z, x, x, out=z)
torch.where(x > 1, x, z, out=z)
torch.clamp(z, x, x, out=z)
torch.add(x, x, out=x)
torch.add(z, 1, out=z)
""")
def of_an_operand(torch, line):
    x, z = torch.arange(6.0).view(2, 3), torch.ones(3)
    return evaluate(torch, line, x=x, z=z)


@case
def nothing_shares_no_memory(torch):
    x = torch.zeros(0, 3)
    yield torch.cat([x.detach(), x[:0]], out=x)
    yield x.squeeze(-1).scatter_add_(0, torch.zeros(0, 3, dtype=torch.int64), x)
