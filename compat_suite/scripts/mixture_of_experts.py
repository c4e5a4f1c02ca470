# compat: rtol=1e-3 atol=1e-5 seconds=8 (two steps of training)
"""A noisy mixture of experts and a switch layer: which rows go where is data."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class MoE(nn.Module):
    def __init__(self, d, n, k):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
            for _ in range(n)
        )
        self.gate = nn.Linear(d, n, bias=False)
        self.noise = nn.Linear(d, n, bias=False)
        self.k, self.n = k, n

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        logits = self.gate(flat)
        if self.training:
            logits = logits + torch.randn_like(logits) * F.softplus(self.noise(flat))
        w, sel = torch.topk(logits, self.k, dim=-1)
        w = F.softmax(w, dim=-1, dtype=torch.float).to(flat.dtype)
        out = torch.zeros_like(flat)
        mask = F.one_hot(sel, num_classes=self.n).permute(2, 1, 0)
        for e in range(self.n):
            idx, top_x = torch.where(mask[e])
            if top_x.shape[0] == 0:
                continue
            out.index_add_(
                0,
                top_x,
                self.experts[e](flat[None, top_x].reshape(-1, flat.shape[-1]))
                * w[top_x, idx, None],
            )
        p = logits.softmax(-1)
        f = mask.float().sum(1).mean(1)
        aux = self.n * (p.mean(0) * f).sum()
        return out.view_as(x), aux


moe = MoE(6, 4, 2)
opt = torch.optim.Adam(moe.parameters(), 1e-2)
xs = torch.randn(2, 5, 6)
for _ in range(2):
    o, aux = moe(xs)
    loss = (o - xs).pow(2).mean() + 0.01 * aux
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"{loss.item():.5f} {aux.item():.4f}")


# Switch
class Switch(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.sw = nn.Linear(d, n)
        self.ex = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])
        self.n = n

    def forward(self, x):
        prob, routes = torch.max(torch.softmax(self.sw(x), -1), -1)
        il = [torch.eq(routes, i).nonzero(as_tuple=True)[0] for i in range(self.n)]
        fo = x.new_zeros(x.shape)
        counts = x.new_tensor([len(il[i]) for i in range(self.n)])
        eo = [self.ex[i](x[il[i], :]) for i in range(self.n)]
        for i in range(self.n):
            fo[il[i], :] = eo[i]
        return fo * prob.view(-1, 1), counts


s = Switch(6, 3)
o, c = s(torch.randn(9, 6))
o.sum().backward()
print(c, f"{s.sw.weight.grad.norm():.5f}")
