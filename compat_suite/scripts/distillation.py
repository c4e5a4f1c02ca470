# compat: rtol=1e-3 atol=1e-5 seconds=9 (many steps of float32 sums in another order)
"""Knowledge distillation: teacher, student, temperature, hooks on features."""

from itertools import pairwise

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

torch.manual_seed(9)
X = torch.randn(96, 8)
y = ((X[:, :4] ** 2).sum(1) > (X[:, 4:] ** 2).sum(1)).long()
X_train, X_test = X[:64], X[64:]
y_train, y_test = y[:64], y[64:]


def mlp(*sizes, act=nn.GELU):
    layers = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.LayerNorm(b), act()]
    return nn.Sequential(*layers[:-2])


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(X_test).argmax(-1) == y_test).float().mean().item()


teacher = mlp(8, 32, 32, 2)
optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-2)
scheduler = OneCycleLR(optimizer, max_lr=2e-2, total_steps=30)
for step in range(30):
    teacher.train()
    loss = F.cross_entropy(teacher(X_train), y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 10 == 9:
        lr = optimizer.param_groups[0]["lr"]
        print(f"teacher {step}: {loss.item():.5f} lr {lr:.6f}")
print("teacher accuracy", accuracy(teacher))
for p in teacher.parameters():
    p.requires_grad = False

features = {}


def save_to(name):
    def hook(module, inputs, output):
        features[name] = output

    return hook


student = mlp(8, 12, 2, act=nn.ReLU)
regressor = nn.Linear(12, 32)
handles = [
    teacher[2].register_forward_hook(save_to("teacher")),
    student[2].register_forward_hook(save_to("student")),
]
temperature, soft_weight = 2.0, 0.5
optimizer = torch.optim.RAdam(
    [
        {"params": student.parameters()},
        {"params": regressor.parameters(), "lr": 5e-3},
    ],
    lr=1e-2,
)
scheduler = ReduceLROnPlateau(optimizer, factor=0.5, patience=1, threshold=0.05)
for epoch in range(6):
    total = 0.0
    for index in torch.randperm(64).view(4, 16):
        with torch.no_grad():
            teacher_logits = teacher(X_train[index])
        student_logits = student(X_train[index])
        soft = F.kl_div(
            F.log_softmax(student_logits / temperature, dim=-1),
            F.softmax(teacher_logits / temperature, dim=-1),
            reduction="batchmean",
        ) * (temperature**2)
        hint = F.mse_loss(regressor(features["student"]), features["teacher"])
        label = F.cross_entropy(student_logits, y_train[index])
        loss = soft_weight * soft + (1 - soft_weight) * label + 0.1 * hint
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step(total)
    rates = [group["lr"] for group in optimizer.param_groups]
    print(f"student {epoch}: {total / 4:.5f} lr {rates}")
for handle in handles:
    handle.remove()
features.clear()
print("student accuracy", accuracy(student), len(features))
print(f"{F.cosine_similarity(student(X_test), teacher(X_test)).mean().item():.4f}")
