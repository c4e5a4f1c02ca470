"""Derivatives of derivatives: create_graph=True keeps the history of a gradient."""

import argparse
import math

import torch
from torch import nn
from torch.autograd import grad

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=500)
options = parser.parse_args()

# Every derivative of x^5 at 2, each from the one before.
x = torch.tensor(2.0, requires_grad=True)
derivative = x**5
for order in range(1, 6):
    (derivative,) = grad(derivative, x, create_graph=True)
    print(f"derivative {order} of x^5 at 2: {derivative.item():.0f}")

# Newton's method divides the slope by the curvature. From each of these four starts
# it finds a place where the slope of x^4 - 3x^2 + x is zero.
x = torch.tensor([-2.0, -1.0, 0.5, 2.0], requires_grad=True)
for iteration in range(6):
    (slope,) = grad((x**4 - 3 * x**2 + x).sum(), x, create_graph=True)
    (curvature,) = grad(slope.sum(), x)
    print(f"newton {iteration}: largest slope {slope.abs().max().item():.4f}")
    x = (x - slope / curvature).detach().requires_grad_()
print("x =", x.detach())

# A gradient can also flow through a step of descent, and tell which rate is best.
rate = torch.tensor(0.01, requires_grad=True)
for _ in range(20):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    (slope,) = grad((w**2 * torch.tensor([1.0, 3.0])).sum(), w, create_graph=True)
    after = ((w - rate * slope) ** 2 * torch.tensor([1.0, 3.0])).sum()
    rate = (rate - 1e-3 * grad(after, rate)[0]).detach().requires_grad_()
print(f"best rate {rate.item():.4f}: {after.item():.4f} after one step")

# A network learns the swing of a pendulum from its equation alone: u'' = -u, with
# u(0) = 0 and u'(0) = 1. No data; the loss itself holds second derivatives.
torch.manual_seed(0)
u = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
u.append(nn.Linear(32, 1))
optimizer = torch.optim.Adam(u.parameters(), lr=2e-3)
t = torch.linspace(0, math.pi, 40).unsqueeze(1).requires_grad_()
for step in range(options.steps + 1):
    swing = u(t)
    (velocity,) = grad(swing.sum(), t, create_graph=True)
    (force,) = grad(velocity.sum(), t, create_graph=True)
    loss = ((force + swing) ** 2).mean()
    loss = loss + (swing[0] ** 2 + (velocity[0] - 1) ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % max(options.steps // 5, 1) == 0:
        print(f"pendulum {step:4}: loss {loss.item():.4f}")
print(f"largest distance from sin(t): {(u(t) - t.sin()).abs().max().item():.3f}")
