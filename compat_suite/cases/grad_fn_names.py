"""What the printed results say about where they come from."""

import torch

x = torch.tensor(3.0, requires_grad=True)
y = x**2 + 1
print(y)
y.backward()
print(x.grad)

x = torch.tensor(2)
w = torch.tensor(4.0, requires_grad=True)
b = torch.tensor(5.0, requires_grad=True)
y = w * x + b
print(x, w, b)
print(y)
y.backward()
print(x.grad, w.grad, b.grad)
try:
    torch.tensor(2, requires_grad=True)
except RuntimeError as error:
    print(f"RuntimeError: {error}")

x = torch.tensor(3.0, requires_grad=True)
y = torch.tensor(4.0, requires_grad=True)
z = x**y
print(z)
z.backward()
print(x.grad, y.grad)

a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
for result in (
    -a,
    a - 1,
    a / 2,
    2 / a,
    2**a,
    a.exp(),
    a.log(),
    a.sin().cos(),
    a.tanh(),
    a.sigmoid(),
    a.relu(),
    a.abs(),
    a.sqrt(),
    a.sum(),
    a.mean(dim=0),
    a.prod(),
    a.max(),
    a.max(dim=1).values,
    a @ a,
    a.mv(a[0]),
    a.t(),
    a.view(4),
    a.reshape(-1, 1),
    a[0],
    a[:, 1],
    a[[0, 0]],
    a[a > 2],
    a.unsqueeze(0),
    a.expand(2, 2, 2).squeeze(),
    torch.cat([a, a]),
    torch.stack([a, a]).sum(0),
    torch.where(a > 2, a, 0.0),
    a.clone(),
    a.softmax(-1),
    a.log_softmax(0),
    a.norm(),
    a.clamp(min=2),
    a.float(),
    a.double(),
):
    print(result)

print((x * y).grad_fn.next_functions[0][0].variable is x)
print(type(y.exp().grad_fn).__name__, (y + y).grad_fn.name(), x.grad_fn)
with torch.no_grad():
    print(x * 2)
print((x * 2).detach(), torch.zeros(2, requires_grad=True))
