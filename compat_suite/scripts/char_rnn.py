# compat: rtol=1e-3 atol=1e-5 seconds=26 (many steps of float32 sums in another order)
"""Character models with RNN cells made of Linear layers: vanilla, GRU and LSTM."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
text = "the quick brown fox jumps over the lazy dog. " * 4
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = {i: ch for ch, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
vocab, hidden, seq, batch = len(chars), 16, 6, 4


class VanillaCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.i2h = nn.Linear(n_in + n_hidden, n_hidden)

    def forward(self, x, state):
        (h,) = state
        h = torch.tanh(self.i2h(torch.cat((x, h), 1)))
        return h, (h,)


class GRUCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.x = nn.Linear(n_in, 3 * n_hidden)
        self.h = nn.Linear(n_hidden, 3 * n_hidden, bias=False)

    def forward(self, x, state):
        (h,) = state
        xr, xz, xn = self.x(x).chunk(3, dim=1)
        hr, hz, hn = self.h(h).chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        h = torch.lerp(n, h, z)
        return h, (h,)


class LSTMCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.gates = nn.Linear(n_in + n_hidden, 4 * n_hidden)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = self.gates(torch.cat([x, h], dim=-1)).chunk(4, -1)
        c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * c.tanh()
        return h, (h, c)


class CharModel(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(vocab, 12)
        self.cell = cell(12, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.n_state = 2 if cell is LSTMCell else 1

    def initial(self, n):
        return tuple(torch.zeros(n, hidden) for _ in range(self.n_state))

    def forward(self, x, state):
        outputs = []
        for t in range(x.size(1)):
            h, state = self.cell(self.embed(x[:, t]), state)
            outputs.append(h)
        return self.out(torch.stack(outputs, dim=1)), state


def generate(model, start, length):
    model.eval()
    state = model.initial(1)
    result, current = start, torch.tensor([[stoi[start]]])
    with torch.no_grad():
        for _ in range(length):
            logits, state = model(current, state)
            current = logits[:, -1].argmax(dim=-1, keepdim=True)
            result += itos[current.item()]
    return result


columns = data[: len(data) // batch * batch].view(batch, -1)
for cell in (VanillaCell, GRUCell, LSTMCell):
    torch.manual_seed(0)
    model = CharModel(cell)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for epoch in range(12):
        state, total, steps = model.initial(batch), 0.0, 0
        for start in range(0, columns.size(1) - seq - 1, seq):
            x = columns[:, start : start + seq]
            y = columns[:, start + 1 : start + seq + 1]
            state = tuple(s.detach() for s in state)
            logits, state = model(x, state)
            loss = F.cross_entropy(logits.reshape(-1, vocab), y.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        if epoch % 4 == 3:
            print(f"{cell.__name__} epoch {epoch}: {total / steps:.5f}")
    print(repr(generate(model, "t", 12)))
