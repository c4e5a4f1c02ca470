"""What `dir()` lists of what a node saved, and what the names give."""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case

EXPRESSIONS = """
m+1
m+m
m-m
m*m
m*2
m/m
m/2
2/m
m**2
m**m
2**m
m.exp()
m.log()
m.sqrt()
m.tanh()
m.sigmoid()
m.relu()
m.abs()
m.sin()
m.reciprocal()
m.rsqrt()
m.sum()
m.sum(0)
m.sum((0,1))
m.mean()
m.mean(1)
m.prod()
m.prod(1)
m.std()
m.max()
m.max(1)[0]
m.min(0)[0]
m.amax(1)
m.amin((0,1))
m.median()
m.median(1)[0]
m.mode(1)[0]
m.kthvalue(2,1)[0]
m.cumsum(1)
m.cumprod(0)
m.logsumexp(1)
m.logcumsumexp(0)
m.cummax(0)[0]
m.sort(1)[0]
m.topk(2)[0]
m.transpose(0,1)
m.permute(1,0)
m.view(9)
m.reshape(-1)
m.unsqueeze(0)
m.squeeze()
m.squeeze(0)
m.expand(2,3,3)
m.flip(0)
m.roll(1,0)
m.roll((1,2),(0,1))
m.rot90(1,(0,1))
m.unfold(0,2,1)
m.diagonal()
m.triu(1)
m.tril()
m.trace()
m[idx]
m.index_select(0,idx)
m.gather(1,idx[None])
m.unbind()[0]
torch.cat([m,m])
torch.cat([m,m],1)
torch.stack([m,m],1)
m.repeat(2,1)
m.masked_fill(m>0.5, 0.)
torch.where(m>0.5,m,m)
m.clamp(0.1,0.5)
m.scatter(0, idx[None], 2.)
m.scatter_add(0, idx[None], m)
m.take(idx)
m.erf()
m.lgamma()
m.atan2(m)
m.remainder(m)
m.pow(3.)
m.lerp(m, 0.3)
m.addcmul(m,m,value=2)
m.addcdiv(m,m)
m.dist(m+1)
torch.cdist(m,m)
v@v
m@v
m@m
torch.bmm(b,b)
torch.addmm(m,m,m,alpha=2)
torch.addmv(v,m,v)
torch.baddbmm(b,b,b)
torch.linalg.norm(m)
torch.linalg.vector_norm(m, 3, 1)
m.inverse()
torch.linalg.cholesky(m@m.T+torch.eye(3))
torch.linalg.lstsq(m,m)[0]
m.matrix_exp()
m.renorm(2,0,1.25)
torch.complex(m,m)
m.view(9).view(3,3)
m.nan_to_num()
m.logaddexp(m)
m.hypot(m)
m.maximum(m)
m.minimum(m)
m.nansum()
m.sinc()
m.digamma()
m.erfinv()
m.xlogy(m)
m.logit()
m.expm1()
m.log1p()
m.asin()
m.cosh()
m.copysign(m)
torch.meshgrid(v,v)[0]
m.unflatten(0,(3,1))
m.flatten()
m.squeeze((0,))
m.index_fill(0,idx,1.)
m.index_put((idx,),v)
m.put(idx,v[:2])
m.masked_scatter(m>.5,m)
torch.special.entr(m)
torch.special.i0(m)
torch.mvlgamma(m+3,2)
m[0]
m[1:]
m[:, 1:2]
m[0, 1:]
m[None]
m[1:, None]
m.select(1, 2)
m.narrow(0, 1, 1)
m.split(2)[0]
m.split([1, 2])[1]
m.chunk(2, 1)[0]
m.as_strided((2, 2), (1, 2), 1)
m.as_strided((2,), (1,))
m.movedim(0, 1)
m.tile(2)
m.fliplr()
m.square()
m.std(1)
m.var(0, correction=0)
torch.rsub(m, 2)
torch.hstack([m, m])
torch.vstack([v, v])
torch.column_stack([m, m])
torch.diag_embed(v)
torch.diag(v)
torch.addbmm(m, b, b)
torch.addr(m, v, v)
torch.pdist(m, 1)
m.index_add(0, idx, m[:2])
m.index_copy(0, idx, m[:2])
m.index_reduce(0, idx, m[:2], "amax")
m.scatter_reduce(0, idx[None], m, "sum")
m.scatter(0, idx[None], m)
m.sort(dim=1, stable=True)[0]
m.div(m, rounding_mode="floor")
torch.fft.fft2(m)
F.linear(m, m, v)
F.conv1d(b, b)
F.conv1d(b[0], b, v[:2])
F.conv2d(b[None], b[None], padding="same")
F.conv2d(b[None], b[None], stride=2, padding=1, dilation=(1, 2))
F.conv_transpose2d(b[None], b[:, None], output_padding=1, stride=2)
F.unfold(b[None], 2)
F.pad(m, (1, 1))
F.pad(b, (1, 1), "reflect")
F.pad(b, (1, 1), "replicate")
F.interpolate(b, 4, mode="linear")
F.interpolate(b, scale_factor=0.5, mode="linear")
F.interpolate(b[None], 4)
F.interpolate(b[None], 4, mode="bilinear", align_corners=True)
F.interpolate(b[None], (4, 5), mode="bicubic")
F.interpolate(b[None, None], 4, mode="trilinear")
F.interpolate(b[None], 4, mode="nearest-exact")
F.avg_pool1d(b, 2)
F.avg_pool2d(b, 2, 1)
F.avg_pool3d(b[None], 2)
F.lp_pool2d(b, 2, 2)
F.elu(m)
F.selu(m)
F.l1_loss(m, m * 2)
F.multi_margin_loss(m[:2], idx)
F.soft_margin_loss(m, m.detach().sign())
F.pixel_unshuffle(b[None, :, :2, :2], 2)
F.channel_shuffle(b[None], 2)
F.grid_sample(b[None, None], b.new_zeros(1, 1, 1, 1, 3), align_corners=False)
F.embedding(idx, m, padding_idx=0)
torch.nanmedian(m, 1)[0]
torch.linalg.lu_solve(*torch.linalg.lu_factor(m.detach()), m)
torch.linalg.solve_triangular(m, m, upper=True)
"""


