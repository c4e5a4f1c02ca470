# compat: rtol=1e-3 atol=1e-5 seconds=3 (a few steps of training)
# ruff: noqa: B905, E741, RUF005, RUF059
"""Learnt and finite codebooks, rotary and linear positions, random features, EMA."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import einsum
from torch.nn import Module

torch.manual_seed(0)


def exists(v):
    return v is not None


def default(v, d):
    return v if exists(v) else d


def noop(*a, **k):
    pass


def l2norm(t):
    return F.normalize(t, p=2, dim=-1)


def log(t, eps=1e-05):
    return t.clamp(min=eps).log()


def gumbel_noise(t):
    noise = torch.zeros_like(t).uniform_(0, 1)
    return -log(-log(noise))


def gumbel_sample(
    logits,
    temperature=1.0,
    stochastic=False,
    straight_through=False,
    dim=-1,
    training=True,
):
    dtype, size = (logits.dtype, logits.shape[dim])
    sampling_logits = (
        logits / temperature + gumbel_noise(logits)
        if training and stochastic and (temperature > 0)
        else logits
    )
    ind = sampling_logits.argmax(dim=dim)
    one_hot = F.one_hot(ind, size).type(dtype)
    if not straight_through or temperature <= 0.0 or (not training):
        return (ind, one_hot)
    π1 = (logits / temperature).softmax(dim=dim)
    one_hot = one_hot + π1 - π1.detach()
    return (ind, one_hot)


def laplace_smoothing(x, n_categories, eps=1e-05, dim=-1):
    denom = x.sum(dim=dim, keepdim=True)
    return (x + eps) / (denom + n_categories * eps)


def ema_inplace(old, new, decay):
    old.lerp_(new.type(old.dtype), 1 - decay)


def sample_vectors(samples, num):
    n = samples.shape[0]
    idx = torch.randperm(n)[:num] if n >= num else torch.randint(0, n, (num,))
    return samples[idx]


def batched_bincount(x, *, minlength):
    target = torch.zeros(x.shape[0], minlength, dtype=x.dtype)
    target.scatter_add_(-1, x, torch.ones_like(x))
    return target


def kmeans(samples, num_clusters, num_iters=5):
    means = torch.stack([sample_vectors(s, num_clusters) for s in samples.unbind(0)])
    for _ in range(num_iters):
        dists = -torch.cdist(samples, means, p=2)
        buckets = torch.argmax(dists, dim=-1)
        bins = batched_bincount(buckets, minlength=num_clusters)
        zero = bins == 0
        clamped = bins.masked_fill(zero, 1)
        new = torch.zeros_like(means).scatter_add_(
            1, buckets.unsqueeze(-1).expand(-1, -1, samples.shape[-1]), samples
        )
        new = new / clamped.unsqueeze(-1)
        means = torch.where(zero.unsqueeze(-1), means, new)
    return (means, bins)


class EuclideanCodebook(Module):
    def __init__(self, dim, codebook_size, decay=0.8, eps=1e-05, threshold=2):
        super().__init__()
        self.decay, self.eps, self.thr, self.codebook_size = (
            decay,
            eps,
            threshold,
            codebook_size,
        )
        self.register_buffer("initted", torch.Tensor([False]))
        self.register_buffer("cluster_size", torch.ones(1, codebook_size))
        self.register_buffer("embed", torch.zeros(1, codebook_size, dim))
        self.register_buffer("embed_avg", self.embed.clone())

    @torch.jit.ignore
    def init_embed_(self, data):
        if self.initted:
            return
        embed, cs = kmeans(data, self.codebook_size)
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed.clone())
        self.cluster_size.data.copy_(cs)
        self.initted.data.copy_(torch.Tensor([True]))

    def replace(self, batch, mask):
        for ind, (samples, m) in enumerate(zip(batch.unbind(0), mask.unbind(0))):
            if not torch.any(m):
                continue
            sampled = sample_vectors(samples, m.sum().item())
            self.embed.data[ind][m] = sampled
            self.cluster_size.data[ind][m] = self.thr
            self.embed_avg.data[ind][m] = sampled * self.thr

    @torch.autocast("cuda", enabled=False)
    def forward(self, x):
        flat = x.reshape(1, -1, x.shape[-1])
        self.init_embed_(flat)
        dist = -torch.cdist(flat, self.embed)
        ind, onehot = gumbel_sample(dist, training=self.training)
        ind = ind.view(1, *x.shape[:-1])
        q = self.embed[0][ind[0]]
        if self.training:
            ema_inplace(self.cluster_size.data, onehot.sum(1), self.decay)
            ema_inplace(
                self.embed_avg.data,
                einsum("h n d, h n c -> h c d", flat, onehot),
                self.decay,
            )
            cs = laplace_smoothing(
                self.cluster_size, self.codebook_size, self.eps
            ) * self.cluster_size.sum(dim=-1, keepdim=True)
            self.embed.data.copy_(self.embed_avg / cs.unsqueeze(-1))
            self.replace(flat, self.cluster_size < self.thr)
        return (q, ind[0])


class VQ(Module):
    def __init__(self, dim, n):
        super().__init__()
        self.cb = EuclideanCodebook(dim, n)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.proj(x)
        q, i = self.cb(x.detach())
        loss = F.mse_loss(q.detach(), x)
        return (x + (q - x).detach(), i, loss)


vq = VQ(8, 16)
opt = torch.optim.Adam(vq.parameters(), 0.01)
for s in range(5):
    x = torch.randn(4, 20, 8)
    q, i, l = vq(x)
    (l + (q - x).pow(2).mean()).backward()
    opt.step()
    opt.zero_grad()
    print(s, l.item(), i.unique().numel(), vq.cb.cluster_size.sum().item())


class FSQ(Module):
    def __init__(self, levels):
        super().__init__()
        _l = torch.tensor(levels, dtype=torch.int32)
        self.register_buffer("_levels", _l, persistent=False)
        self.register_buffer(
            "_basis",
            torch.cumprod(torch.tensor([1] + levels[:-1]), dim=0, dtype=torch.int32),
            persistent=False,
        )

    def bound(self, z, eps=0.001):
        half_l = (self._levels - 1) * (1 + eps) / 2
        offset = torch.where(self._levels % 2 == 0, 0.5, 0.0)
        shift = (offset / half_l).atanh()
        return (z + shift).tanh() * half_l - offset

    def quantize(self, z):
        b = self.bound(z)
        r = b.round()
        return (b + (r - b).detach()) / (self._levels // 2)

    def codes_to_indices(self, zhat):
        hw = self._levels // 2
        return ((zhat * hw + hw) * self._basis).sum(dim=-1).to(torch.int32)

    def forward(self, z):
        c = self.quantize(z)
        return (c, self.codes_to_indices(c))


f = FSQ([8, 5, 5])
z = torch.randn(6, 3, requires_grad=True)
c, i = f(z)
c.sum().backward()
print(c, i, z.grad)


class RotaryEmbedding(Module):
    def __init__(self, dim, theta=10000):
        super().__init__()
        self.freqs = nn.Parameter(
            1.0 / theta ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim),
            requires_grad=False,
        )
        self.register_buffer("dummy", torch.tensor(0), persistent=False)
        self.tmp_store = {}

    def forward(self, t):
        fr = einsum("..., f -> ... f", t.type(self.freqs.dtype), self.freqs)
        return fr.repeat_interleave(2, -1)

    def rotate(self, t):
        fr = self.forward(torch.arange(t.shape[-2]))
        return t * fr.cos() + self.rot(t) * fr.sin()

    def rot(self, x):
        x = x.unflatten(-1, (-1, 2))
        x1, x2 = x.unbind(dim=-1)
        return torch.stack((-x2, x1), dim=-1).flatten(-2)


r = RotaryEmbedding(8)
q = torch.randn(1, 2, 5, 8)
k = torch.randn(1, 2, 5, 8)
print(einsum("b h i d, b h j d -> b h i j", r.rotate(q), r.rotate(k))[0, 0])


class AlibiPositionalBias(Module):
    def __init__(self, heads):
        super().__init__()
        self.register_buffer(
            "slopes",
            torch.Tensor(self._get_slopes(heads)).view(-1, 1, 1),
            persistent=False,
        )
        self.register_buffer("bias", None, persistent=False)

    @staticmethod
    def _get_slopes(heads):

        def pow2(n):
            start = 2 ** (-(2 ** (-(math.log2(n) - 3))))
            return [start * start**i for i in range(n)]

        if math.log2(heads).is_integer():
            return pow2(heads)
        c = 2 ** math.floor(math.log2(heads))
        return pow2(c) + pow2(2 * c)[0::2][: heads - c]

    def forward(self, i, j):
        if exists(self.bias) and self.bias.shape[-1] >= j:
            return self.bias[..., -i:, -j:]
        b = -torch.abs(
            torch.arange(j)[None, None, :] - torch.arange(j - i, j)[None, :, None]
        )
        self.register_buffer("bias", b * self.slopes, persistent=False)
        return self.bias


a = AlibiPositionalBias(6)
print(a(3, 4)[1], a(2, 3).shape, a.state_dict())


def orthogonal_matrix_chunk(cols):
    u = torch.randn((cols, cols))
    q, r = torch.linalg.qr(u.cpu(), mode="reduced")
    return q.t()


def gaussian_orthogonal_random_matrix(nr, nc):
    bl = [orthogonal_matrix_chunk(nc) for _ in range(nr // nc)]
    rem = nr - nr // nc * nc
    if rem > 0:
        bl.append(orthogonal_matrix_chunk(nc)[:rem])
    fm = torch.cat(bl)
    return torch.diag(torch.randn((nr, nc)).norm(dim=1)) @ fm


pm = gaussian_orthogonal_random_matrix(12, 8)


def softmax_kernel(data, *, projection_matrix, is_query, eps=0.0001):
    dn = data.shape[-1] ** (-0.25)
    ratio = projection_matrix.shape[0] ** (-0.5)
    p = projection_matrix.type_as(data)[None, None].expand(*data.shape[:2], -1, -1)
    dd = einsum("...id,...jd->...ij", dn * data, p)
    diag = (data**2).sum(-1) / 2.0 * dn**2
    diag = diag.unsqueeze(-1)
    return ratio * (
        torch.exp(
            dd
            - diag
            - torch.amax(
                dd, dim=(-1, -2) if not is_query else -1, keepdim=True
            ).detach()
        )
        + eps
    )


qp, kp = (
    softmax_kernel(q, projection_matrix=pm, is_query=True),
    softmax_kernel(k, projection_matrix=pm, is_query=False),
)
D_inv = 1.0 / einsum("...nd,...d->...n", qp, kp.sum(dim=-2))
print(
    einsum("...de,...nd,...n->...ne", einsum("...nd,...ne->...de", kp, q), qp, D_inv)[
        0, 0, 0
    ]
)


class EMA(Module):
    def __init__(
        self,
        model,
        beta=0.9999,
        update_after_step=2,
        update_every=1,
        inv_gamma=1.0,
        power=2 / 3,
    ):
        super().__init__()
        import copy

        self.beta = beta
        self.online_model = [model]
        self.ema_model = copy.deepcopy(model)
        self.ema_model.requires_grad_(False)
        self.register_buffer("initted", torch.tensor(False))
        self.register_buffer("step", torch.tensor(0))
        self.uas, self.ig, self.pw = (update_after_step, inv_gamma, power)

    def get_current_decay(self):
        epoch = (self.step - self.uas - 1).clamp(min=0.0)
        value = 1 - (1 + epoch / self.ig) ** (-self.pw)
        return 0.0 if epoch.item() <= 0 else value.clamp(min=0.0, max=self.beta).item()

    def update(self):
        step = self.step.item()
        self.step += 1
        if step <= self.uas or not self.initted.item():
            for (_, p), (_, q_) in zip(
                self.ema_model.named_parameters(),
                self.online_model[0].named_parameters(),
            ):
                p.data.copy_(q_.data)
            if not self.initted.item():
                self.initted.data.copy_(torch.tensor(True))
            return
        d = self.get_current_decay()
        for (_, p), (_, q_) in zip(
            self.ema_model.named_parameters(), self.online_model[0].named_parameters()
        ):
            p.data.lerp_(q_.data, 1 - d)


ema = EMA(vq)
for _ in range(6):
    with torch.no_grad():
        vq.proj.weight.add_(0.1)
    ema.update()
    print(ema.step, ema.get_current_decay())
print(ema.ema_model.proj.weight.mean() - vq.proj.weight.mean())
