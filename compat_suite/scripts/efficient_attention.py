# compat: rtol=1e-3 atol=1e-5 seconds=6 (the order of sums in float32)
"""Attention with memory, features, hashing, windows and states in place of the square.

Transformer-XL, Performer, Linformer, Reformer, Longformer, S4D, xLSTM and RetNet.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


# Transformer-XL rel shift + recurrence
class RelMHA(nn.Module):
    def __init__(self, h, d):
        super().__init__()
        self.h, self.dh = h, d // h
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.r = nn.Linear(d, d, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.ln = nn.LayerNorm(d)
        self.rw, self.rr = (
            nn.Parameter(torch.randn(h, self.dh) * 0.1),
            nn.Parameter(torch.randn(h, self.dh) * 0.1),
        )

    def _rel_shift(self, x, zero_triu=False):
        zp = torch.zeros((x.size(0), 1, *x.size()[2:]), device=x.device, dtype=x.dtype)
        xp = torch.cat([zp, x], dim=1)
        xp = xp.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        x = xp[1:].view_as(x)
        if zero_triu:
            ones = torch.ones((x.size(0), x.size(1)))
            x = x * torch.tril(ones, x.size(1) - x.size(0))[:, :, None, None]
        return x

    def forward(self, w, r, mask, mems):
        ql, bsz, rl = w.size(0), w.size(1), r.size(0)
        cat = torch.cat([mems, w], 0) if mems is not None else w
        wh = self.qkv(cat)
        rk = self.r(r)
        q, k, v = torch.chunk(wh, 3, dim=-1)
        q = q[-ql:]
        kl = k.size(0)
        q = q.view(ql, bsz, self.h, self.dh)
        k = k.view(kl, bsz, self.h, self.dh)
        v = v.view(kl, bsz, self.h, self.dh)
        rk = rk.view(rl, self.h, self.dh)
        AC = torch.einsum("ibnd,jbnd->ijbn", (q + self.rw, k))
        BD = torch.einsum("ibnd,jnd->ijbn", (q + self.rr, rk))
        BD = self._rel_shift(BD)
        s = AC + BD
        s.mul_(1 / self.dh**0.5)
        if mask is not None and mask.any().item():
            s = s.float().masked_fill(mask[:, :, :, None], -float("inf")).type_as(s)
        p = F.softmax(s, dim=1)
        av = torch.einsum("ijbn,jbnd->ibnd", (p, v))
        av = av.contiguous().view(av.size(0), av.size(1), -1)
        return self.ln(w + self.o(av))


class PosEmb(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("inv_freq", 1 / (10000 ** (torch.arange(0.0, d, 2.0) / d)))

    def forward(self, ps, bsz=None):
        si = torch.ger(ps, self.inv_freq)
        pe = torch.cat([si.sin(), si.cos()], dim=-1)
        return pe[:, None, :].expand(-1, bsz, -1) if bsz is not None else pe[:, None, :]


lay = RelMHA(2, 16)
pe = PosEmb(16)
emb = nn.Embedding(20, 16)
o = torch.optim.Adagrad(
    [*lay.parameters(), *emb.parameters()],
    lr=0.05,
    lr_decay=1e-3,
    initial_accumulator_value=0.1,
)
mems = None
for _i in range(4):
    w = emb(torch.randint(0, 20, (6, 3)))
    ml = mems.size(0) if mems is not None else 0
    kl = 6 + ml
    mask = torch.triu(w.new_ones(6, kl), diagonal=1 + ml).byte()[:, :, None].bool()
    pos = torch.arange(kl - 1, -1, -1.0)
    out = lay(w, pe(pos).squeeze(1), mask, mems)
    loss = (out @ emb.weight.t()).log_softmax(-1).mean().neg()
    o.zero_grad()
    loss.backward()
    o.step()
    with torch.no_grad():
        mems = (
            torch.cat([mems, w], 0)[max(0, kl - 8) :].detach()
            if mems is not None
            else w.detach()
        )
    print("txl", loss.item(), mems.shape, lay.rr.grad.norm().item())


# Performer FAVOR+
def orthogonal_matrix_chunk(c):
    u = torch.randn((c, c))
    q, _r = torch.linalg.qr(u.cpu(), mode="reduced")
    return q.t()


def gaussian_orm(nr, nc, scaling=0):
    nfb = int(nr / nc)
    bl = [orthogonal_matrix_chunk(nc) for _ in range(nfb)]
    rem = nr - nfb * nc
    if rem > 0:
        bl.append(orthogonal_matrix_chunk(nc)[:rem])
    fm = torch.cat(bl)
    mult = (
        torch.randn((nr, nc)).norm(dim=1)
        if scaling == 0
        else math.sqrt(float(nc)) * torch.ones((nr,))
    )
    return torch.diag(mult) @ fm


def softmax_kernel(data, *, pm, is_query, eps=1e-4):
    b, h, *_ = data.shape
    dn = data.shape[-1] ** -0.25
    ratio = pm.shape[0] ** -0.5
    proj = pm[None, None].expand(b, h, *pm.shape).type_as(data)
    dd = torch.einsum("...id,...jd->...ij", dn * data, proj)
    dg = torch.sum(data**2, dim=-1) / 2.0 * dn**2
    dg = dg.unsqueeze(-1)
    m = (
        torch.amax(dd, dim=-1, keepdim=True).detach()
        if is_query
        else torch.amax(dd, dim=(-1, -2), keepdim=True).detach()
    )
    return ratio * (torch.exp(dd - dg - m) + eps)


def causal_linear(q, k, v, chunk=4, eps=1e-6):
    lk, lc, outs = 0, 0, []
    chunks = [t.chunk(chunk, dim=-2) for t in (q, k, v)]
    for q, k, v in zip(*chunks, strict=False):
        kc = lk + k.cumsum(dim=-2)
        di = 1.0 / torch.einsum("...nd,...nd->...n", q, kc.type_as(q) + eps)
        ctx = torch.einsum("...nd,...ne->...nde", k, v)
        cc = lc + ctx.cumsum(dim=-3)
        outs.append(torch.einsum("...nde,...nd,...n->...ne", cc, q, di))
        lk = kc[:, :, -1:]
        lc = cc[:, :, -1:]
    return torch.cat(outs, dim=-2)


pm = gaussian_orm(20, 8)
q, k, v = (torch.randn(2, 2, 16, 8, requires_grad=True) for _ in range(3))
qq, kk = (
    softmax_kernel(q, pm=pm, is_query=True),
    softmax_kernel(k, pm=pm, is_query=False),
)
out = causal_linear(qq, kk, v)
out.square().sum().backward()
print(
    "performer",
    pm.shape,
    (pm[:8] @ pm[:8].T).triu(1).abs().max() < 1e-3,
    q.grad.shape,
    v.grad.norm(),
    out.shape,
)
# Linformer
Ep = nn.Parameter(torch.empty(16, 4).uniform_(-0.25, 0.25))
kp, vp = map(lambda t: torch.einsum("bhnd,nk->bhkd", t, Ep), (k, v))  # noqa: C417
print("linformer", (torch.softmax(q @ kp.mT / 8**0.5, -1) @ vp).norm())


# Reformer LSH
def sort_kv(keys, values, dim=-1):
    k, i = keys.sort(dim=dim)
    return k, values.gather(dim, i)


def batched_index_select(v, i):
    ld = v.shape[-1]
    return v.gather(1, i[:, :, None].expand(-1, -1, ld))


def lsh(qk, v, n_hashes=2, nb=4, bs=4):
    b, n, d = qk.shape
    rr = torch.randn((1, d, n_hashes, nb // 2)).expand(b, -1, -1, -1)
    rv = torch.einsum("btf,bfhi->bhti", qk, rr)
    rv = torch.cat([rv, -rv], dim=-1)
    buckets = torch.argmax(rv, dim=-1)
    off = torch.reshape(torch.arange(n_hashes) * nb, (1, -1, 1))
    buckets = torch.reshape(buckets + off, (b, -1))
    ticker = torch.arange(n_hashes * n).unsqueeze(0).expand_as(buckets)
    bt = n * buckets + (ticker % n)
    bt = bt.detach()
    _sb, st = sort_kv(bt, ticker, -1)
    _, us = sort_kv(st, ticker, -1)
    st = st % n
    sqk, sv = batched_index_select(qk, st), batched_index_select(v, st)
    cs = n_hashes * nb
    bqt = bkt = torch.reshape(st, (b, cs, -1))
    bqk = torch.reshape(sqk, (b, cs, -1, d))
    bv = torch.reshape(sv, (b, cs, -1, d))
    bk = F.normalize(bqk, p=2, dim=-1).type_as(bqk)

    def loo(x):
        return torch.cat([x, torch.cat([x[:, -1:, ...], x[:, :-1, ...]], dim=1)], dim=2)

    bk, bv, bkt = loo(bk), loo(bv), loo(bkt)
    dots = torch.einsum("bhie,bhje->bhij", bqk, bk) * d**-0.5
    mv = -torch.finfo(dots.dtype).max
    mask = bqt[:, :, :, None] < bkt[:, :, None, :]
    dots.masked_fill_(mask, mv)
    sm = bqt[:, :, :, None] == bkt[:, :, None, :]
    dots.masked_fill_(sm, -5e4)
    lse = torch.logsumexp(dots, dim=-1, keepdim=True)
    dots = torch.exp(dots - lse).type_as(dots)
    bo = torch.einsum("buij,buje->buie", dots, bv)
    so = torch.reshape(bo, (b, -1, d))
    sl = torch.reshape(lse, (b, -1))
    o = batched_index_select(so, us)
    lg = sl.gather(1, us)
    o = o.reshape(b, n_hashes, n, d)
    lg = lg.reshape(b, n_hashes, n, 1)
    p = torch.exp(lg - torch.logsumexp(lg, dim=1, keepdim=True))
    return torch.sum(o * p, dim=1), buckets


qk, vv = (
    torch.randn(2, 8, 6, requires_grad=True),
    torch.randn(2, 8, 6, requires_grad=True),
)
out, bk = lsh(qk, vv, 2, 2)
out.pow(2).sum().backward()
print("lsh", out[0, :2], bk, qk.grad.norm())


# reversible block
class Rev(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, g, *ps):
        x1, x2 = x.chunk(2, -1)
        ctx.f, ctx.g, ctx.ps = f, g, ps
        with torch.no_grad():
            y1 = x1 + f(x2)
            y2 = x2 + g(y1)
        y = torch.cat([y1, y2], -1)
        ctx.y = y.detach()
        return y

    @staticmethod
    def backward(ctx, dy):
        y1, y2 = ctx.y.chunk(2, -1)
        d1, d2 = dy.chunk(2, -1)
        y1 = y1.detach()
        with torch.enable_grad():
            y1.requires_grad = True
            gy = ctx.g(y1)
            torch.autograd.backward(gy, d2)
        with torch.no_grad():
            x2 = y2 - gy
            dx1 = d1 + y1.grad
            y1.grad = None
        with torch.enable_grad():
            x2.requires_grad = True
            fx = ctx.f(x2)
            torch.autograd.backward(fx, dx1, retain_graph=True)
        with torch.no_grad():
            dx2 = d2 + x2.grad
        return (torch.cat([dx1, dx2], -1), None, None, *[None] * len(ctx.ps))


f, g = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 4)
x = torch.randn(3, 8, requires_grad=True)
y = Rev.apply(x, f, g, *f.parameters())
y.pow(2).sum().backward()
g1 = x.grad.clone()
gw = f[0].weight.grad.clone()
x.grad = None
f.zero_grad()
x1, x2 = x.chunk(2, -1)
a = x1 + f(x2)
torch.cat([a, x2 + g(a)], -1).pow(2).sum().backward()
print(
    "rev",
    torch.allclose(g1, x.grad, atol=1e-5),
    torch.allclose(gw, f[0].weight.grad, atol=1e-5),
    g1.norm(),
)


# Longformer sliding chunks
def sliding_chunks_matmul_qk(q, k, w):
    b, h, s, d = q.size()
    cc = s // w - 1
    q = q.reshape(b * h, s, d)
    k = k.reshape(b * h, s, d)

    def chunk(x, w):
        x = x.view(x.size(0), x.size(1) // (w * 2), w * 2, x.size(2))
        cs = list(x.size())
        cs[1] = cs[1] * 2 - 1
        st = list(x.stride())
        st[1] = st[1] // 2
        return x.as_strided(size=cs, stride=st)

    cq, ck = chunk(q, w), chunk(k, w)
    ca = torch.einsum("bcxd,bcyd->bcxy", (cq, ck))
    da = F.pad(ca, (0, 0, 0, 1))
    da = da.view(*da.size()[:-2], da.size(-1), da.size(-2))
    att = da.new_empty((b * h, cc + 1, w, w * 2 + 1))
    att[:, :-1, :, w:] = da[:, :, :w, : w + 1]
    att[:, -1, :, w:] = da[:, -1, w:, : w + 1]
    att[:, 1:, :, :w] = da[:, :, -(w + 1) : -1, w + 1 :]
    att[:, 0, 1:w, 1:w] = da[:, 0, : w - 1, 1 - w :]
    att = att.view(b, h, s, 2 * w + 1)
    bm = torch.ones(w, w + 1).tril().flip(dims=[0])[None, None]
    att[:, :, :w, : w + 1].masked_fill_(bm.bool().expand(b, h, w, w + 1), -float("inf"))
    em = bm.flip(dims=(2, 3))
    att[:, :, -w:, -(w + 1) :].masked_fill_(
        em.bool().expand(b, h, w, w + 1), -float("inf")
    )
    return att


ql, kl = (
    torch.randn(1, 2, 8, 4, requires_grad=True),
    torch.randn(1, 2, 8, 4, requires_grad=True),
)
at = sliding_chunks_matmul_qk(ql, kl, 2)
p = at.softmax(-1)
(p * torch.arange(5.0)).sum().backward()
print("longformer", p[0, 0], ql.grad.norm(), kl.grad)


# S4D kernel + HiPPO/NPLR annotated S4
class S4D(nn.Module):
    def __init__(self, d, N=8):
        super().__init__()
        self.log_dt = nn.Parameter(
            torch.rand(d) * (math.log(0.1) - math.log(0.001)) + math.log(0.001)
        )
        C = torch.randn(d, N // 2, dtype=torch.cfloat)
        self.C = nn.Parameter(torch.view_as_real(C))
        self.log_A_real = nn.Parameter(torch.log(0.5 * torch.ones(d, N // 2)))
        self.A_imag = nn.Parameter(math.pi * torch.arange(N // 2).repeat(d, 1).float())
        self.D = nn.Parameter(torch.randn(d))
        self.out = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(dim=-2))
        self.log_A_real._optim = {"lr": 0.001, "weight_decay": 0.0}

    def forward(self, u):
        L = u.size(-1)
        dt = torch.exp(self.log_dt)
        C = torch.view_as_complex(self.C)
        A = -torch.exp(self.log_A_real) + 1j * self.A_imag
        dtA = A * dt.unsqueeze(-1)
        K = dtA.unsqueeze(-1) * torch.arange(L)
        C = C * (torch.exp(dtA) - 1.0) / A
        k = 2 * torch.einsum("hn,hnl->hl", C, torch.exp(K)).real
        kf = torch.fft.rfft(k, n=2 * L)
        uf = torch.fft.rfft(u, n=2 * L)
        y = torch.fft.irfft(uf * kf, n=2 * L)[..., :L]
        return self.out(F.gelu(y + u * self.D.unsqueeze(-1)))


s4 = S4D(4)
hps = [p._optim for p in s4.parameters() if hasattr(p, "_optim")]
o = torch.optim.AdamW([p for p in s4.parameters() if not hasattr(p, "_optim")], lr=1e-2)
o.add_param_group({"params": [s4.log_A_real], **hps[0]})
for _i in range(4):
    u = torch.randn(2, 4, 16)
    loss = F.mse_loss(s4(u), u.roll(1, -1))
    o.zero_grad()
    loss.backward()
    o.step()
    print("s4d", loss.item(), s4.A_imag.grad.norm().item())


def make_HiPPO(N):
    P = torch.sqrt(1 + 2 * torch.arange(N))
    A = P[:, None] * P[None, :]
    A = torch.tril(A) - torch.diag(torch.arange(N))
    return -A


def NPLR(N):
    nh = make_HiPPO(N)
    P = torch.sqrt(torch.arange(N) + 0.5)
    B = torch.sqrt(2 * torch.arange(N) + 1.0)
    S = nh + P[:, None] * P[None]
    Sd = torch.diagonal(S)
    Lr = torch.mean(Sd) * torch.ones_like(Sd)
    Li, V = torch.linalg.eigh(S.to(torch.cfloat) * -1j)
    return Lr + 1j * Li, P, B, V


Lam, P, B, V = NPLR(6)
print(
    "hippo",
    Lam,
    (V @ torch.diag(Lam) @ V.conj().T - P[:, None] * P[None])
    .real.sub(make_HiPPO(6))
    .abs()
    .max()
    < 1e-4,
)


def discretize(A, B, C, step):
    Id = torch.eye(A.shape[0])
    BL = torch.inverse(Id - (step / 2.0) * A)
    return BL @ (Id + (step / 2.0) * A), (BL * step) @ B, C


Ab, Bb, Cb = discretize(make_HiPPO(4), torch.ones(4, 1), torch.randn(1, 4), 1 / 8)
Kc = torch.stack(
    [(Cb @ torch.linalg.matrix_power(Ab, i) @ Bb).reshape(()) for i in range(8)]
)
print(Kc, torch.linalg.multi_dot([Cb, Ab, Bb]))


# mLSTM / sLSTM (xLSTM)
def mlstm(q, k, v, i, f):
    T = q.shape[1]
    lf = F.logsigmoid(f)
    cs = torch.cat([torch.zeros_like(lf[:, :1]), lf.cumsum(1)], 1)[:, 1:]
    D = cs[:, :, None] - cs[:, None] + i[:, None]
    D = D.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf)
    m = D.max(dim=-1, keepdim=True).values
    Dp = torch.exp(D - m)
    S = (q @ k.transpose(1, 2) / k.shape[-1] ** 0.5) * Dp
    n = torch.maximum(S.sum(-1, keepdim=True).abs(), torch.exp(-m))
    return (S / (n + 1e-6)) @ v


ts = [torch.randn(2, 5, 4, requires_grad=True) for _ in range(3)] + [
    torch.randn(2, 5, requires_grad=True) for _ in range(2)
]
mlstm(*ts).square().sum().backward()
print("mlstm", [t.grad.norm().item() for t in ts])
# RetNet parallel / recurrent / chunk agree; xpos
gam = (1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), 2))).detach()
n = torch.arange(6)
Dm = torch.nan_to_num(
    torch.where(n[:, None] >= n, gam[:, None, None] ** (n[:, None] - n), 0.0)
)
q, k, v = torch.randn(3, 1, 2, 6, 4)
par = (q @ k.mT * Dm) @ v
S = torch.zeros(1, 2, 4, 4)
rec = []
for t in range(6):
    S = gam.view(1, 2, 1, 1) * S + k[:, :, t, :, None] * v[:, :, t, None]
    rec.append(torch.einsum("bhd,bhde->bhe", q[:, :, t], S))
print(
    "retnet",
    torch.allclose(par, torch.stack(rec, 2), atol=1e-5),
    par.std(),
    nn.GroupNorm(2, 8)(par.transpose(1, 2).flatten(2).flatten(0, 1)).shape,
)
