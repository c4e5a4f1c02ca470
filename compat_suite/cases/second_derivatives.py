"""torch.autograd.grad, create_graph, and gradients of gradients."""

import torch

x = torch.tensor(2.0, requires_grad=True)
y = x**4
for order in range(1, 5):
    (y,) = torch.autograd.grad(y, x, create_graph=True)
    print(order, y.item(), y.requires_grad)

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
unused = torch.tensor(1.0, requires_grad=True)
print(torch.autograd.grad((a * b).sum(), (a, b)))
print(torch.autograd.grad(a * b, a, grad_outputs=torch.tensor([1.0, 2.0])))
try:
    torch.autograd.grad((a * b).sum(), (a, unused))
except RuntimeError as error:
    print(f"RuntimeError: {error}")
print(torch.autograd.grad((a * b).sum(), (a, unused), allow_unused=True))
print(torch.autograd.grad((a * b).sum(), (a, unused), materialize_grads=True))
print(a.grad, b.grad)

norm = torch.autograd.grad((a**3).sum(), a, create_graph=True)[0].pow(2).sum()
norm.backward()
print(norm, a.grad)
