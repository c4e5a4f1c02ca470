# compat: rtol=1e-3 atol=1e-5 seconds=6 (the order of sums in float32)
"""What detectors are trained with: targets of YOLO and SSD, boxes, correlations."""

import math
import random
from itertools import product

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
np.random.seed(0)
random.seed(0)


class YoloV1Loss(nn.Module):
    def __init__(self, S=7, B=2, C=4):
        super().__init__()
        self.S, self.B, self.C = S, B, C
        self.mse = nn.MSELoss(reduction="sum")

    @staticmethod
    def iou(p, t):
        b1x1, b1y1 = p[..., 0:1] - p[..., 2:3] / 2, p[..., 1:2] - p[..., 3:4] / 2
        b1x2, b1y2 = p[..., 0:1] + p[..., 2:3] / 2, p[..., 1:2] + p[..., 3:4] / 2
        b2x1, b2y1 = t[..., 0:1] - t[..., 2:3] / 2, t[..., 1:2] - t[..., 3:4] / 2
        b2x2, b2y2 = t[..., 0:1] + t[..., 2:3] / 2, t[..., 1:2] + t[..., 3:4] / 2
        x1 = torch.max(b1x1, b2x1)
        y1 = torch.max(b1y1, b2y1)
        x2 = torch.min(b1x2, b2x2)
        y2 = torch.min(b1y2, b2y2)
        inter = (x2 - x1).clamp(0) * (y2 - y1).clamp(0)
        return inter / (
            abs((b1x2 - b1x1) * (b1y2 - b1y1))
            + abs((b2x2 - b2x1) * (b2y2 - b2y1))
            - inter
            + 1e-6
        )

    def forward(self, p, t):
        p = p.reshape(-1, self.S, self.S, self.C + self.B * 5)
        C = self.C
        i1 = self.iou(p[..., C + 1 : C + 5], t[..., C + 1 : C + 5])
        i2 = self.iou(p[..., C + 6 : C + 10], t[..., C + 1 : C + 5])
        ious = torch.cat([i1.unsqueeze(0), i2.unsqueeze(0)], dim=0)
        _im, bb = torch.max(ious, dim=0)
        eb = t[..., C].unsqueeze(3)
        bp = eb * (bb * p[..., C + 6 : C + 10] + (1 - bb) * p[..., C + 1 : C + 5])
        bt = eb * t[..., C + 1 : C + 5]
        bp[..., 2:4] = torch.sign(bp[..., 2:4]) * torch.sqrt(
            torch.abs(bp[..., 2:4] + 1e-6)
        )
        bt[..., 2:4] = torch.sqrt(bt[..., 2:4])
        bl = self.mse(torch.flatten(bp, end_dim=-2), torch.flatten(bt, end_dim=-2))
        pb = bb * p[..., C + 5 : C + 6] + (1 - bb) * p[..., C : C + 1]
        ol = self.mse(torch.flatten(eb * pb), torch.flatten(eb * t[..., C : C + 1]))
        nl = self.mse(
            torch.flatten((1 - eb) * p[..., C : C + 1], start_dim=1),
            torch.flatten((1 - eb) * t[..., C : C + 1], start_dim=1),
        )
        cl = self.mse(
            torch.flatten(eb * p[..., :C], end_dim=-2),
            torch.flatten(eb * t[..., :C], end_dim=-2),
        )
        return 5 * bl + ol + 0.5 * nl + cl


tgt = torch.zeros(2, 7, 7, 14)
tgt[0, 2, 3, 1] = 1
tgt[0, 2, 3, 4:9] = torch.tensor([1, 0.4, 0.3, 0.5, 0.6])
tgt[1, 5, 5, 4] = 1
tgt[1, 5, 5, 5:9] = torch.rand(4)
w = nn.Linear(10, 7 * 7 * 14)
o = torch.optim.Adam(w.parameters(), 1e-2)
yl = YoloV1Loss()
for _ in range(4):
    loss = yl(w(torch.ones(2, 10)), tgt)
    o.zero_grad()
    loss.backward()
    o.step()
    print("yolo", loss.item())
