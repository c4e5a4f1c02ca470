"""Training steps of models of sequences, as scripts write them."""

from __future__ import annotations

import math
import random
from typing import Any

from ._case import Step


def lstm_language_model(torch: Any) -> Step:
    """Two layers on 35 words, clipped gradients, parameters updated by hand."""
    nn, F = torch.nn, torch.nn.functional
    words, width, length = 1000, 200, 35

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.encoder = nn.Dropout(0.2), nn.Embedding(words, width)
            self.rnn = nn.LSTM(width, width, 2, dropout=0.2)
            self.decoder = nn.Linear(width, words)

        def forward(self, x, hidden):
            x, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
            scores = self.decoder(self.drop(x)).view(-1, words)
            return F.log_softmax(scores, 1), hidden

    model = Model()
    hidden = torch.zeros(2, 20, width), torch.zeros(2, 20, width)
    text = torch.randint(0, words, (50 * length + 1, 20))
    at = 0

    def step() -> float:
        nonlocal hidden, at
        given = text[at : at + length]
        wanted = text[at + 1 : at + 1 + length].reshape(-1)
        at = (at + length) % (50 * length)
        model.zero_grad()
        scores, hidden = model(given, tuple(h.detach() for h in hidden))
        loss = F.nll_loss(scores, wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-1e-4)
        return loss.item()

    return step


def names_by_letters(torch: Any) -> Step:
    """A recurrent network written by hand, on names of five to eight letters."""
    nn, F = torch.nn, torch.nn.functional
    letters, width, languages = 57, 128, 18

    class RNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.i2h = nn.Linear(letters + width, width)
            self.i2o = nn.Linear(letters + width, languages)

        def forward(self, x, hidden):
            both = torch.cat((x, hidden), 1)
            return F.log_softmax(self.i2o(both), 1), torch.tanh(self.i2h(both))

    model, chance = RNN(), random.Random(0)

    def step() -> float:
        length = chance.choice([5, 6, 7, 8])
        name = torch.zeros(length, 1, letters)
        for i in range(length):
            name[i][0][chance.randrange(letters)] = 1
        wanted = torch.tensor([chance.randrange(languages)])
        hidden = torch.zeros(1, width)
        model.zero_grad()
        for i in range(length):
            scores, hidden = model(name[i], hidden)
        loss = F.nll_loss(scores, wanted)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-1e-5)
        return loss.item()

    return step


def translation(torch: Any) -> Step:
    """A GRU that attends to what another one read, ten words, word by word."""
    nn, F = torch.nn, torch.nn.functional
    width, words, length = 128, 500, 10

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(words, width)
            self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
            self.score, self.out = nn.Linear(width, 1), nn.Linear(width, words)
            self.gru = nn.GRU(2 * width, width, batch_first=True)

        def forward(self, read, hidden, target):
            word = torch.zeros(len(read), 1, dtype=torch.long)
            found = []
            for i in range(length):
                query = self.query(hidden.permute(1, 0, 2))
                scores = self.score(torch.tanh(query + self.key(read)))
                weights = F.softmax(scores.squeeze(2).unsqueeze(1), -1)
                given = torch.cat((self.embedding(word), weights.bmm(read)), 2)
                made, hidden = self.gru(given, hidden)
                found.append(self.out(made))
                word = target[:, i].unsqueeze(1)
            return F.log_softmax(torch.cat(found, 1), -1)

    embedding, encoder = (
        nn.Embedding(words, width),
        nn.GRU(width, width, batch_first=True),
    )
    reader, decoder = nn.ModuleList([embedding, encoder]), Decoder()
    optimizers = [
        torch.optim.Adam(net.parameters(), lr=1e-5) for net in (reader, decoder)
    ]
    source, target = (torch.randint(0, words, (32, length)) for _ in range(2))

    def step() -> float:
        for optimizer in optimizers:
            optimizer.zero_grad()
        scores = decoder(*encoder(embedding(source)), target)
        loss = F.nll_loss(scores.view(-1, words), target.view(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return step


def gpt(torch: Any) -> Step:
    """Four layers on 64 letters cut out of a text, AdamW, clipped gradients."""
    nn, F = torch.nn, torch.nn.functional
    width, heads, length, letters = 128, 4, 64, 65

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.drop = nn.Dropout(0.1)
            mask = torch.tril(torch.ones(length, length))
            self.register_buffer("mask", mask.view(1, 1, length, length))

        def forward(self, x):
            batch, size, _ = x.shape
            shape = batch, size, heads, width // heads
            parts = self.qkv(x).split(width, dim=2)
            q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
            scores = q @ k.transpose(-2, -1) / math.sqrt(shape[-1])
            unseen = self.mask[:, :, :size, :size] == 0
            weights = F.softmax(scores.masked_fill(unseen, float("-inf")), -1)
            mixed = (self.drop(weights) @ v).transpose(1, 2).contiguous()
            return self.drop(self.proj(mixed.view(batch, size, width)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width),
                nn.GELU(),
                nn.Linear(4 * width, width),
                nn.Dropout(0.1),
            )

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = nn.Embedding(letters, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(4)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, letters, bias=False)

        def forward(self, given, wanted):
            x = self.letters(given) + self.places(torch.arange(given.size(1)))
            for block in self.blocks:
                x = block(x)
            scores = self.head(self.norm(x))
            return F.cross_entropy(scores.view(-1, letters), wanted.view(-1))

    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95))
    text = torch.randint(0, letters, (10_000,))

    def step() -> float:
        starts = torch.randint(len(text) - length, (16,))
        given = torch.stack([text[i : i + length] for i in starts])
        wanted = torch.stack([text[i + 1 : i + 1 + length] for i in starts])
        loss = model(given, wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step
