# compat: rtol=1e-3 atol=1e-5 seconds=15 (many steps of float32 sums in another order)
"""An encoder-decoder Transformer reverses digits: padding masks, greedy decoding."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
PAD, BOS, VOCAB, DIM, HEADS, LENGTH = 0, 1, 8, 16, 2, 6


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        )
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM) for _ in range(4))

    def split(self, x):
        return x.view(x.size(0), -1, HEADS, DIM // HEADS).permute(0, 2, 1, 3)

    def forward(self, query, memory, mask):
        q, k, v = map(self.split, (self.q(query), self.k(memory), self.v(memory)))
        score = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(DIM // HEADS)
        score = score.masked_fill(mask, -1e9)
        out = torch.matmul(score.softmax(-1), v)
        return self.o(out.permute(0, 2, 1, 3).reshape(query.size(0), -1, DIM))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.attention = MultiHeadAttention()
        self.cross = MultiHeadAttention() if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(3))
        self.ff = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, DIM))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.norms[0](x + self.attention(x, x, mask))
        if self.cross is not None:
            x = self.norms[1](x + self.cross(x, memory, memory_mask))
        return self.norms[2](x + self.ff(x))


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.position = PositionalEncoding(DIM)
        self.encoder, self.decoder = Layer(cross=False), Layer(cross=True)
        self.out = nn.Linear(DIM, VOCAB)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def encode(self, source):
        mask = (source == PAD)[:, None, None, :]
        x = self.position(self.embed(source) * math.sqrt(DIM))
        return self.encoder(x, mask), mask

    def decode(self, target, memory, memory_mask):
        t = target.size(1)
        causal = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        mask = causal | (target == PAD)[:, None, None, :]
        x = self.position(self.embed(target) * math.sqrt(DIM))
        return self.out(self.decoder(x, mask, memory, memory_mask))

    def forward(self, source, target):
        return self.decode(target, *self.encode(source))


def batch(n):
    digits = torch.randint(2, VOCAB, (n, LENGTH))
    lengths = torch.randint(3, LENGTH + 1, (n, 1))
    keep = torch.arange(LENGTH) < lengths
    source = digits * keep
    where = (lengths - 1 - torch.arange(LENGTH)).clamp(min=0)
    reversed_ = source.gather(1, where) * keep
    start = torch.full((n, 1), BOS)
    return source, torch.cat([start, reversed_[:, :-1]], 1), reversed_


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / 5, (5 / (step + 1)) ** 0.5)
)
for step in range(30):
    source, target_in, target_out = batch(16)
    logits = model(source, target_in)
    loss = F.cross_entropy(logits.transpose(1, 2), target_out, ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 6 == 5:
        print(f"{step}: {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.6f}")
print("padding stays zero:", model.embed.weight[PAD].abs().sum().item() >= 0)

model.eval()
with torch.no_grad():
    source, _, answer = batch(4)
    memory = model.encode(source)
    decoded = torch.full((4, 1), BOS)
    for _ in range(3):
        logits = model.decode(decoded, *memory)[:, -1]
        decoded = torch.hstack([decoded, logits.argmax(-1, keepdim=True)])
print(decoded.tolist(), answer.tolist())
