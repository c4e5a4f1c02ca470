# compat: rtol=1e-3 atol=1e-5 seconds=11 (many steps of float32 sums in another order)
"""Model-agnostic meta-learning on sine waves: gradients through gradient steps."""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(2)


def sample_task():
    amplitude = torch.rand(1).item() * 4.9 + 0.1
    phase = torch.rand(1).item() * math.pi

    def task(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)

    return task


def init(n_in, n_out):
    bound = 1 / math.sqrt(n_in)
    weight = torch.empty(n_out, n_in).uniform_(-bound, bound).requires_grad_()
    return weight, torch.zeros(n_out, requires_grad=True)


params = [*init(1, 20), *init(20, 20), *init(20, 1)]


def forward(x, p):
    x = F.relu(F.linear(x, p[0], p[1]))
    x = F.relu(F.linear(x, p[2], p[3]))
    return F.linear(x, p[4], p[5])


def adapt(p, x, y, steps, lr, create_graph):
    for _ in range(steps):
        loss = F.mse_loss(forward(x, p), y)
        grads = torch.autograd.grad(loss, p, create_graph=create_graph)
        p = [w - lr * g for w, g in zip(p, grads, strict=True)]
    return p


meta = torch.optim.Adam(params, lr=5e-3)
for iteration in range(1, 21):
    meta.zero_grad()
    meta_loss = 0.0
    for _ in range(3):
        task = sample_task()
        x, y = task(10)
        fast = adapt(params, x, y, steps=2, lr=0.02, create_graph=True)
        x, y = task(10)
        meta_loss = meta_loss + F.mse_loss(forward(x, fast), y)
    meta_loss = meta_loss / 3
    meta_loss.backward()
    meta.step()
    if iteration % 5 == 0:
        norm = torch.sqrt(sum((p.grad**2).sum() for p in params))
        print(f"{iteration}: meta loss {meta_loss.item():.4f}, norm {norm:.4f}")

task = sample_task()
x, y = task(10)
x_test, y_test = task(40)
for steps in (0, 1, 3):
    fast = adapt(params, x, y, steps, 0.02, create_graph=False)
    with torch.no_grad():
        print(steps, f"{F.mse_loss(forward(x_test, fast), y_test).item():.4f}")

# Second order, against first-order MAML on one task.
fast = adapt(params, x, y, 1, 0.02, create_graph=True)
second = torch.autograd.grad(F.mse_loss(forward(x_test, fast), y_test), params)
fast = adapt(params, x, y, 1, 0.02, create_graph=False)
first = torch.autograd.grad(F.mse_loss(forward(x_test, fast), y_test), params)
for a, b in zip(first, second, strict=True):
    print(tuple(a.shape), f"{a.norm():.4f} {b.norm():.4f}", torch.equal(a, b))
