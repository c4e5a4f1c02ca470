"""Views share storage; in-place changes are seen both ways, by gradients too."""

import torch

x = torch.zeros(3, 4)
row = x[1]
row += 1
x[:, 0] = torch.tensor([7.0, 8.0, 9.0])
x.t()[3].mul_(5).add_(0.5)
print(x)
print(row, x.view(2, 6)[0], x.stride(), x.t().stride(), x.t().is_contiguous())
print(row.data_ptr() == x.data_ptr() + 16, x._version)
x[x > 5] = -1
print(x.sum(), row)
flat = x.view(-1)
flat[::5] = torch.arange(3.0)
print(x, torch.add(x, 1, out=torch.empty(0)).shape)

w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
try:
    w += 1
except RuntimeError as error:
    print(f"RuntimeError: {error}")
try:
    w[0] = 5
except RuntimeError as error:
    print(f"RuntimeError: {error}")
with torch.no_grad():
    w -= 0.5
print(w)

y = w * 1
try:
    y[1:] *= y[:2].detach()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
y[1:] *= y[:2].detach().clone()
y[0] = w[2] * 10
print(y)
y.sum().backward()
print(w.grad)

y = w.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")

try:
    torch.zeros(2, 3).view(4)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
try:
    torch.zeros(2, 3) @ torch.zeros(2, 3)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
try:
    torch.zeros(2, 3) + torch.zeros(2)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