# YOLOv3 build targets
anch = torch.tensor([[1.2, 1.5], [2.0, 3.5], [4.0, 3.0]])
targets = torch.tensor(
    [[0, 1, 0.5, 0.5, 0.2, 0.3], [0, 2, 0.2, 0.3, 0.4, 0.4], [1, 0, 0.7, 0.9, 0.1, 0.2]]
)


def build(t, S, na=3):
    nt = t.shape[0]
    gain = torch.ones(7)
    ai = torch.arange(na).float().view(na, 1).repeat(1, nt)
    t = torch.cat((t.repeat(na, 1, 1), ai[:, :, None]), 2)
    gain[2:6] = torch.tensor((1, 3, S, S))[[3, 2, 3, 2]]
    off = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]).float() * 0.5
    t = t * gain
    r = t[:, :, 4:6] / anch[:, None]
    j = torch.max(r, 1.0 / r).max(2)[0] < 4
    t = t[j]
    gxy = t[:, 2:4]
    gxi = gain[[2, 3]] - gxy
    j, k = ((gxy % 1.0 < 0.5) & (gxy > 1.0)).T
    k2, m = ((gxi % 1.0 < 0.5) & (gxi > 1.0)).T
    j = torch.stack((torch.ones_like(j), j, k, k2, m))
    t = t.repeat((5, 1, 1))[j]
    offs = (torch.zeros_like(gxy)[None] + off[:, None])[j]
    b, c = t[:, :2].long().T
    gxy = t[:, 2:4]
    gij = (gxy - offs).long()
    gi, gj = gij.T
    a = t[:, 6].long()
    return (
        b,
        a,
        gj.clamp_(0, S - 1),
        gi.clamp_(0, S - 1),
        torch.cat((gxy - gij, t[:, 4:6]), 1),
        anch[a],
        c,
    )


b, a, gj, gi, tb, an, tc = build(targets, 8)
print(b, a, gj, gi, tb.shape, tc)
pred = torch.randn(2, 3, 8, 8, 9, requires_grad=True)
pss = pred[b, a, gj, gi]


def ciou(b1, b2, eps=1e-7):
    (x1, y1, w1, h1), (x2, y2, w2, h2) = b1.chunk(4, 1), b2.chunk(4, 1)
    a1, a2, c1, c2 = x1 - w1 / 2, x1 + w1 / 2, y1 - h1 / 2, y1 + h1 / 2
    d1, d2, e1, e2 = x2 - w2 / 2, x2 + w2 / 2, y2 - h2 / 2, y2 + h2 / 2
    inter = (torch.min(a2, d2) - torch.max(a1, d1)).clamp(0) * (
        torch.min(c2, e2) - torch.max(c1, e1)
    ).clamp(0)
    u = w1 * h1 + w2 * h2 - inter + eps
    iou = inter / u
    cw = torch.max(a2, d2) - torch.min(a1, d1)
    ch = a2.maximum(d2) - 0 * c2 - a1.minimum(d1)
    cc = cw**2 + ch**2 + eps
    rho = ((d1 + d2 - a1 - a2) ** 2 + (e1 + e2 - c1 - c2) ** 2) / 4
    v = (4 / math.pi**2) * torch.pow(
        torch.atan(w2 / (h2 + eps)) - torch.atan(w1 / (h1 + eps)), 2
    )
    with torch.no_grad():
        alpha = v / (v - iou + (1 + eps))
    return iou - (rho / cc + v * alpha)


pxy = pss[:, :2].sigmoid() * 2.0 - 0.5
pwh = (pss[:, 2:4].sigmoid() * 2) ** 2 * an
iou = ciou(torch.cat((pxy, pwh), 1), tb).squeeze()
tobj = torch.zeros_like(pred[..., 0])
(si,) = iou.sort()[1:]
b, a, gj, gi, si2 = (
    b[si],
    a[si],
    gj[si],
    gi[si],
    iou.detach()[si].clamp(0).type(tobj.dtype),
)
tobj[b, a, gj, gi] = si2
t = torch.full_like(pss[:, 5:], 0.05)
t[range(len(tc)), tc] = 0.95
loss = (
    (1.0 - iou).mean()
    + nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.5]))(pred[..., 4], tobj)
    + F.binary_cross_entropy_with_logits(pss[:, 5:], t)
)
loss.backward()
print(loss, pred.grad.norm(), tobj.sum())


