# compat: rtol=1e-4 atol=1e-6 seconds=20 (the order of sums in float32)
"""Graph networks: sparse adjacency, attention, messages by index_add and scatter."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

torch.manual_seed(42)
N, E, FEAT, C = 40, 90, 12, 3
labels = torch.randint(0, C, (N,))
src = torch.randint(0, N, (E,))
cand = torch.randint(0, N, (E, 6))
same = (labels[cand] == labels[src][:, None]).float()
dst = cand.gather(1, same.argmax(1, keepdim=True)).squeeze(1)
edge_index = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
feat = F.one_hot(labels, C).float() @ torch.randn(C, FEAT) * 0.5 + torch.randn(N, FEAT)


def normalize_adj(ei, n):
    ei = torch.cat([ei, torch.arange(n).expand(2, n)], 1)
    A = torch.sparse_coo_tensor(ei, torch.ones(ei.shape[1]), (n, n)).coalesce()
    deg = torch.sparse.sum(A, dim=1).to_dense()
    i = A.indices()
    v = A.values() * deg[i[0]].pow(-0.5) * deg[i[1]].pow(-0.5)
    return torch.sparse_coo_tensor(i, v, A.shape)


adj = normalize_adj(edge_index, N)
print(adj.shape, adj._nnz(), adj.is_sparse, adj.layout)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return (
            self.__class__.__name__
            + " ("
            + str(self.in_features)
            + " -> "
            + str(self.out_features)
            + ")"
        )


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    return correct.sum() / len(labels)


idx_train, idx_val = torch.LongTensor(range(20)), torch.LongTensor(range(20, 40))


def fit(model, args, epochs=30, lr=0.01):
    opt = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        opt.zero_grad()
        out = model(feat, *args)
        loss = F.nll_loss(out[idx_train], labels[idx_train])
        acc = accuracy(out[idx_train], labels[idx_train])
        loss.backward()
        opt.step()
        if epoch % 10 == 9:
            model.eval()
            with torch.no_grad():
                out = model(feat, *args)
            print(
                f"Epoch: {epoch + 1:04d}",
                f"loss_train: {loss.item():.4f}",
                f"acc_train: {acc.item():.4f}",
                f"loss_val: {F.nll_loss(out[idx_val], labels[idx_val]).item():.4f}",
                f"acc_val: {accuracy(out[idx_val], labels[idx_val]).item():.4f}",
            )


m = GCN(FEAT, 16, C, 0.5)
print(m)
fit(m, (adj,))


class GATLayer(nn.Module):
    def __init__(self, i, o, heads, concat=True, dropout=0.2, alpha=0.2):
        super().__init__()
        self.h, self.o, self.concat = heads, o, concat
        self.W = Parameter(torch.empty(i, heads * o))
        self.a = Parameter(torch.empty(heads, 2 * o, 1))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        nn.init.xavier_uniform_(self.a, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)
        self.softmax = nn.Softmax(dim=1)
        self.dropout = dropout

    def forward(self, h, adj_mat):
        n = h.shape[0]
        ht = torch.mm(h, self.W)
        ht = (
            F.dropout(ht, self.dropout, training=self.training)
            .view(n, self.h, self.o)
            .permute(1, 0, 2)
        )
        s, t = ht.matmul(self.a[:, : self.o, :]), ht.matmul(self.a[:, self.o :, :])
        e = self.leakyrelu(s + t.mT)
        mask = -9e16 * torch.ones_like(e)
        e = torch.where(adj_mat > 0, e, mask)
        att = F.dropout(F.softmax(e, dim=-1), self.dropout, training=self.training)
        hp = torch.matmul(att, ht)
        return (
            hp.permute(1, 0, 2).contiguous().view(n, self.h * self.o)
            if self.concat
            else hp.mean(dim=0)
        )


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.g1, self.g2 = GATLayer(FEAT, 4, 2), GATLayer(8, C, 1, concat=False)

    def forward(self, x, a):
        return F.log_softmax(self.g2(F.elu(self.g1(x, a)), a), dim=1)


fit(GAT(), (adj.to_dense(),))


class SAGE(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.l, self.r = nn.Linear(i, o), nn.Linear(i, o, bias=False)

    def forward(self, x, ei):
        s, d = ei
        agg = torch.zeros_like(x).index_add_(0, d, x[s])
        deg = torch.zeros(len(x)).scatter_add_(0, d, torch.ones(len(d))).clamp(min=1)
        return self.l(agg / deg.unsqueeze(-1)) + self.r(x)


class SAGENet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = SAGE(FEAT, 16), SAGE(16, C)

    def forward(self, x, ei):
        return F.log_softmax(self.b(self.a(x, ei).relu(), ei), -1)


fit(SAGENet(), (edge_index,))
# batch of graphs: GIN with segment pooling via scatter_reduce
batch = torch.repeat_interleave(torch.arange(4), 10)


class GIN(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(
            nn.Linear(FEAT, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16)
        )
        self.out = nn.Linear(48, 2)

    def forward(self, x, ei, batch):
        x = self.mlp(
            (1 + self.eps) * x + x.new_zeros(x.shape).index_add(0, ei[1], x[ei[0]])
        )
        n = int(batch.max()) + 1
        pools = [
            torch.zeros(n, 16).scatter_reduce(
                0, batch[:, None].expand_as(x), x, r, include_self=False
            )
            for r in ("sum", "mean", "amax")
        ]
        return self.out(torch.cat(pools, 1))


gin = GIN()
y = torch.tensor([0, 1, 0, 1])
opt = torch.optim.Adam(gin.parameters(), lr=0.01)
for _ in range(12):
    loss = F.cross_entropy(gin(feat, edge_index, batch), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"gin {loss.item():.4f}")


class EGCL(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.e = nn.Sequential(
            nn.Linear(2 * d + 1, d), nn.SiLU(), nn.Linear(d, d), nn.SiLU()
        )
        self.n = nn.Sequential(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, d))
        last = nn.Linear(d, 1, bias=False)
        nn.init.xavier_uniform_(last.weight, gain=0.001)
        self.c = nn.Sequential(nn.Linear(d, d), nn.SiLU(), last)

    def forward(self, h, x, ei):
        row, col = ei
        diff = x[row] - x[col]
        r = diff.pow(2).sum(1, keepdim=True)
        m = self.e(torch.cat([h[row], h[col], r], 1))
        trans = diff * self.c(m)
        x = x + torch.zeros_like(x).index_add_(0, row, trans) / 5
        agg = h.new_zeros(h.size(0), m.size(1))
        agg.index_add_(0, row, m)
        return h + self.n(torch.cat([h, agg], 1)), x


equivariant = nn.ModuleList([EGCL(8), EGCL(8)])
h = torch.randn(N, 8)
x = torch.randn(N, 3)


def run(h, x):
    for m in equivariant:
        h, x = m(h, x, edge_index)
    return h, x


Q, _ = torch.linalg.qr(torch.randn(3, 3))
tt = torch.randn(1, 3)
h1, x1 = run(h, x)
h2, x2 = run(h, x @ Q + tt)
print(
    torch.allclose(h1, h2, atol=1e-4),
    torch.allclose(x1 @ Q + tt, x2, atol=1e-4),
    h1.norm().item(),
)
