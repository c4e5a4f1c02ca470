"""The first steps of an autograd tutorial: one power, one product."""

from torch import tensor

A = tensor(5.0, requires_grad=True)
x = A**3
print(x)
print(A.grad)
x.backward()
print(A.grad)

A = tensor(2.0, requires_grad=True)
B = tensor(5.0)
x = A * B
print(x, x.requires_grad, B.requires_grad)
x.backward()
print(A.grad)
print(B.grad)

A = tensor(2.0, requires_grad=True)
B = tensor(5.0, requires_grad=True)
(A * B + A / B - B).backward()
print(A.grad, B.grad)

A = tensor([1.0, 2.0, 3.0], requires_grad=True)
total = (A * 4).sum()
print(total)
total.backward()
print(A.grad.data)
print(A.grad, A.grad.requires_grad, A.grad.grad_fn, A.is_leaf, total.is_leaf)

A = tensor(7.0, requires_grad=True)
x = A * 4
x.backward()
print(A.grad.data, x.data, x.item())
