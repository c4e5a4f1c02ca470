"""Scalars, vectors, accumulation, and a graph that is used twice."""

import torch

x = torch.tensor(2.0, requires_grad=True)
y = 3 * x**2
print(y)
y.backward()
print(x.grad.item(), x.grad)

v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = v * 2
try:
    w.backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
print(v.grad)
w.backward(torch.tensor([1.0, 0.1, 0.01]))
print(v.grad)
try:
    (v * 2).backward(torch.ones(2))
except RuntimeError as error:
    print(f"RuntimeError: {error}")

x = torch.tensor(3.0, requires_grad=True)
gradient = None
for step in range(3):
    (x**2).backward()
    print(step, x.grad, gradient is None or gradient is x.grad)
    gradient = x.grad
print(x.grad.zero_(), gradient)
(x * 5).backward()
print(x.grad, gradient)

x = torch.tensor(2.0, requires_grad=True)
y = x**3
y.backward(retain_graph=True)
print(x.grad)
y.backward()
print(x.grad)
try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
print(x.grad)

z = x + 1  # saves nothing, so that a second walk is allowed
z.backward()
z.backward()
print(x.grad)

try:
    torch.tensor(1.0).backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
