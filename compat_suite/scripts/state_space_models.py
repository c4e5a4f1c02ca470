# compat: rtol=1e-3 atol=1e-5 seconds=8 (a few steps of training)
"""Selective scans (Mamba), RWKV, diagonal state spaces by FFT, retention."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


@dataclass
class ModelArgs:
    d_model: int
    n_layer: int
    vocab_size: int
    d_state: int = 4
    expand: int = 2
    dt_rank: int | str = "auto"
    d_conv: int = 3
    pad_vocab_size_multiple: int = 8
    conv_bias: bool = True
    bias: bool = False

    def __post_init__(self):
        self.d_inner = int(self.expand * self.d_model)
        if self.dt_rank == "auto":
            self.dt_rank = math.ceil(self.d_model / 16)
        if self.vocab_size % self.pad_vocab_size_multiple != 0:
            self.vocab_size += (
                self.pad_vocab_size_multiple
                - self.vocab_size % self.pad_vocab_size_multiple
            )


class MambaBlock(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.in_proj = nn.Linear(args.d_model, args.d_inner * 2, bias=args.bias)
        self.conv1d = nn.Conv1d(
            args.d_inner,
            args.d_inner,
            bias=args.conv_bias,
            kernel_size=args.d_conv,
            groups=args.d_inner,
            padding=args.d_conv - 1,
        )
        self.x_proj = nn.Linear(
            args.d_inner, args.dt_rank + args.d_state * 2, bias=False
        )
        self.dt_proj = nn.Linear(args.dt_rank, args.d_inner, bias=True)
        A = torch.arange(1, args.d_state + 1).repeat(args.d_inner, 1).float()
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(args.d_inner))
        self.out_proj = nn.Linear(args.d_inner, args.d_model, bias=args.bias)

    def forward(self, x):
        (_b, length, _d) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(
            split_size=[self.args.d_inner, self.args.d_inner], dim=-1
        )
        x = x.transpose(1, 2)
        x = self.conv1d(x)[:, :, :length]
        x = x.transpose(1, 2)
        x = F.silu(x)
        y = self.ssm(x)
        y = y * F.silu(res)
        return self.out_proj(y)

    def ssm(self, x):
        (_d_in, n) = self.A_log.shape
        A = -torch.exp(self.A_log.float())
        D = self.D.float()
        x_dbl = self.x_proj(x)
        (delta, B, C) = x_dbl.split(split_size=[self.args.dt_rank, n, n], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        return self.selective_scan(x, delta, A, B, C, D)

    def selective_scan(self, u, delta, A, B, C, D):
        (b, length, d_in) = u.shape
        n = A.shape[1]
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d_in, n), device=deltaA.device)
        ys = []
        for i in range(length):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            y = torch.einsum("bdn,bn->bd", x, C[:, i, :])
            ys.append(y)
        y = torch.stack(ys, dim=1)
        return y + u * D


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class ResidualBlock(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.mixer = MambaBlock(args)
        self.norm = RMSNorm(args.d_model)

    def forward(self, x):
        return self.mixer(self.norm(x)) + x


class Mamba(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.embedding = nn.Embedding(args.vocab_size, args.d_model)
        self.layers = nn.ModuleList([ResidualBlock(args) for _ in range(args.n_layer)])
        self.norm_f = RMSNorm(args.d_model)
        self.lm_head = nn.Linear(args.d_model, args.vocab_size, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm_f(x))


args = ModelArgs(16, 2, 20)
print(args)
m = Mamba(args)
print(m)
print(sum(p.numel() for p in m.parameters()))
ids = torch.randint(0, 20, (2, 17))
opt = torch.optim.AdamW(m.parameters(), 1e-2)
for i in range(6):
    lg = m(ids[:, :-1])
    loss = F.cross_entropy(lg.reshape(-1, lg.size(-1)), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())


@torch.no_grad()
def generate(model, ids, n=8, top_k=5):
    for _ in range(n):
        lg = model(ids)[:, -1]
        p = F.softmax(lg, -1)
        (v, _ix) = torch.topk(p, k=top_k)
        p[p < v[:, -1, None]] = 0
        p = p / p.sum(axis=1, keepdims=True)
        ids = torch.cat([ids, torch.multinomial(p, num_samples=1)], dim=1)
    return ids.tolist()


print(generate(m, ids[:1, :4]))


# RWKV v4 time mixing
class RWKV_TimeMix(nn.Module):
    def __init__(self, n, layer_id, n_layer):
        super().__init__()
        with torch.no_grad():
            r01 = layer_id / (n_layer - 1)
            r1 = 1 - layer_id / n_layer
            ds = torch.ones(n)
            for h in range(n):
                ds[h] = -5 + 8 * (h / (n - 1)) ** (0.7 + 1.3 * r01)
            self.time_decay = nn.Parameter(ds)
            zz = torch.tensor([(i + 1) % 3 - 1 for i in range(n)]) * 0.5
            self.time_first = nn.Parameter(torch.ones(n) * math.log(0.3) + zz)
            x = torch.ones(1, 1, n)
            for i in range(n):
                x[0, 0, i] = i / n
            self.time_mix_k = nn.Parameter(torch.pow(x, r1))
            self.time_mix_v = nn.Parameter(torch.pow(x, r1) + 0.3 * r01)
            self.time_mix_r = nn.Parameter(torch.pow(x, 0.5 * r1))
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.key = nn.Linear(n, n, bias=False)
        self.value = nn.Linear(n, n, bias=False)
        self.receptance = nn.Linear(n, n, bias=False)
        self.output = nn.Linear(n, n, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        xx = self.time_shift(x)
        xk = x * self.time_mix_k + xx * (1 - self.time_mix_k)
        xv = x * self.time_mix_v + xx * (1 - self.time_mix_v)
        xr = x * self.time_mix_r + xx * (1 - self.time_mix_r)
        k, v, r = self.key(xk), self.value(xv), torch.sigmoid(self.receptance(xr))
        w = -torch.exp(self.time_decay)
        u = self.time_first
        aa = torch.zeros(B, C)
        bb = torch.zeros(B, C)
        pp = torch.full((B, C), -1e38)
        out = []
        for t in range(T):
            kk, vv = k[:, t], v[:, t]
            ww = u + kk
            p = torch.maximum(pp, ww)
            e1 = torch.exp(pp - p)
            e2 = torch.exp(ww - p)
            a = e1 * aa + e2 * vv
            b = e1 * bb + e2
            out.append(a / b)
            ww = pp + w
            p = torch.maximum(ww, kk)
            e1 = torch.exp(ww - p)
            e2 = torch.exp(kk - p)
            aa = e1 * aa + e2 * vv
            bb = e1 * bb + e2
            pp = p
        return self.output(r * torch.stack(out, 1))


tm = RWKV_TimeMix(8, 0, 2)
print(tm.time_decay, tm.time_mix_k)
x = torch.randn(2, 12, 8)
y = tm(x)
print(y.shape, y[0, -1])
y.pow(2).sum().backward()
print(tm.time_decay.grad, tm)


# S4D / DSS kernel by FFT, RetNet
class S4DKernel(nn.Module):
    def __init__(self, d, N=8, lr=None):
        super().__init__()
        log_dt = torch.rand(d) * (math.log(0.1) - math.log(0.001)) + math.log(0.001)
        C = torch.randn(d, N // 2, dtype=torch.cfloat)
        self.C = nn.Parameter(torch.view_as_real(C))
        self.log_dt = nn.Parameter(log_dt)
        self.log_A_real = nn.Parameter(torch.log(0.5 * torch.ones(d, N // 2)))
        self.A_imag = nn.Parameter(math.pi * torch.arange(N // 2).repeat(d, 1).float())

    def forward(self, L):
        dt = torch.exp(self.log_dt)
        C = torch.view_as_complex(self.C)
        A = -torch.exp(self.log_A_real) + 1j * self.A_imag
        dtA = A * dt.unsqueeze(-1)
        K = dtA.unsqueeze(-1) * torch.arange(L)
        C = C * (torch.exp(dtA) - 1.0) / A
        return 2 * torch.einsum("hn, hnl -> hl", C, torch.exp(K)).real


class S4D(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.kernel = S4DKernel(d)
        self.D = nn.Parameter(torch.randn(d))
        self.out = nn.Sequential(nn.Conv1d(d, 2 * d, 1), nn.GLU(dim=-2))

    def forward(self, u):
        L = u.size(-1)
        k = self.kernel(L=L)
        k_f = torch.fft.rfft(k, n=2 * L)
        u_f = torch.fft.rfft(u, n=2 * L)
        y = torch.fft.irfft(u_f * k_f, n=2 * L)[..., :L]
        y = y + u * self.D.unsqueeze(-1)
        return self.out(F.gelu(y))


s = S4D(4)
u = torch.randn(2, 4, 16)
opt = torch.optim.AdamW(s.parameters(), 1e-2)
for i in range(4):
    loss = (s(u) - u.roll(1, -1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
print(s.kernel.C.grad.shape, s.kernel(5))
print(list(s.state_dict()))


def retention(q, k, v, g=0.9):
    L = q.shape[-2]
    n = torch.arange(L).unsqueeze(1)
    mm = torch.arange(L).unsqueeze(0)
    D = (g ** (n - mm)) * (n >= mm).float()
    D[D != D] = 0
    return (q @ k.transpose(-1, -2) * D) @ v


q, k, v = torch.randn(3, 2, 6, 4)
par = retention(q, k, v)
S = torch.zeros(2, 4, 4)
rec = []
for t in range(6):
    S = 0.9 * S + k[:, t].unsqueeze(-1) @ v[:, t].unsqueeze(-2)
    rec.append((q[:, t].unsqueeze(-2) @ S).squeeze(-2))
print(torch.allclose(par, torch.stack(rec, 1), atol=1e-5), par[0, 0])
