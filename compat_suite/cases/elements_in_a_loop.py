"""A gradient for each of some elements, by indexing in a double loop."""

import torch

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
X.requires_grad_(True)
print(X)
for i in range(2):
    for j in range(3):
        product = X[i, j] * X[i, j]
        product.backward()
        print(i, j, product)
print(X.grad)
print(torch.equal(X.grad[:2], 2 * X.detach()[:2]))
print(X.grad[2].abs().sum().item())

rows = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
for row in rows:
    for element in row:
        (element**2 * 0.5).backward()
print(rows.grad)
print(rows[1], rows[:, ::2], rows[rows > 2.5])

weights = torch.ones(3, 3, requires_grad=True)
(weights[0] * weights[:, 1]).sum().backward()
print(weights.grad)
