# compat: rtol=1e-3 atol=1e-5 seconds=14 (a few steps of training)
# ruff: noqa: B007, B905, E741
"""Capsules, codes (VQ-VAE-2), sparse attention (TabNet), NF4, molecules."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function, Variable


def capsules():
    def squash(t, dim=-1):
        sn = (t**2).sum(dim=dim, keepdim=True)
        return sn / (1 + sn) * t / torch.sqrt(sn)

    def softmax(input, dim=1):
        ti = input.transpose(dim, len(input.size()) - 1)
        s = F.softmax(ti.contiguous().view(-1, ti.size(-1)), dim=-1)
        return s.view(*ti.size()).transpose(dim, len(input.size()) - 1)

    class CapsuleLayer(nn.Module):
        def __init__(self, nc, nr, i, o, k=None, stride=None, it=3):
            super().__init__()
            self.nr, self.it, self.nc = nr, it, nc
            if nr != -1:
                self.route_weights = nn.Parameter(torch.randn(nc, nr, i, o))
            else:
                self.capsules = nn.ModuleList(
                    [
                        nn.Conv2d(i, o, kernel_size=k, stride=stride, padding=0)
                        for _ in range(nc)
                    ]
                )

        def forward(self, x):
            if self.nr != -1:
                priors = x[None, :, :, None, :] @ self.route_weights[:, None, :, :, :]
                logits = Variable(torch.zeros(*priors.size()))
                for i in range(self.it):
                    probs = softmax(logits, dim=2)
                    out = squash((probs * priors).sum(dim=2, keepdim=True))
                    if i != self.it - 1:
                        logits = logits + (priors * out).sum(dim=-1, keepdim=True)
                return out
            return squash(
                torch.cat([c(x).view(x.size(0), -1, 1) for c in self.capsules], dim=-1)
            )

    conv = nn.Conv2d(1, 8, 5)
    prim = CapsuleLayer(4, -1, 8, 4, 5, 2)
    dig = CapsuleLayer(3, 4 * 16, 4, 6)
    dec = nn.Sequential(
        nn.Linear(18, 32), nn.ReLU(inplace=True), nn.Linear(32, 256), nn.Sigmoid()
    )
    ps = [p for m in (conv, prim, dig, dec) for p in m.parameters()]
    opt = torch.optim.Adam(ps)
    for e in range(3):
        x = torch.rand(5, 1, 16, 16)
        y = torch.randint(0, 3, (5,))
        h = dig(prim(F.relu(conv(x), inplace=True))).squeeze().transpose(0, 1)
        classes = (h**2).sum(dim=-1) ** 0.5
        classes = F.softmax(classes, dim=-1)
        lab = torch.sparse.torch.eye(3).index_select(dim=0, index=y)
        rec = dec((h * lab[:, :, None]).reshape(x.size(0), -1))
        left = F.relu(0.9 - classes, inplace=True) ** 2
        right = F.relu(classes - 0.1, inplace=True) ** 2
        ml = (lab * left + 0.5 * (1.0 - lab) * right).sum()
        rl = nn.MSELoss(reduction="sum")(rec, x.view(5, -1))
        loss = (ml + 0.0005 * rl) / x.size(0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item(), classes.max(1)[1].tolist())


def vqvae2():
    class Quantize(nn.Module):
        def __init__(self, dim, n_embed, decay=0.99, eps=1e-5):
            super().__init__()
            self.dim, self.n_embed, self.decay, self.eps = dim, n_embed, decay, eps
            embed = torch.randn(dim, n_embed)
            self.register_buffer("embed", embed)
            self.register_buffer("cluster_size", torch.zeros(n_embed))
            self.register_buffer("embed_avg", embed.clone())

        def forward(self, input):
            flatten = input.reshape(-1, self.dim)
            dist = (
                flatten.pow(2).sum(1, keepdim=True)
                - 2 * flatten @ self.embed
                + self.embed.pow(2).sum(0, keepdim=True)
            )
            _, ei = (-dist).max(1)
            oh = F.one_hot(ei, self.n_embed).type(flatten.dtype)
            ei = ei.view(*input.shape[:-1])
            q = self.embed_code(ei)
            if self.training:
                s = oh.sum(0)
                es = flatten.transpose(0, 1) @ oh
                self.cluster_size.data.mul_(self.decay).add_(s, alpha=1 - self.decay)
                self.embed_avg.data.mul_(self.decay).add_(es, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                cs = (self.cluster_size + self.eps) / (n + self.n_embed * self.eps) * n
                self.embed.data.copy_(self.embed_avg / cs.unsqueeze(0))
            diff = (q.detach() - input).pow(2).mean()
            q = input + (q - input).detach()
            return q, diff, ei

        def embed_code(self, i):
            return F.embedding(i, self.embed.transpose(0, 1))

    class ResBlock(nn.Module):
        def __init__(self, i, c):
            super().__init__()
            self.conv = nn.Sequential(
                nn.ReLU(),
                nn.Conv2d(i, c, 3, padding=1),
                nn.ReLU(inplace=True),
                nn.Conv2d(c, i, 1),
            )

        def forward(self, x):
            out = self.conv(x)
            out += x
            return out

    eb = nn.Sequential(
        nn.Conv2d(3, 8, 4, 2, 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 16, 3, padding=1),
        ResBlock(16, 4),
        nn.ReLU(inplace=True),
    )
    et = nn.Sequential(
        nn.Conv2d(16, 16, 4, 2, 1), nn.ReLU(inplace=True), ResBlock(16, 4)
    )
    qct = nn.Conv2d(16, 4, 1)
    qt = Quantize(4, 16)
    dt = nn.ConvTranspose2d(4, 4, 4, 2, 1)
    qcb = nn.Conv2d(20, 4, 1)
    qb = Quantize(4, 16)
    up = nn.ConvTranspose2d(4, 4, 4, 2, 1)
    dec = nn.Sequential(
        nn.Conv2d(8, 16, 3, padding=1),
        ResBlock(16, 4),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(16, 3, 4, 2, 1),
    )
    M = nn.ModuleList([eb, et, qct, qt, dt, qcb, qb, up, dec])
    opt = torch.optim.Adam(M.parameters(), 3e-3)
    for e in range(4):
        img = torch.rand(4, 3, 16, 16)
        b = eb(img)
        t = et(b)
        z, d1, i1 = qt(qct(t).permute(0, 2, 3, 1))
        z = z.permute(0, 3, 1, 2)
        d1 = d1.unsqueeze(0)
        b = torch.cat([dt(z), b], 1)
        zb, d2, i2 = qb(qcb(b).permute(0, 2, 3, 1))
        zb = zb.permute(0, 3, 1, 2)
        out = dec(torch.cat([up(z), zb], 1))
        rl = F.mse_loss(out, img)
        M.zero_grad()
        loss = rl + 0.25 * (d1 + d2.unsqueeze(0)).mean()
        loss.backward()
        opt.step()
        print(rl.item(), d1.mean().item(), len(i1.unique()), len(i2.unique()))


def tabnet_sparsemax():
    class SparsemaxFunction(Function):
        @staticmethod
        def forward(ctx, input, dim=-1):
            ctx.dim = dim
            max_val, _ = input.max(dim=dim, keepdim=True)
            input -= max_val
            tau, supp = _ts(input, dim=dim)
            output = torch.clamp(input - tau, min=0)
            ctx.save_for_backward(supp, output)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            supp, output = ctx.saved_tensors
            dim = ctx.dim
            gi = grad_output.clone()
            gi[output == 0] = 0
            v = gi.sum(dim=dim) / supp.to(output.dtype).squeeze()
            v = v.unsqueeze(dim)
            return torch.where(output != 0, gi - v, gi), None

    def _mk(input, dim=0):
        d = input.size(dim)
        rho = torch.arange(1, d + 1, device=input.device, dtype=input.dtype)
        view = [1] * input.dim()
        view[0] = -1
        return rho.view(view).transpose(0, dim)

    def _ts(input, dim=-1):
        srt, _ = torch.sort(input, descending=True, dim=dim)
        cs = srt.cumsum(dim) - 1
        rhos = _mk(input, dim)
        supp = rhos * srt > cs
        ss = supp.sum(dim=dim).unsqueeze(dim)
        tau = cs.gather(dim, ss - 1)
        tau /= ss.to(input.dtype)
        return tau, ss

    sparsemax = SparsemaxFunction.apply

    class GBN(nn.Module):
        def __init__(self, d, vbs=8, momentum=0.02):
            super().__init__()
            self.vbs = vbs
            self.bn = nn.BatchNorm1d(d, momentum=momentum)

        def forward(self, x):
            chunks = x.chunk(int(np.ceil(x.shape[0] / self.vbs)), 0)
            return torch.cat([self.bn(x_) for x_ in chunks], dim=0)

    class GLU(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.o = o
            self.fc = nn.Linear(i, 2 * o, bias=False)
            self.bn = GBN(2 * o)
            nn.init.xavier_normal_(
                self.fc.weight, gain=np.sqrt((i + o) / np.sqrt(4 * i))
            )

        def forward(self, x):
            x = self.bn(self.fc(x))
            return torch.mul(x[:, : self.o], torch.sigmoid(x[:, self.o :]))

    D = 10
    bn0 = nn.BatchNorm1d(D, momentum=0.01)
    ft = nn.ModuleList([GLU(D, 8) for _ in range(4)])
    at = nn.ModuleList(
        [nn.Sequential(nn.Linear(4, D, bias=False), GBN(D)) for _ in range(3)]
    )
    fin = nn.Linear(4, 2, bias=False)
    M = nn.ModuleList([bn0, ft, at, fin])
    opt = torch.optim.Adam(M.parameters(), 2e-2)
    for e in range(4):
        x = torch.randn(24, D)
        y = (x[:, 1] * x[:, 3] > 0).long()
        x = bn0(x)
        prior = torch.ones(x.shape)
        ml = 0
        so = []
        att = ft[0](x)[:, 4:]
        for s in range(3):
            M_ = sparsemax(torch.mul(at[s](att), prior))
            ml += torch.mean(torch.sum(torch.mul(M_, torch.log(M_ + 1e-15)), dim=1))
            prior = torch.mul(1.3 - M_, prior)
            out = ft[s + 1](torch.mul(M_, x))
            so.append(F.relu(out[:, :4]))
            att = out[:, 4:]
        loss = (
            F.cross_entropy(fin(torch.sum(torch.stack(so, dim=0), dim=0)), y)
            - 1e-3 * ml / 3
        )
        for p in M.parameters():
            p.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(M.parameters(), 1.0)
        opt.step()
        print(loss.item(), ml.item(), int((M_ > 0).sum()))


def lora_and_nf4():
    class LoRALayer:
        def __init__(self, r, lora_alpha, lora_dropout, merge_weights):
            self.r, self.lora_alpha, self.merged, self.merge_weights = (
                r,
                lora_alpha,
                False,
                merge_weights,
            )
            self.lora_dropout = (
                nn.Dropout(p=lora_dropout) if lora_dropout > 0.0 else (lambda x: x)
            )

    class Linear(nn.Linear, LoRALayer):
        def __init__(
            self, i, o, r=0, lora_alpha=1, lora_dropout=0.0, merge_weights=True, **kw
        ):
            nn.Linear.__init__(self, i, o, **kw)
            LoRALayer.__init__(
                self,
                r=r,
                lora_alpha=lora_alpha,
                lora_dropout=lora_dropout,
                merge_weights=merge_weights,
            )
            if r > 0:
                self.lora_A = nn.Parameter(self.weight.new_zeros((r, i)))
                self.lora_B = nn.Parameter(self.weight.new_zeros((o, r)))
                self.scaling = self.lora_alpha / self.r
                self.weight.requires_grad = False
            self.reset_parameters()

        def reset_parameters(self):
            nn.Linear.reset_parameters(self)
            if hasattr(self, "lora_A"):
                nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
                nn.init.zeros_(self.lora_B)

        def train(self, mode: bool = True):
            nn.Linear.train(self, mode)
            if mode:
                if self.merge_weights and self.merged:
                    self.weight.data -= self.lora_B @ self.lora_A * self.scaling
                    self.merged = False
            else:
                if self.merge_weights and not self.merged:
                    self.weight.data += self.lora_B @ self.lora_A * self.scaling
                    self.merged = True

        def forward(self, x):
            if self.r > 0 and not self.merged:
                return (
                    F.linear(x, self.weight, bias=self.bias)
                    + (
                        self.lora_dropout(x)
                        @ self.lora_A.transpose(0, 1)
                        @ self.lora_B.transpose(0, 1)
                    )
                    * self.scaling
                )
            return F.linear(x, self.weight, bias=self.bias)

    m = nn.Sequential(
        Linear(8, 16, r=2, lora_alpha=4, lora_dropout=0.1),
        nn.Tanh(),
        Linear(16, 3, r=2),
    )
    for n, p in m.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, m.parameters()), lr=1e-2)
    x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
    for e in range(5):
        m.train()
        loss = F.cross_entropy(m(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        m.eval()
        print(loss.item(), F.cross_entropy(m(x), y).item())
    print({k: tuple(v.shape) for k, v in m.state_dict().items() if "lora_" in k})
    print(m)
    code = torch.tensor(
        [
            -1.0,
            -0.6961928,
            -0.52507305,
            -0.39491749,
            -0.28444138,
            -0.18477343,
            -0.09105004,
            0.0,
            0.0795803,
            0.1609302,
            0.2461123,
            0.33791524,
            0.44070983,
            0.562617,
            0.72295684,
            1.0,
        ]
    )

    class QuantState:
        def __init__(s, absmax, shape, dtype):
            s.absmax, s.shape, s.dtype = absmax, shape, dtype

    def quantize(A, bs=16):
        n = A.numel()
        f = F.pad(A.flatten(), (0, -n % bs)).view(-1, bs)
        am = f.abs().amax(1)
        q = (
            (f / am.clamp_min(1e-12)[:, None])
            .unsqueeze(-1)
            .sub(code)
            .abs()
            .argmin(-1)
            .to(torch.uint8)
            .view(-1)
        )
        return (q[::2] << 4 | q[1::2]).view(-1, 1), QuantState(am, A.shape, A.dtype)

    def dequantize(q, s):
        v = torch.stack([q >> 4, q & 0xF], -1).view(len(s.absmax), -1)
        return (
            (code[v.int()] * s.absmax[:, None])
            .flatten()[: s.shape.numel()]
            .view(s.shape)
            .to(s.dtype)
        )

    class MatMul4Bit(torch.autograd.Function):
        @staticmethod
        def forward(ctx, A, B, state):
            ctx.state = state
            ctx.save_for_backward(B)
            ctx.dtype_A = A.dtype
            return F.linear(A, dequantize(B, state).to(A.dtype))

        @staticmethod
        def backward(ctx, g):
            (B,) = ctx.saved_tensors
            return (
                (
                    torch.matmul(g, dequantize(B, ctx.state).to(g.dtype))
                    if ctx.needs_input_grad[0]
                    else None
                ),
                None,
                None,
            )

    class Params4bit(torch.nn.Parameter):
        def __new__(cls, data=None, requires_grad=False, quant_state=None):
            self = torch.Tensor._make_subclass(cls, data, requires_grad)
            self.quant_state = quant_state
            return self

    W = torch.randn(12, 10)
    q, st = quantize(W)
    P = Params4bit(q, quant_state=st)
    a = torch.randn(4, 10, requires_grad=True, dtype=torch.bfloat16)
    out = MatMul4Bit.apply(a, P.data, st)
    out.float().pow(2).sum().backward()
    print(
        P.dtype,
        P.shape,
        type(P).__name__,
        (dequantize(q, st) - W).abs().max(),
        a.grad.dtype,
        a.grad.float().norm(),
        out.grad_fn.name(),
    )


def molecules():
    # SchNet, EGNN, GATv2, with unsorted segments
    def unsorted_segment_sum(data, segment_ids, num_segments):
        r = data.new_full((num_segments, data.size(1)), 0)
        segment_ids = segment_ids.unsqueeze(-1).expand(-1, data.size(1))
        r.scatter_add_(0, segment_ids, data)
        return r

    def unsorted_segment_mean(data, ids, n):
        rs = (n, data.size(1))
        ids = ids.unsqueeze(-1).expand(-1, data.size(1))
        r = data.new_full(rs, 0)
        c = data.new_full(rs, 0)
        r.scatter_add_(0, ids, data)
        c.scatter_add_(0, ids, torch.ones_like(data))
        return r / c.clamp(min=1)

    class E_GCL(nn.Module):
        def __init__(self, h=8):
            super().__init__()
            self.edge_mlp = nn.Sequential(
                nn.Linear(2 * h + 1, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU()
            )
            self.node_mlp = nn.Sequential(
                nn.Linear(2 * h, h), nn.SiLU(), nn.Linear(h, h)
            )
            layer = nn.Linear(h, 1, bias=False)
            torch.nn.init.xavier_uniform_(layer.weight, gain=0.001)
            self.coord_mlp = nn.Sequential(nn.Linear(h, h), nn.SiLU(), layer)

        def forward(self, h, ei, x):
            row, col = ei
            d = x[row] - x[col]
            r = torch.sum(d**2, 1).unsqueeze(1)
            d = d / (torch.sqrt(r).detach() + 1e-8)
            e = self.edge_mlp(torch.cat([h[row], h[col], r], dim=1))
            x = x + unsorted_segment_mean(d * self.coord_mlp(e), row, x.size(0))
            return h + self.node_mlp(
                torch.cat([h, unsorted_segment_sum(e, row, x.size(0))], 1)
            ), x

    rows, cols = zip(
        *[
            (i + 5 * b, j + 5 * b)
            for b in range(3)
            for i in range(5)
            for j in range(5)
            if i != j
        ]
    )
    ei = [torch.LongTensor(rows), torch.LongTensor(cols)]
    net = nn.ModuleList([E_GCL() for _ in range(2)])
    emb = nn.Linear(1, 8)
    opt = torch.optim.Adam([*net.parameters(), *emb.parameters()], 5e-3)
    for e in range(4):
        x = torch.randn(15, 3)
        v = torch.randn(15, 3) * 0.1
        h = emb(torch.norm(v, dim=1, keepdim=True))
        y = x
        for l in net:
            h, y = l(h, ei, y)
        loss = F.mse_loss(y, x + v)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("egnn", loss.item())
    R = torch.linalg.qr(torch.randn(3, 3))[0]
    with torch.no_grad():

        def f(x):
            h = emb(torch.ones(15, 1))
            for l in net:
                h, x = l(h, ei, x)
            return x

        print((f(x @ R) - f(x) @ R).abs().max().item() < 1e-4)

    class ShiftedSoftplus(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = torch.log(torch.tensor(2.0)).item()

        def forward(self, x):
            return F.softplus(x) - self.shift

    off = torch.linspace(0.0, 5.0, 12)
    coeff = -0.5 / (off[1] - off[0]).item() ** 2
    z = torch.randint(1, 6, (15,))
    batch = torch.arange(3).repeat_interleave(5)
    E = nn.Embedding(10, 8, padding_idx=0)
    filt = nn.Sequential(nn.Linear(12, 8), ShiftedSoftplus(), nn.Linear(8, 8))
    l1 = nn.Linear(8, 8, bias=False)
    out = nn.Sequential(nn.Linear(8, 4), ShiftedSoftplus(), nn.Linear(4, 1))
    P = nn.ModuleList([E, filt, l1, out])
    opt = torch.optim.Adam(P.parameters(), 1e-2)
    Et, Ft = torch.randn(3), torch.randn(15, 3) * 0.1
    for e in range(4):
        pos = x.clone().requires_grad_(True)
        ew = (pos[ei[0]] - pos[ei[1]]).norm(dim=-1)
        ea = torch.exp(coeff * torch.pow(ew.view(-1, 1) - off.view(1, -1), 2))
        C = 0.5 * (torch.cos(ew * math.pi / 5.0) + 1.0)
        W = filt(ea) * C.view(-1, 1)
        h = E(z)
        h = h + torch.zeros_like(h).index_add_(0, ei[1], l1(h)[ei[0]] * W)
        en = torch.zeros(3).index_add(0, batch, out(h).squeeze(-1))
        fr = -torch.autograd.grad(en.sum(), pos, create_graph=True, retain_graph=True)[
            0
        ]
        loss = 0.01 * F.mse_loss(en, Et) + 0.99 * F.l1_loss(fr, Ft)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("schnet", loss.item(), fr.norm().item())
    H, C = 2, 4
    wl, wr = nn.Linear(8, H * C), nn.Linear(8, H * C)
    a = nn.Parameter(torch.empty(1, H, C))
    nn.init.xavier_uniform_(a)
    opt = torch.optim.SGD([*wl.parameters(), *wr.parameters(), a], 0.1)
    for e in range(3):
        xx = E.weight.detach()[z]
        l, r = wl(xx).view(-1, H, C), wr(xx).view(-1, H, C)
        al = (F.leaky_relu(l[ei[0]] + r[ei[1]], 0.2) * a).sum(-1)
        mx = torch.full((15, H), -1e30).scatter_reduce_(
            0,
            ei[1][:, None].expand_as(al),
            al.detach(),
            reduce="amax",
            include_self=False,
        )
        al = (al - mx[ei[1]]).exp()
        s = torch.zeros(15, H).scatter_add_(0, ei[1][:, None].expand_as(al), al)
        al = al / (s[ei[1]] + 1e-16)
        o = (
            torch.zeros(15, H, C)
            .index_add_(0, ei[1], l[ei[0]] * al.unsqueeze(-1))
            .flatten(1)
        )
        loss = F.cross_entropy(o, z)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("gatv2", loss.item())


for program in (capsules, vqvae2, tabnet_sparsemax, lora_and_nf4, molecules):
    torch.manual_seed(0)
    print(program.__name__)
    program()
