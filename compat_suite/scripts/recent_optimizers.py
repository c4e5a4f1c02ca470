# compat: rtol=1e-3 atol=1e-5 seconds=5 (the order of sums in float32)
"""Optimizers people publish (Muon, Shampoo, LAMB), K-FAC, and quantized weights."""

import math
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


@torch.compile
def zeropower(G, steps=5):
    assert G.ndim >= 2
    a, b, c = (3.4445, -4.7750, 2.0315)
    X = G.bfloat16()
    if G.size(-2) > G.size(-1):
        X = X.mT
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        A = X @ X.mT
        B = b * A + c * A @ A
        X = a * X + B @ X
    return X.mT if G.size(-2) > G.size(-1) else X


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95, nesterov=True):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                s = self.state[p]
                if not s:
                    s["mb"] = torch.zeros_like(p.grad)
                b = s["mb"]
                b.lerp_(p.grad, 1 - g["momentum"])
                u = p.grad.lerp_(b, g["momentum"]) if g["nesterov"] else b
                p.add_(
                    zeropower(u).to(p.dtype),
                    alpha=-g["lr"] * max(1, p.size(-2) / p.size(-1)) ** 0.5,
                )


class Shampoo(torch.optim.Optimizer):
    def __init__(self, ps, lr=0.1, eps=1e-4):
        super().__init__(ps, {"lr": lr, "eps": eps})

    def step(self, closure=None):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                gr = p.grad.data
                order = gr.ndimension()
                size = gr.size()
                st = self.state[p]
                if len(st) == 0:
                    st["step"] = 0
                    for d, dim in enumerate(gr.size()):
                        st[f"pre_{d}"] = g["eps"] * torch.eye(dim, out=gr.new(dim, dim))
                        st[f"inv_{d}"] = gr.new(dim, dim).zero_()
                for d, dim in enumerate(gr.size()):
                    gr = gr.transpose_(0, d).contiguous()
                    ts = gr.size()
                    gr = gr.view(dim, -1)
                    gt = gr.t()
                    st[f"pre_{d}"].add_(gr @ gt)
                    u, s, v = torch.svd(st[f"pre_{d}"])
                    st[f"inv_{d}"].copy_(u @ s.pow_(-1 / order).diag() @ v.t())
                    if d == order - 1:
                        gr = (gt @ st[f"inv_{d}"]).view(size)
                    else:
                        gr = (st[f"inv_{d}"] @ gr).view(ts)
                st["step"] += 1
                p.data.add_(gr, alpha=-g["lr"])


class Lookahead(torch.optim.Optimizer):
    def __init__(self, base, k=2, alpha=0.5):
        super().__init__(base.param_groups, {})
        self.base, self.k, self.alpha = base, k, alpha
        self.param_groups = base.param_groups
        self.state = defaultdict(dict)
        self.fast = base.state
        self.defaults = base.defaults
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
        [g.__setitem__("counter", 0) for g in self.param_groups]

    def step(self, closure=None):
        loss = self.base.step(closure)
        for g in self.param_groups:
            if g["counter"] == 0:
                for f in g["params"]:
                    ps = self.state[f]
                    if "slow" not in ps:
                        ps["slow"] = torch.zeros_like(f.data)
                        ps["slow"].copy_(f.data)
                    ps["slow"] += (f.data - ps["slow"]) * self.alpha
                    f.data.copy_(ps["slow"])
            g["counter"] = (g["counter"] + 1) % self.k
        return loss


