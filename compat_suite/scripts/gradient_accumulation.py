# compat: rtol=1e-3 atol=1e-5 seconds=8 (many steps of float32 sums in another order)
"""Gradient accumulation, clipping, parameter groups, frozen layers, and scaling."""

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
dataset = TensorDataset(torch.randn(48, 6), torch.randn(48, 1))


def make_model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(6, 16),
        nn.Softplus(),
        nn.Linear(16, 16),
        nn.Hardswish(),
        nn.Linear(16, 1),
    )


def train(accumulation_steps, batch_size):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.MSELoss()
    loader = DataLoader(dataset, batch_size=batch_size)
    for epoch in range(3):
        norms = []
        optimizer.zero_grad()
        for i, (inputs, targets) in enumerate(loader):
            loss = criterion(model(inputs), targets) / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                norms.append(clip_grad_norm_(model.parameters(), max_norm=0.5))
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} norms {torch.stack(norms)}")
    return parameters_to_vector(model.parameters())


small, large = train(4, 4), train(1, 16)
print("same parameters:", torch.allclose(small, large, atol=1e-4), small.shape)

# Frozen layers and different rates, gradients scaled and unscaled by hand.
model = make_model()
for param in model[0].parameters():
    param.requires_grad = False
before = [p.detach().clone() for p in model.parameters()]
optimizer = torch.optim.SGD(
    [
        {"params": model[2].parameters(), "lr": 1e-2},
        {"params": model[4].parameters(), "weight_decay": 0.1},
    ],
    lr=0.1,
)
scale = 1024.0
x, target = dataset[:16]
for step in range(8):
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(x), target)
    (loss * scale).backward()
    grads = [p.grad for g in optimizer.param_groups for p in g["params"]]
    for g in grads:
        g.div_(scale)
    if not all(torch.isfinite(g).all() for g in grads):
        scale /= 2
        continue
    optimizer.step()
    if step % 2:
        print(f"{step} {loss.item():.5f}")
changed = [
    not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)
]
print("changed", changed, [p.grad is None for p in model.parameters()])

# Finite differences along a direction, through the flat parameters.
flat = parameters_to_vector(model.parameters()).detach().double()
model.double()
direction = torch.randn_like(flat)
values = []
for eps in (1e-4, -1e-4):
    vector_to_parameters(flat + eps * direction, model.parameters())
    with torch.no_grad():
        values.append(nn.functional.mse_loss(model(x.double()), target.double()))
slope = (values[0] - values[1]) / 2e-4
vector_to_parameters(flat, model.parameters())
model.requires_grad_(True)
loss = nn.functional.mse_loss(model(x.double()), target.double())
grads = torch.autograd.grad(loss, list(model.parameters()))
exact = torch.cat([g.reshape(-1) for g in grads]) @ direction
print(f"slope {slope.item():.5f} {exact.item():.5f}")
