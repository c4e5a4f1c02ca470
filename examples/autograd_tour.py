"""Automatic differentiation in ten stops."""

import torch

# 1. A tensor that requires a gradient remembers what is computed from it.
x = torch.tensor(3.0, requires_grad=True)
y = x**2 + 2 * x
print("y      =", y)

# 2. backward() walks that history and leaves dy/dx in x.grad: 2x + 2.
y.backward()
print("dy/dx  =", x.grad)

# 3. Gradients add up over calls, until they are cleared.
(x * 10).backward()
print("added  =", x.grad)
x.grad = None

# 4. Branches that meet again add their gradients: d(x·x·sin x)/dx.
shared = x * x
(shared * x.sin()).backward()
print("joined =", x.grad)

# 5. Only a scalar has a gradient; of a vector, say how much each element weighs.
v = torch.arange(4.0, requires_grad=True)
try:
    (v**2).backward()
except RuntimeError as error:
    print("error  =", error)
(v**2).backward(torch.tensor([1.0, 0.5, 0.25, 0.0]))
print("vector =", v.grad)

# 6. grad() returns the gradients and leaves .grad alone.
a, b = (torch.tensor(n, requires_grad=True) for n in (2.0, 5.0))
print("pair   =", torch.autograd.grad(a**b, (a, b)))

# 7. Broadcasting is undone: the gradient has the shape of what it belongs to.
column = torch.ones(3, 1, requires_grad=True)
(column * torch.arange(4.0)).sum().backward()
print("column =", column.grad.flatten())

# 8. Writing in place is part of the history, through views too.
base = torch.ones(2, 3, requires_grad=True)
copy = base * 2
copy[0] *= 5
(copy**2).sum().backward()
print("views  =", base.grad)

# 9. Nothing is remembered in no_grad(), nor past detach().
with torch.no_grad():
    print("frozen =", (x * 2).requires_grad, x.detach().requires_grad)

# 10. Put together: descend from (-1, 1) into the valley of a function.
point = torch.tensor([-1.0, 1.0], requires_grad=True)
for _ in range(200):
    loss = (point[0] - 1) ** 2 + 4 * (point[1] - point[0] ** 2) ** 2
    (slope,) = torch.autograd.grad(loss, point)
    point.data -= 0.03 * slope
print("valley =", point, f"loss {loss.item():.5f}")