class LAMB(torch.optim.Optimizer):
    def __init__(self, ps, lr=1e-2, betas=(0.9, 0.999), eps=1e-6, wd=0.01):
        super().__init__(ps, {"lr": lr, "betas": betas, "eps": eps, "wd": wd})

    @torch.no_grad()
    def step(self):
        gn = torch.zeros(1)
        one = torch.tensor(1.0)
        for g in self.param_groups:
            for p in g["params"]:
                gn.add_(p.grad.pow(2).sum())
        clip = torch.where(gn.sqrt() > 1.0, gn.sqrt(), one)
        for g in self.param_groups:
            g["step"] = g.get("step", 0) + 1
            b1, b2 = g["betas"]
            for p in g["params"]:
                gr = p.grad.div(clip)
                s = self.state[p]
                if len(s) == 0:
                    s["m"], s["v"] = torch.zeros_like(p), torch.zeros_like(p)
                s["m"].mul_(b1).add_(gr, alpha=1 - b1)
                s["v"].mul_(b2).addcmul_(gr, gr, value=1 - b2)
                u = (s["m"] / (1 - b1 ** g["step"])).div_(
                    (s["v"].sqrt() / math.sqrt(1 - b2 ** g["step"])).add_(g["eps"])
                )
                u.add_(p, alpha=g["wd"])
                wn, un = p.norm(2.0), u.norm(2.0)
                tr = torch.where(wn > 0, torch.where(un > 0, wn / un, one), one).clamp(
                    max=10.0
                )
                p.add_(u.mul_(tr), alpha=-g["lr"])


class GaLore(torch.optim.AdamW):
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                _U, _S, Vh = torch.linalg.svd(p.grad, full_matrices=False)
                P = Vh[:2]
                p.grad = (p.grad @ P.t()) @ P * 0.25 / 0.25
        return super().step()


class ScheduleFree(torch.optim.Optimizer):
    def __init__(self, ps, lr=0.5, b=0.9):
        super().__init__(ps, {"lr": lr, "b": b, "k": 0, "train_mode": False})

    @torch.no_grad()
    def train(self):
        [
            p.lerp_(end=self.state[p]["z"], weight=1 - g["b"])
            for g in self.param_groups
            if not g["train_mode"]
            for p in g["params"]
            if "z" in self.state[p]
        ]
        [g.__setitem__("train_mode", True) for g in self.param_groups]

    @torch.no_grad()
    def eval(self):
        [
            p.lerp_(end=self.state[p]["z"], weight=1 - 1 / g["b"])
            for g in self.param_groups
            if g["train_mode"]
            for p in g["params"]
            if "z" in self.state[p]
        ]
        [g.__setitem__("train_mode", False) for g in self.param_groups]

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            ck = 1 / (g["k"] + 1)
            act = [p for p in g["params"] if p.grad is not None]
            for p in act:
                if "z" not in self.state[p]:
                    self.state[p]["z"] = torch.clone(
                        p, memory_format=torch.preserve_format
                    )
            found = [(p, p.grad, self.state[p]["z"]) for p in act]
            y, gr, z = zip(*found, strict=False)
            torch._foreach_lerp_(y, z, weight=ck)
            torch._foreach_add_(y, gr, alpha=g["lr"] * (g["b"] * (1 - ck) - 1))
            torch._foreach_sub_(z, gr, alpha=g["lr"])
            g["k"] += 1


X, Y = torch.randn(32, 6), torch.randint(0, 3, (32,))
for name, mk in {
    "muon": lambda p: Muon(p),
    "shampoo": Shampoo,
    "look": lambda p: Lookahead(torch.optim.Adam(p, 0.01)),
    "lamb": LAMB,
    "galore": lambda p: GaLore(p, lr=0.01),
    "sf": ScheduleFree,
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
    "tmuon": lambda p: (
        torch.optim.Muon(p, lr=0.01) if hasattr(torch.optim, "Muon") else Muon(p)
    ),
}.items():
    torch.manual_seed(3)
    m = nn.Sequential(
        nn.Linear(6, 8, bias=False), nn.ReLU(), nn.Linear(8, 3, bias=False)
    )
    o = mk(list(m.parameters()))
    if name == "sf":
        o.train()
    for _ in range(5):
        loss = F.cross_entropy(m(X), Y)
        o.zero_grad()
        loss.backward()
        o.step()
    if name == "sf":
        o.eval()
    print(name, round(loss.item(), 2) if "muon" in name else loss.item(), len(o.state))