@case.over(start=range(0, 220, 20))
def listed(torch, start):
    m = (torch.arange(9.0).reshape(3, 3).sin() + torch.eye(3)).requires_grad_()
    b = torch.arange(18.0).reshape(2, 3, 3).sin().requires_grad_()
    v = torch.arange(3.0).requires_grad_()
    given = {"torch": torch, "m": m, "b": b, "v": v, "idx": torch.tensor([0, 2])}
    given["F"] = torch.nn.functional
    for expression in EXPRESSIONS.split("\n")[1:-1][start : start + 20]:
        node = eval(expression, given).grad_fn
        names = [name for name in dir(node) if "_saved_" in name]
        yield expression, node.name(), names
        for name in names:
            if name.startswith("_saved_"):
                value = attempt(getattr, node, name)
                # (2 and 2.0 are one static argument: the first that was met is shown.)
                first = "_ord" in name or "cdist" in expression
                yield float(value) if type(value) is int and first else value


@case
def tensors_among_arguments(torch):
    m = torch.arange(9.0).reshape(3, 3).requires_grad_()
    index, none = torch.tensor([0, 2]), slice(None)
    for given in ((index,), (index, index), (none, index), ([0, 1],)):
        yield m[given].grad_fn._saved_indices
    node = m.index_put((index,), m[:2]).grad_fn
    yield node._saved_indices
    m[index].sum().backward()
    out = m[index]
    out.sum().backward()
    yield attempt(lambda: out.grad_fn._saved_indices)


@case
def hooks_on_one_of_several_tensors(torch):
    m = torch.arange(9.0).reshape(3, 3).requires_grad_()
    node = (out := m[:, torch.tensor([0, 2])]).grad_fn
    kept = node._raw_saved_indices
    yield [type(each).__name__ for each in kept], [each.data for each in kept]
    seen = []
    kept[1].register_hooks(lambda t: seen.append(t) or t.tolist(), torch.tensor)
    yield seen, node._saved_indices, kept[1].data
    yield attempt(kept[0].register_hooks, abs, abs)
    yield attempt(kept[1].register_hooks, abs, abs)
    out.sum().backward()
    yield m.grad, attempt(lambda: node._saved_indices)


@case
def layers_keep_the_transposed_weight(torch):
    linear = torch.nn.functional.linear
    for given, needed, bias in product((True, False), repeat=3):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_(given)
        w = torch.arange(12.0).reshape(4, 3).requires_grad_(needed)
        y = linear(x, w, torch.ones(4) if bias else None)
        node = y.grad_fn
        if node is not None:
            names = [name for name in dir(node) if name.startswith("_saved_")]
            yield node.name(), {name: getattr(node, name) for name in names}
    shapes = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: shapes.append((t.shape, t.stride())) or t, lambda t: t
    ):
        y = linear(x.requires_grad_(), w.requires_grad_(), torch.ones(4))
    y.sum().backward()
    yield shapes, x.grad, w.grad
    y = linear(x, w, torch.ones(4))
    y.grad_fn._raw_saved_mat2.register_hooks(lambda t: t * 2, lambda t: t)
    yield y.grad_fn._saved_mat2, torch.autograd.grad(y.sum(), x)


@case.over("leaky_relu_", "elu_", "selu_", "celu_")
def activations_in_place(torch, name):
    """They save their result: what it is multiplied by next is an error."""
    activate = getattr(torch.nn.functional, name)
    m = torch.linspace(-1, 2, 6).requires_grad_()
    out = activate(m * 1)
    yield out, out.grad_fn.name(), out.grad_fn._saved_result
    (grad,) = torch.autograd.grad(out.square().sum(), m, create_graph=True)
    yield grad, torch.autograd.grad(grad.square().sum(), m)
    out = activate(m * 1)
    out.mul_(2)
    yield attempt(out.sum().backward)


@case
def orders_of_norms(torch):
    m = torch.arange(4.0).requires_grad_()
    return m.norm(1.5).grad_fn._saved_ord, m.norm(3.5, dim=0).grad_fn._saved_ord
