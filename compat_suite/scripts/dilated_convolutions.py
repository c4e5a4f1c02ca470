# compat: rtol=1e-3 atol=1e-5 seconds=10 (a few steps of training)
"""Temporal convolutions, WaveNet, attention over packed text (Tacotron 2)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import remove_weight_norm, weight_norm
from torch.nn.utils.parametrizations import weight_norm as pwn

torch.manual_seed(0)


class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, : -self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, n_in, n_out, k, stride, dilation, padding, dropout=0.2):
        super().__init__()
        self.conv1 = weight_norm(
            nn.Conv1d(n_in, n_out, k, stride=stride, padding=padding, dilation=dilation)
        )
        self.chomp1 = Chomp1d(padding)
        self.relu1 = nn.ReLU()
        self.dropout1 = nn.Dropout(dropout)
        self.conv2 = weight_norm(
            nn.Conv1d(
                n_out, n_out, k, stride=stride, padding=padding, dilation=dilation
            )
        )
        self.chomp2 = Chomp1d(padding)
        self.relu2 = nn.ReLU()
        self.dropout2 = nn.Dropout(dropout)
        self.net = nn.Sequential(
            self.conv1,
            self.chomp1,
            self.relu1,
            self.dropout1,
            self.conv2,
            self.chomp2,
            self.relu2,
            self.dropout2,
        )
        self.downsample = nn.Conv1d(n_in, n_out, 1) if n_in != n_out else None
        self.relu = nn.ReLU()
        self.init_weights()

    def init_weights(self):
        self.conv1.weight.data.normal_(0, 0.01)
        self.conv2.weight.data.normal_(0, 0.01)
        if self.downsample is not None:
            self.downsample.weight.data.normal_(0, 0.01)

    def forward(self, x):
        out = self.net(x)
        res = x if self.downsample is None else self.downsample(x)
        return self.relu(out + res)


class TCN(nn.Module):
    def __init__(self, i, o, channels, k=2, dropout=0.2):
        super().__init__()
        layers = []
        for n in range(len(channels)):
            d = 2**n
            layers += [
                TemporalBlock(
                    i if n == 0 else channels[n - 1],
                    channels[n],
                    k,
                    1,
                    d,
                    (k - 1) * d,
                    dropout,
                )
            ]
        self.network = nn.Sequential(*layers)
        self.linear = nn.Linear(channels[-1], o)
        self.linear.weight.data.normal_(0, 0.01)

    def forward(self, x):
        return self.linear(self.network(x)[:, :, -1])


def data_generator(N, T):
    X_num = torch.rand([N, 1, T])
    X_mask = torch.zeros([N, 1, T])
    Y = torch.zeros([N, 1])
    import numpy as np

    np.random.seed(0)
    for i in range(N):
        positions = np.random.choice(T, size=2, replace=False)
        X_mask[i, 0, positions[0]] = 1
        X_mask[i, 0, positions[1]] = 1
        Y[i, 0] = X_num[i, 0, positions[0]] + X_num[i, 0, positions[1]]
    return torch.cat((X_num, X_mask), dim=1), Y


X, Y = data_generator(64, 30)
model = TCN(2, 1, [8, 8, 8], 4)
print(model)
print(list(model.state_dict()))
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for ep in range(3):
    model.train()
    for i in range(0, 64, 16):
        x, y = X[i : i + 16], Y[i : i + 16]
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
    print(f"Train Epoch: {ep:2d} \tLoss: {loss.item():.6f}")
for m in model.modules():
    if isinstance(m, nn.Conv1d) and hasattr(m, "weight_g"):
        remove_weight_norm(m)
print(list(model.state_dict())[:4])
model.eval()
print(model(X[:3]))


# WaveNet
def mu_law_encode(x, q=32):
    mu = torch.tensor(q - 1.0)
    return (
        (x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu) + 1) / 2 * mu + 0.5
    ).long()


def mu_law_decode(y, q=32):
    mu = q - 1.0
    x = y.float() / mu * 2 - 1
    return x.sign() * (torch.exp(x.abs() * math.log1p(mu)) - 1) / mu


class ResidualBlock(nn.Module):
    def __init__(self, c, s, d):
        super().__init__()
        self.d = d
        self.filter = pwn(nn.Conv1d(c, c, 2, dilation=d))
        self.gate = pwn(nn.Conv1d(c, c, 2, dilation=d))
        self.res = nn.Conv1d(c, c, 1)
        self.skip = nn.Conv1d(c, s, 1)

    def forward(self, x):
        p = F.pad(x, (self.d, 0))
        h = torch.tanh(self.filter(p)) * torch.sigmoid(self.gate(p))
        return x + self.res(h), self.skip(h)


class WaveNet(nn.Module):
    def __init__(self, q=32, c=16, s=16, layers=4):
        super().__init__()
        self.q = q
        self.emb = nn.Embedding(q, c)
        self.blocks = nn.ModuleList(ResidualBlock(c, s, 2**i) for i in range(layers))
        self.o1 = nn.Conv1d(s, s, 1)
        self.o2 = nn.Conv1d(s, q, 1)

    def forward(self, x):
        h = self.emb(x).transpose(1, 2)
        sk = 0
        for b in self.blocks:
            h, s = b(h)
            sk = sk + s
        return self.o2(F.relu(self.o1(F.relu(sk))))

    @torch.no_grad()
    def generate(self, n, prime):
        out = prime
        for _ in range(n):
            lg = self(out[:, -17:])[:, :, -1]
            out = torch.cat([out, torch.multinomial(F.softmax(lg, 1), 1)], 1)
        return out


t = torch.linspace(0, 20, 200)
wav = torch.sin(t) * 0.8
q = mu_law_encode(wav)
print(q[:20], mu_law_decode(q)[:5])
net = WaveNet()
print(sum(p.numel() for p in net.parameters() if p.requires_grad), net.blocks[0].filter)
print(list(net.state_dict())[:8])
opt = torch.optim.Adam(net.parameters(), 1e-2)
for i in range(8):
    loss = F.cross_entropy(net(q[None, :-1]), q[None, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
print(net.generate(20, q[None, :20]))


# Location sensitive attention (Tacotron 2)
class LinearNorm(nn.Module):
    def __init__(self, i, o, bias=True, w_init_gain="linear"):
        super().__init__()
        self.linear_layer = nn.Linear(i, o, bias=bias)
        nn.init.xavier_uniform_(
            self.linear_layer.weight, gain=nn.init.calculate_gain(w_init_gain)
        )

    def forward(self, x):
        return self.linear_layer(x)


class ConvNorm(nn.Module):
    def __init__(
        self,
        i,
        o,
        kernel_size=1,
        stride=1,
        padding=None,
        dilation=1,
        bias=True,
        w_init_gain="linear",
    ):
        super().__init__()
        if padding is None:
            assert kernel_size % 2 == 1
            padding = int(dilation * (kernel_size - 1) / 2)
        self.conv = nn.Conv1d(
            i,
            o,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            bias=bias,
        )
        nn.init.xavier_uniform_(
            self.conv.weight, gain=nn.init.calculate_gain(w_init_gain)
        )

    def forward(self, s):
        return self.conv(s)


class Attention(nn.Module):
    def __init__(self, rnn, emb, att, nf=4, ks=5):
        super().__init__()
        self.query_layer = LinearNorm(rnn, att, bias=False, w_init_gain="tanh")
        self.memory_layer = LinearNorm(emb, att, bias=False, w_init_gain="tanh")
        self.v = LinearNorm(att, 1, bias=False)
        self.location_conv = ConvNorm(2, nf, ks, bias=False)
        self.location_dense = LinearNorm(nf, att, bias=False, w_init_gain="tanh")
        self.score_mask_value = -float("inf")

    def forward(self, h, memory, pm, awc, mask):
        pq = self.query_layer(h.unsqueeze(1))
        pa = self.location_dense(self.location_conv(awc).transpose(1, 2))
        e = self.v(torch.tanh(pq + pa + pm)).squeeze(-1)
        if mask is not None:
            e.data.masked_fill_(mask, self.score_mask_value)
        w = F.softmax(e, dim=1)
        return torch.bmm(w.unsqueeze(1), memory).squeeze(1), w


def get_mask_from_lengths(lengths):
    max_len = torch.max(lengths).item()
    ids = torch.arange(0, max_len, out=torch.LongTensor(max_len))
    return (ids < lengths.unsqueeze(1)).bool()


lens = torch.tensor([7, 5, 3])
mask = ~get_mask_from_lengths(lens)
print(mask)
emb = nn.LSTM(6, 4, batch_first=True, bidirectional=True)
xp = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 7, 6), lens, batch_first=True)
emb.flatten_parameters()
mem, _ = nn.utils.rnn.pad_packed_sequence(emb(xp)[0], batch_first=True)
att = Attention(10, 8, 6)
rnn = nn.LSTMCell(8 + 5, 10)
proj = LinearNorm(18, 5)
gate = LinearNorm(18, 1, w_init_gain="sigmoid")
mel = torch.randn(3, 6, 5)
aw = awc = torch.zeros(3, 7)
h = c = torch.zeros(3, 10)
ctx = torch.zeros(3, 8)
pm = att.memory_layer(mem)
outs, gates, al = [], [], []
for t in range(6):
    inp = mel.new_zeros(3, 5) if t == 0 else mel[:, t - 1]
    h, c = rnn(torch.cat((inp, ctx), -1), (h, c))
    h = F.dropout(h, 0.1, True)
    ctx, aw = att(h, mem, pm, torch.cat((aw.unsqueeze(1), awc.unsqueeze(1)), 1), mask)
    awc = awc + aw
    o = torch.cat((h, ctx), 1)
    outs.append(proj(o))
    gates.append(gate(o))
    al.append(aw)
o = torch.stack(outs, 1)
g = torch.stack(gates).squeeze(-1).t()
loss = nn.MSELoss()(o, mel) + nn.BCEWithLogitsLoss()(
    g, (torch.arange(6) > 3).float().expand(3, 6)
)
loss.backward()
print(loss, torch.stack(al, 1)[2], att.v.linear_layer.weight.grad)