# SSD prior boxes + matching + hard negative mining
def priors():
    m = []
    for k, f in enumerate([4, 2]):
        for i, j in product(range(f), repeat=2):
            cx, cy, sk = (j + 0.5) / f, (i + 0.5) / f, [0.3, 0.6][k]
            m += [cx, cy, sk, sk]
            for ar in [2, 3]:
                m += [cx, cy, sk * math.sqrt(ar), sk / math.sqrt(ar)]
    o = torch.Tensor(m).view(-1, 4)
    o.clamp_(max=1, min=0)
    return o


def point_form(b):
    return torch.cat((b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2), 1)


def intersect(a, b):
    A, B = a.size(0), b.size(0)
    mx = torch.min(
        a[:, 2:].unsqueeze(1).expand(A, B, 2), b[:, 2:].unsqueeze(0).expand(A, B, 2)
    )
    mn = torch.max(
        a[:, :2].unsqueeze(1).expand(A, B, 2), b[:, :2].unsqueeze(0).expand(A, B, 2)
    )
    i = torch.clamp((mx - mn), min=0)
    return i[:, :, 0] * i[:, :, 1]


def jaccard(a, b):
    i = intersect(a, b)
    aa = ((a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])).unsqueeze(1).expand_as(i)
    ab = ((b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])).unsqueeze(0).expand_as(i)
    return i / (aa + ab - i)


def match(th, truths, pr, var, labels, loc_t, conf_t, idx):
    ov = jaccard(truths, point_form(pr))
    bpo, bpi = ov.max(1, keepdim=True)
    bto, bti = ov.max(0, keepdim=True)
    bti.squeeze_(0)
    bto.squeeze_(0)
    bpi.squeeze_(1)
    bpo.squeeze_(1)
    bto.index_fill_(0, bpi, 2)
    for j in range(bpi.size(0)):
        bti[bpi[j]] = j
    m = truths[bti]
    conf = labels[bti] + 1
    conf[bto < th] = 0
    g = (m[:, :2] + m[:, 2:]) / 2 - pr[:, :2]
    g /= var[0] * pr[:, 2:]
    wh = torch.log((m[:, 2:] - m[:, :2]) / pr[:, 2:]) / var[1]
    loc_t[idx] = torch.cat([g, wh], 1)
    conf_t[idx] = conf


pr = priors()
num, P, NC = 2, pr.size(0), 4
loc = torch.randn(num, P, 4, requires_grad=True)
conf = torch.randn(num, P, NC, requires_grad=True)
loc_t, conf_t = torch.Tensor(num, P, 4), torch.LongTensor(num, P)
for i in range(num):
    tr = torch.rand(3, 4) * 0.4
    tr[:, 2:] += 0.5
    match(0.5, tr, pr, [0.1, 0.2], torch.tensor([0, 1, 2]), loc_t, conf_t, i)
pos = conf_t > 0
pi = pos.unsqueeze(pos.dim()).expand_as(loc)
ll = F.smooth_l1_loss(loc[pi].view(-1, 4), loc_t[pi].view(-1, 4), reduction="sum")
bc = conf.view(-1, NC)
xm = bc.data.max()
lc = (
    torch.log(torch.sum(torch.exp(bc - xm), 1, keepdim=True))
    + xm
    - bc.gather(1, conf_t.view(-1, 1))
)
lc = lc.view(num, -1).clone()
lc[pos] = 0
_, li = lc.sort(1, descending=True)
_, ir = li.sort(1)
npos = pos.long().sum(1, keepdim=True)
nn_ = torch.clamp(3 * npos, max=pos.size(1) - 1)
neg = ir < nn_.expand_as(ir)
pidx = pos.unsqueeze(2).expand_as(conf)
nidx = neg.unsqueeze(2).expand_as(conf)
cp = conf[(pidx + nidx).gt(0)].view(-1, NC)
tw = conf_t[(pos + neg).gt(0)]
loss = ll + F.cross_entropy(cp, tw, reduction="sum")
(loss / npos.sum()).backward()
print("ssd", loss.item(), npos.T, neg.sum(), loc.grad.norm(), conf.grad.norm())


