# compat: rtol=1e-3 atol=1e-4 seconds=4 (attention in another order)
"""Decoding with key-value caches that are written in place, and speculatively."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

torch.manual_seed(0)


class KVCache(nn.Module):
    def __init__(self, B, L, H, D, dtype=torch.float32):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros((B, H, L, D), dtype=dtype))
        self.register_buffer(
            "v_cache", torch.zeros((B, H, L, D), dtype=dtype), persistent=False
        )

    def update(self, input_pos, k_val, v_val):
        assert input_pos.shape[0] == k_val.shape[2]
        k_out, v_out = (self.k_cache, self.v_cache)
        k_out[:, :, input_pos] = k_val
        v_out[:, :, input_pos] = v_val
        return (k_out, v_out)


def precompute_freqs_cis(seq_len, n_elem, base=10000):
    freqs = 1.0 / base ** (torch.arange(0, n_elem, 2)[: n_elem // 2].float() / n_elem)
    t = torch.arange(seq_len)
    freqs = torch.outer(t, freqs)
    fc = torch.polar(torch.ones_like(freqs), freqs)
    return torch.stack([fc.real, fc.imag], dim=-1)


def apply_rotary_emb(x: Tensor, fc: Tensor) -> Tensor:
    xs = x.float().reshape(*x.shape[:-1], -1, 2)
    fc = fc.view(1, xs.size(1), 1, xs.size(3), 2)
    return (
        torch.stack(
            [
                xs[..., 0] * fc[..., 0] - xs[..., 1] * fc[..., 1],
                xs[..., 1] * fc[..., 0] + xs[..., 0] * fc[..., 1],
            ],
            -1,
        )
        .flatten(3)
        .type_as(x)
    )


class Attn(nn.Module):
    def __init__(self, d=16, h=4, kv=2):
        super().__init__()
        self.h, self.kvh, self.hd = (h, kv, d // h)
        self.wqkv, self.wo = (
            nn.Linear(d, (h + 2 * kv) * self.hd, bias=False),
            nn.Linear(d, d, bias=False),
        )
        self.kv_cache = None

    def forward(self, x, fc, mask, pos=None):
        B, S, _ = x.shape
        ks = self.kvh * self.hd
        q, k, v = self.wqkv(x).split([self.h * self.hd, ks, ks], dim=-1)
        q, k, v = (
            q.view(B, S, self.h, self.hd),
            k.view(B, S, self.kvh, self.hd),
            v.view(B, S, self.kvh, self.hd),
        )
        q, k = (apply_rotary_emb(q, fc), apply_rotary_emb(k, fc))
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if self.kv_cache is not None:
            k, v = self.kv_cache.update(pos, k, v)
        y = F.scaled_dot_product_attention(
            q,
            k.repeat_interleave(self.h // self.kvh, dim=1),
            v.repeat_interleave(self.h // self.kvh, dim=1),
            attn_mask=mask,
            dropout_p=0.0,
        )
        y2 = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        assert torch.allclose(y, y2, atol=1e-05)
        return self.wo(y.transpose(1, 2).contiguous().view(B, S, -1))


class GPTFast(nn.Module):
    def __init__(self, V=20, d=16, L=2):
        super().__init__()
        self.tok = nn.Embedding(V, d)
        self.ls = nn.ModuleList(
            nn.ModuleDict(
                {
                    "a": Attn(d),
                    "n": nn.RMSNorm(d),
                    "n2": nn.RMSNorm(d),
                    "f1": nn.Linear(d, 32, bias=False),
                    "f3": nn.Linear(d, 32, bias=False),
                    "f2": nn.Linear(32, d, bias=False),
                }
            )
            for _ in range(L)
        )
        self.norm, self.out = (nn.RMSNorm(d, 1e-05), nn.Linear(d, V, bias=False))
        self.max_seq = -1

    def setup(self, B, L):
        self.max_seq = L
        [setattr(b.a, "kv_cache", KVCache(B, L, 2, 4)) for b in self.ls]
        self.fc = precompute_freqs_cis(L, 4)
        self.cm = torch.tril(torch.ones(L, L, dtype=torch.bool))

    def forward(self, idx, pos=None):
        m = self.cm[None, None, pos]
        f = self.fc[pos]
        x = self.tok(idx)
        for b in self.ls:
            h = x + b.a(b.n(x), f, m, pos)
            y = b.n2(h)
            x = h + b.f2(F.silu(b.f1(y)) * b.f3(y))
        return self.out(self.norm(x))


def multinomial_sample_one_no_sync(p):
    q = torch.empty_like(p).exponential_(1)
    return torch.argmax(p / q, dim=-1, keepdim=True).to(dtype=torch.int)


def logits_to_probs(lg, temperature=1.0, top_k=None):
    lg = lg / max(temperature, 1e-05)
    if top_k is not None:
        v, _ = torch.topk(lg, min(top_k, lg.size(-1)))
        pivot = v.select(-1, -1).unsqueeze(-1)
        lg = torch.where(lg < pivot, -float("Inf"), lg)
    return F.softmax(lg, dim=-1)


def sample(lg, **k):
    p = logits_to_probs(lg[0, -1], **k)
    return (multinomial_sample_one_no_sync(p), p)


m, dr = (GPTFast(), GPTFast(d=16, L=1))


@torch.no_grad()
def generate(model, prompt, n, **k):
    T = prompt.size(0)
    seq = torch.empty(T + n, dtype=prompt.dtype)
    seq[:T] = prompt
    pos = torch.arange(0, T)
    nt, _ = sample(model(prompt.view(1, -1), pos), **k)
    seq[T] = nt
    pos = torch.tensor([T], dtype=torch.int)
    for i in range(1, n):
        nt, _p = sample(model(nt.view(1, -1), pos), **k)
        pos += 1
        seq[T + i] = nt
    return seq


m.setup(1, 24)
dr.setup(1, 24)
torch.manual_seed(3)
print(generate(m, torch.tensor([3, 1, 4]), 12, temperature=0.9, top_k=8))
print(
    m.ls[0].a.kv_cache.k_cache[0, 0, :16].abs().sum(-1).gt(0).sum(),
    list(m.state_dict())[:2],
    [n for n, _ in m.named_buffers()][:3],
)


@torch.no_grad()
def spec(n=8, k=3):
    tok = torch.tensor([1])
    pos = 0
    out = [1]
    while len(out) < n:
        c, dp, dt = (tok, [], [])
        for j in range(k):
            nt, p = sample(dr(c.view(1, -1), torch.tensor([pos + j])))
            dp.append(p)
            dt.append(nt)
            c = nt
        dt = torch.cat(dt)
        tl = m(torch.cat([tok.view(1), dt]).view(1, -1), torch.arange(pos, pos + k + 1))
        tp = logits_to_probs(tl[0])
        dp = torch.stack(dp)
        p, q = (dp[torch.arange(k), dt], tp[torch.arange(k), dt])
        acc = torch.minimum(torch.ones(()), q[:k] / p)
        rej = (torch.rand_like(acc) > acc).nonzero()
        if rej.shape[0] == 0:
            nt = multinomial_sample_one_no_sync(tp[-1])
            new = torch.cat([dt, nt])
        else:
            a = rej[0].item()
            nw = tp[a] - dp[a]
            nw = torch.where(nw > 0, nw, 0.0)
            new = torch.cat([dt[:a], multinomial_sample_one_no_sync(nw / nw.sum())])
        out += new.tolist()
        pos += len(new)
        tok = new[-1:].long()
    return out


r = spec()
print(len(r) >= 8, all(0 <= t < 20 for t in r))