# K-FAC via hooks
class KFAC:
    def __init__(self, m):
        self.m, self.A, self.G = m, {}, {}
        [
            (
                x.register_forward_pre_hook(self.fa),
                x.register_full_backward_hook(self.fg),
            )
            for x in m.modules()
            if isinstance(x, nn.Linear)
        ]

    def fa(self, m, i):
        a = torch.cat([i[0], i[0].new_ones(len(i[0]), 1)], 1)
        self.A[m] = a.t() @ a / len(a) if torch.is_grad_enabled() else None

    def fg(self, m, gi, go):
        g = go[0] * len(go[0])
        self.G[m] = g.t() @ g / len(g)

    def step(self, lr=0.05):
        for m in self.A:
            gw = torch.cat([m.weight.grad, m.bias.grad[:, None]], 1)
            d = 1e-1
            v = torch.linalg.solve(
                self.G[m] + d * torch.eye(len(self.G[m])), gw
            ) @ torch.inverse(self.A[m] + d * torch.eye(len(self.A[m])))
            m.weight.data -= lr * v[:, :-1]
            m.bias.data -= lr * v[:, -1]


m = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
k = KFAC(m)
for _ in range(4):
    m.zero_grad()
    loss = F.cross_entropy(m(X), Y)
    loss.backward()
    k.step()
    print("kfac", loss.item())
# GPTQ / wanda / smoothquant / int8 / nf4
W = torch.randn(8, 16)
Xc = torch.randn(64, 16)
H = 2 * Xc.t() @ Xc
damp = 0.01 * torch.mean(torch.diag(H))
ix = torch.arange(16)
H[ix, ix] += damp
Hc = torch.linalg.cholesky(H)
Hi = torch.cholesky_inverse(Hc)
U = torch.linalg.cholesky(Hi, upper=True)
Q = torch.zeros_like(W)
Wc = W.clone()
sc = Wc.abs().max(1, keepdim=True)[0] / 7
for i1 in range(0, 16, 4):
    i2 = i1 + 4
    W1 = Wc[:, i1:i2].clone()
    E1 = torch.zeros_like(W1)
    H1 = U[i1:i2, i1:i2]
    for i in range(4):
        w, d = W1[:, i], H1[i, i]
        q = (torch.clamp(torch.round(w.unsqueeze(1) / sc), -8, 7) * sc).flatten()
        Q[:, i1 + i] = q
        e = (w - q) / d
        W1[:, i:] -= e.unsqueeze(1).matmul(H1[i, i:].unsqueeze(0))
        E1[:, i] = e
    Wc[:, i2:] -= E1.matmul(U[i1:i2, i2:])
rtn = torch.round(W / sc).clamp(-8, 7) * sc
print("gptq", ((W - Q) @ Xc.t()).norm(), ((W - rtn) @ Xc.t()).norm())
met = W.abs() * Xc.norm(dim=0)
msk = torch.zeros_like(W, dtype=torch.bool)
msk.scatter_(1, torch.sort(met, dim=-1, stable=True)[1][:, :8], True)
Ww = W.clone()
Ww[msk] = 0
print("wanda", (Ww == 0).float().mean(), Ww.norm())
nf4 = torch.tensor(
    [
        -1.0,
        -0.6962,
        -0.5251,
        -0.3949,
        -0.2844,
        -0.1848,
        -0.0911,
        0.0,
        0.0796,
        0.1609,
        0.2461,
        0.3379,
        0.4407,
        0.5626,
        0.7230,
        1.0,
    ]
)
bl = W.view(-1, 32)
am = bl.abs().amax(1, keepdim=True)
c = ((bl / am).unsqueeze(-1) - nf4).abs().argmin(-1).to(torch.uint8)
pk = (c[:, ::2] << 4) | c[:, 1::2]
un = torch.stack([pk >> 4, pk & 0xF], -1).view(c.shape)
print(
    "nf4",
    pk[0, :5],
    torch.equal(un, c),
    (nf4[un.long()] * am - bl).abs().max(),
    torch.int8,
    W.to(torch.float8_e4m3fn).float().sub(W).abs().max(),
)
