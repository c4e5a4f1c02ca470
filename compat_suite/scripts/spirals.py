# compat: rtol=1e-3 atol=1e-5 seconds=6 (many steps of float32 sums in another order)
"""An MLP on three spirals, with dropout, early stopping and the best weights kept."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)
device = torch.device("cpu")

N, D, C, H = 60, 2, 3, 32
X = torch.zeros(N * C, D).to(device)
y = torch.zeros(N * C, dtype=torch.long).to(device)
for c in range(C):
    index = 0
    t = torch.linspace(0, 1, N)
    inner_var = (
        torch.linspace((2 * math.pi / C) * c, (2 * math.pi / C) * (2 + c), N)
        + torch.randn(N) * 0.2
    )
    for ix in range(N * c, N * (c + 1)):
        if index < 3:  # a few by hand, as the notebooks do
            X[ix] = t[index] * torch.stack(
                (torch.sin(inner_var[index]), torch.cos(inner_var[index]))
            )
            y[ix] = c
        index += 1
    rows = slice(N * c + 3, N * (c + 1))
    X[rows, 0] = t[3:] * torch.sin(inner_var[3:])
    X[rows, 1] = t[3:] * torch.cos(inner_var[3:])
    y[rows] = c
print("Shapes:", X.size(), tuple(y.size()))

order = torch.randperm(N * C)
train, valid = order[:140], order[140:]

model = nn.Sequential(
    nn.Linear(D, H), nn.ReLU(), nn.Dropout(p=0.1), nn.Linear(H, H), nn.ReLU()
)
model.add_module("head", nn.Linear(H, C))
model.to(device)
print(sum(p.numel() for p in model.parameters() if p.requires_grad), "parameters")


@torch.no_grad()
def evaluate(subset):
    model.eval()
    logits = model(X[subset])
    loss = F.cross_entropy(logits, y[subset])
    accuracy = (logits.argmax(1) == y[subset]).float().mean().item()
    model.train()
    return loss.item(), accuracy


class EarlyStopping:
    def __init__(self, patience, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best, self.bad, self.state = float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best - self.delta:
            self.best, self.bad = value, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, weight_decay=1e-5)
stopper = EarlyStopping(patience=3, delta=0.04)
for epoch in range(60):
    loss = F.cross_entropy(model(X[train]), y[train])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if epoch % 3 == 0:
        val_loss, val_acc = evaluate(valid)
        print(f"{epoch:3d} | {loss.item():.4f} | {val_loss:.4f} | {val_acc:.3f}")
        if stopper(val_loss, model):
            print("Early stopping at", epoch)
            break
model.load_state_dict(stopper.state)
print(f"best {stopper.best:.4f} again {evaluate(valid)[0]:.4f}")