def nms(boxes, scores, overlap=0.5, top_k=20):
    keep = scores.new(scores.size(0)).zero_().long()
    x1, y1, x2, y2 = boxes.unbind(1)
    area = torch.mul(x2 - x1, y2 - y1)
    _v, idx = scores.sort(0)
    idx = idx[-top_k:]
    count = 0
    while idx.numel() > 0:
        i = idx[-1]
        keep[count] = i
        count += 1
        if idx.size(0) == 1:
            break
        idx = idx[:-1]
        xx1 = torch.index_select(x1, 0, idx).clamp(min=x1[i])
        yy1 = y1[idx].clamp(min=y1[i])
        xx2 = x2[idx].clamp(max=x2[i])
        yy2 = y2[idx].clamp(max=y2[i])
        inter = (xx2 - xx1).clamp(min=0.0) * (yy2 - yy1).clamp(min=0.0)
        IoU = inter / ((area[idx] - inter) + area[i])
        idx = idx[IoU.le(overlap)]
    return keep, count


bx = torch.rand(25, 2)
bx = torch.cat([bx, bx + torch.rand(25, 2) * 0.6 + 0.1], 1)
print("nms", nms(bx, torch.rand(25)))


# RAFT
class CorrBlock:
    def __init__(self, f1, f2, num_levels=2, radius=2):
        self.n, self.r, self.pyr = num_levels, radius, []
        b, d, h, w = f1.shape
        corr = torch.matmul(
            f1.view(b, d, h * w).transpose(1, 2), f2.view(b, d, h * w)
        ).view(b, h, w, 1, h, w) / torch.sqrt(torch.tensor(d).float())
        b, h1, w1, dim, h2, w2 = corr.shape
        corr = corr.reshape(b * h1 * w1, dim, h2, w2)
        self.pyr.append(corr)
        for _i in range(self.n - 1):
            corr = F.avg_pool2d(corr, 2, stride=2)
            self.pyr.append(corr)

    def __call__(self, coords):
        r = self.r
        coords = coords.permute(0, 2, 3, 1)
        b, h1, w1, _ = coords.shape
        out = []
        for i in range(self.n):
            corr = self.pyr[i]
            dx = torch.linspace(-r, r, 2 * r + 1)
            delta = torch.stack(torch.meshgrid(dx, dx, indexing="ij"), axis=-1)
            cl = coords.reshape(b * h1 * w1, 1, 1, 2) / 2**i + delta.view(
                1, 2 * r + 1, 2 * r + 1, 2
            )
            H, W = corr.shape[-2:]
            xg, yg = cl.split([1, 1], dim=-1)
            g = torch.cat([2 * xg / (W - 1) - 1, 2 * yg / (H - 1) - 1], dim=-1)
            out.append(F.grid_sample(corr, g, align_corners=True).view(b, h1, w1, -1))
        return torch.cat(out, dim=-1).permute(0, 3, 1, 2).contiguous().float()


fn = nn.Conv2d(3, 8, 3, 2, 1)
cg = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
c0 = torch.stack(cg[::-1], dim=0).float()[None].repeat(1, 1, 1, 1)
c1 = c0.clone()
up = nn.Conv2d(50, 2, 3, padding=1)
i1, i2 = torch.randn(1, 3, 16, 16), torch.randn(1, 3, 16, 16)
cf = CorrBlock(*fn(torch.cat([i1, i2])).chunk(2))
L = 0.0
for i in range(3):
    c1 = c1.detach()
    c1 = c1 + up(cf(c1))
    flow = c1 - c0
    mask = torch.softmax(torch.randn(1, 1, 9, 2, 2, 8, 8), dim=2)
    uf = F.unfold(2 * flow, [3, 3], padding=1).view(1, 2, 9, 1, 1, 8, 8)
    uf = torch.sum(mask * uf, dim=2).permute(0, 1, 4, 2, 5, 3).reshape(1, 2, 16, 16)
    L = L + 0.8 ** (2 - i) * (uf - 1).abs().mean()
L.backward()
print("raft", L, fn.weight.grad.norm(), up.weight.grad.norm())
