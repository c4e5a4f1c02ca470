# compat: rtol=2e-3 atol=2e-4 seconds=5 (many steps of float32 sums in another order)
"""DLRM, DeepFM and SASRec: bags of embeddings with NumPy's numbers, masks, AUC."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)
np.random.seed(0)
random.seed(0)


class DLRM_Net(nn.Module):
    def create_mlp(self, ln, sigmoid_layer):
        layers = nn.ModuleList()
        for i in range(0, ln.size - 1):
            n, m = (ln[i], ln[i + 1])
            LL = nn.Linear(int(n), int(m), bias=True)
            W = np.random.normal(0.0, np.sqrt(2 / (m + n)), size=(m, n)).astype(
                np.float32
            )
            bt = np.random.normal(0.0, np.sqrt(1 / m), size=m).astype(np.float32)
            LL.weight.data = torch.tensor(W, requires_grad=True)
            LL.bias.data = torch.tensor(bt, requires_grad=True)
            layers.append(LL)
            layers.append(nn.Sigmoid() if i == sigmoid_layer else nn.ReLU())
        return torch.nn.Sequential(*layers)

    def create_emb(self, m, ln):
        emb_l = nn.ModuleList()
        for i in range(0, ln.size):
            n = ln[i]
            EE = nn.EmbeddingBag(n, m, mode="sum", sparse=False)
            W = np.random.uniform(
                low=-np.sqrt(1 / n), high=np.sqrt(1 / n), size=(n, m)
            ).astype(np.float32)
            EE.weight.data = torch.tensor(W, requires_grad=True)
            emb_l.append(EE)
        return emb_l

    def __init__(
        self,
        m=4,
        ln_emb=(7, 5, 9),
        ln_bot=(3, 8, 4),
        ln_top=(10, 8, 1),
    ):
        super().__init__()
        self.emb_l = self.create_emb(m, np.array(ln_emb))
        self.bot_l = self.create_mlp(np.array(ln_bot), -1)
        self.top_l = self.create_mlp(np.array(ln_top), len(ln_top) - 2)
        self.loss_threshold = 1e-06

    def apply_emb(self, lS_o, lS_i):
        return [self.emb_l[k](g, lS_o[k]) for k, g in enumerate(lS_i)]

    def interact_features(self, x, ly):
        bs, d = x.shape
        Tt = torch.cat([x, *ly], dim=1).view((bs, -1, d))
        Z = torch.bmm(Tt, torch.transpose(Tt, 1, 2))
        _, ni, nj = Z.shape
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        return torch.cat([x, Z[:, li, lj]], dim=1)

    def forward(self, dx, lo, li):
        x = self.bot_l(dx)
        z = self.interact_features(x, self.apply_emb(lo, li))
        p = self.top_l(z)
        return (
            torch.clamp(p, min=self.loss_threshold, max=1.0 - self.loss_threshold)
            if 0.0 < self.loss_threshold < 1.0
            else p
        )


dlrm = DLRM_Net()
print(dlrm)
opt = torch.optim.Adagrad(dlrm.parameters(), lr=0.1)
for _j in range(5):
    X = torch.rand(6, 3)
    lo = torch.stack([torch.arange(6) * 2] * 3)
    li = [torch.randint(n, (12,)) for n in (7, 5, 9)]
    Tg = torch.round(torch.rand(6, 1))
    Z = dlrm(X, lo, li)
    E = F.binary_cross_entropy(Z, Tg)
    opt.zero_grad()
    E.backward()
    opt.step()
    L = E.detach().cpu().numpy()
    S = Z.detach().cpu().numpy()
    A = np.sum((np.round(S, 0) == Tg.numpy()).astype(np.uint8))
    print(f"{float(L):.5f}", A)


class FeaturesLinear(nn.Module):
    def __init__(self, field_dims, output_dim=1):
        super().__init__()
        self.fc = nn.Embedding(sum(field_dims), output_dim)
        self.bias = nn.Parameter(torch.zeros((output_dim,)))
        self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)

    def forward(self, x):
        x = x + x.new_tensor(self.offsets).unsqueeze(0)
        return torch.sum(self.fc(x), dim=1) + self.bias


class FeaturesEmbedding(nn.Module):
    def __init__(self, fd, e):
        super().__init__()
        self.embedding = nn.Embedding(sum(fd), e)
        self.offsets = np.array((0, *np.cumsum(fd)[:-1]), dtype=np.int64)
        nn.init.xavier_uniform_(self.embedding.weight.data)

    def forward(self, x):
        return self.embedding(x + x.new_tensor(self.offsets).unsqueeze(0))


class FM(nn.Module):
    def __init__(self, reduce_sum=True):
        super().__init__()
        self.reduce_sum = reduce_sum

    def forward(self, x):
        ix = torch.sum(x, dim=1) ** 2 - torch.sum(x**2, dim=1)
        ix = torch.sum(ix, dim=1, keepdim=True) if self.reduce_sum else ix
        return 0.5 * ix


class MLP(nn.Module):
    def __init__(self, i, dims, dropout, out=True):
        super().__init__()
        layers = []
        for e in dims:
            layers += [
                nn.Linear(i, e),
                nn.BatchNorm1d(e),
                nn.ReLU(),
                nn.Dropout(p=dropout),
            ]
            i = e
        if out:
            layers.append(nn.Linear(i, 1))
        self.mlp = nn.Sequential(*layers)

    def forward(self, x):
        return self.mlp(x)


class DeepFM(nn.Module):
    def __init__(self, fd, e, md, dr):
        super().__init__()
        self.linear = FeaturesLinear(fd)
        self.fm = FM(True)
        self.embedding = FeaturesEmbedding(fd, e)
        self.eo = len(fd) * e
        self.mlp = MLP(self.eo, md, dr)

    def forward(self, x):
        ex = self.embedding(x)
        return torch.sigmoid(
            (self.linear(x) + self.fm(ex) + self.mlp(ex.view(-1, self.eo))).squeeze(1)
        )


class CTR(Dataset):
    def __init__(self, n=96):
        r = np.random.RandomState(0)
        self.items = np.stack([r.randint(0, d, n) for d in (6, 4, 3)], 1).astype(
            np.int64
        )
        self.targets = (self.items.sum(1) % 3 == 0).astype(np.float32)
        self.field_dims = np.max(self.items, axis=0) + 1

    def __len__(self):
        return self.targets.shape[0]

    def __getitem__(self, i):
        return (self.items[i], self.targets[i])


def auc(t, p):
    o = np.argsort(p)
    r = np.empty(len(p))
    r[o] = np.arange(1, len(p) + 1)
    n1 = t.sum()
    return (r[t == 1].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(t) - n1))


ds = CTR()
tr, va, te = random_split(ds, (64, 16, 16))
m = DeepFM(ds.field_dims, 4, (8, 8), 0.2)
crit = nn.BCELoss()
opt = torch.optim.Adam(params=m.parameters(), lr=0.01, weight_decay=1e-06)
for _ep in range(3):
    m.train()
    tot = 0
    for _i, (f, t) in enumerate(
        DataLoader(tr, batch_size=16, num_workers=0, shuffle=True)
    ):
        y = m(f)
        loss = crit(y, t.float())
        m.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    m.eval()
    T_, P_ = ([], [])
    with torch.no_grad():
        for f, t in DataLoader(va, batch_size=8):
            T_.extend(t.tolist())
            P_.extend(m(f).tolist())
    print(f"{tot / 4:.4f}", "auc", round(auc(np.array(T_), np.array(P_)), 2))


class PFF(nn.Module):
    def __init__(self, h, dr):
        super().__init__()
        self.conv1 = nn.Conv1d(h, h, kernel_size=1)
        self.dropout1 = nn.Dropout(p=dr)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv1d(h, h, kernel_size=1)

    def forward(self, x):
        return (
            self.conv2(
                self.relu(self.dropout1(self.conv1(x.transpose(-1, -2))))
            ).transpose(-1, -2)
            + x
        )


class SASRec(nn.Module):
    def __init__(self, un, itn, h=8, ml=6):
        super().__init__()
        self.item_emb = nn.Embedding(itn + 1, h, padding_idx=0)
        self.pos_emb = nn.Embedding(ml, h)
        self.ed = nn.Dropout(p=0.1)
        self.aln = nn.LayerNorm(h, eps=1e-08)
        self.att = nn.MultiheadAttention(h, 1, 0.1)
        self.fln, self.ff, self.last = (
            nn.LayerNorm(h, eps=1e-08),
            PFF(h, 0.1),
            nn.LayerNorm(h, eps=1e-08),
        )

    def log2feats(self, ls):
        seqs = self.item_emb(torch.LongTensor(ls))
        seqs *= self.item_emb.embedding_dim**0.5
        pos = np.tile(np.array(range(ls.shape[1])), [ls.shape[0], 1])
        seqs += self.pos_emb(torch.LongTensor(pos))
        seqs = self.ed(seqs)
        tm = torch.BoolTensor(ls == 0)
        seqs *= ~tm.unsqueeze(-1)
        tl = seqs.shape[1]
        am = ~torch.tril(torch.ones((tl, tl), dtype=torch.bool))
        seqs = torch.transpose(seqs, 0, 1)
        Q = self.aln(seqs)
        mo, _ = self.att(Q, seqs, seqs, attn_mask=am)
        seqs = torch.transpose(Q + mo, 0, 1)
        seqs = self.ff(self.fln(seqs))
        seqs *= ~tm.unsqueeze(-1)
        return self.last(seqs)

    def forward(self, ls, ps, ns):
        f = self.log2feats(ls)
        pe, ne = (
            self.item_emb(torch.LongTensor(ps)),
            self.item_emb(torch.LongTensor(ns)),
        )
        return ((f * pe).sum(dim=-1), (f * ne).sum(dim=-1))


sr = SASRec(5, 12)
for name, p in sr.named_parameters():
    try:
        nn.init.xavier_normal_(p.data)
    except Exception as e:
        print("skip", name, str(e)[:80])
bce = nn.BCEWithLogitsLoss()
ao = torch.optim.Adam(sr.parameters(), lr=0.01, betas=(0.9, 0.98))
r = np.random.RandomState(1)
for _st in range(5):
    seq = r.randint(1, 13, (4, 6))
    seq[:, :2] = 0
    pos = np.roll(seq, -1, 1)
    neg = r.randint(1, 13, (4, 6))
    pl, nl = sr(seq, pos, neg)
    pla, nla = (torch.ones(pl.shape), torch.zeros(nl.shape))
    ao.zero_grad()
    idx = np.where(pos != 0)
    loss = bce(pl[idx], pla[idx])
    loss += bce(nl[idx], nla[idx])
    for p in sr.item_emb.parameters():
        loss += 0.0001 * torch.norm(p)
    loss.backward()
    ao.step()
    print(f"{loss.item():.4f}")
print(
    sr.item_emb.weight[0].abs().sum() >= 0,
    (-sr.log2feats(seq)[:, -1] @ sr.item_emb.weight.T)[0].argsort().argsort()[:3].shape,
)
