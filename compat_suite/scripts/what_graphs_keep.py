"""What a graph keeps for its backward: looked at, packed, put on disk, counted."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

torch.manual_seed(0)

x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
y = x * x
z = y.sigmoid()
print(y.grad_fn._saved_self is x, y.grad_fn._saved_other is x)
print(z.grad_fn._saved_result is z, z.grad_fn._saved_result.equal(z))
print(z.grad_fn._saved_result, z.grad_fn._saved_result.grad_fn is z.grad_fn)
print(y.tolist())
w = y * z
print(w.grad_fn._saved_self is y, w.grad_fn._saved_other is z)


class OnDisk:
    """Keeps large tensors in files, and half of the digits of the others."""

    def __init__(self, folder, limit):
        self.folder, self.limit, self.files, self.small = Path(folder), limit, 0, 0

    def pack(self, tensor):
        if tensor.numel() < self.limit:
            self.small += 1
            return tensor.bfloat16()
        path = self.folder / f"{self.files}.pt"
        self.files += 1
        torch.save(tensor.detach(), path)
        return path

    @staticmethod
    def unpack(kept):
        return torch.load(kept) if isinstance(kept, Path) else kept.float()


model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid())
inputs = torch.randn(8, 6)
model(inputs).mean().backward()
plain = [p.grad.clone() for p in model.parameters()]
with tempfile.TemporaryDirectory() as folder:
    disk = OnDisk(folder, limit=40)
    with saved_tensors_hooks(disk.pack, disk.unpack):
        out = model(inputs)
    print(disk.files, disk.small, len(list(Path(folder).iterdir())))
    model.zero_grad()
    out.mean().backward()
for p, grad in zip(model.parameters(), plain, strict=True):
    print(tuple(p.shape), torch.allclose(p.grad, grad, rtol=0.05, atol=1e-3))

events = []
with saved_tensors_hooks(
    lambda t: events.append(("pack", tuple(t.shape))) or t,
    lambda t: events.append(("unpack", tuple(t.shape))) or t,
):
    a = torch.ones(2, 3, requires_grad=True)
    b = (a * 3).exp() * a
b.sum().backward()
print(events, a.grad[0, 0].item() > 80)
with save_on_cpu():
    c = (x.cos() * x).sum()
x.grad = None
c.backward()
print(x.grad)
with disable_saved_tensors_hooks("hooks are off here"):
    try:
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
    except RuntimeError as error:
        print(error)
with allow_mutation_on_saved_tensors():
    d = x.detach().clone().requires_grad_()
    e = d.clone()
    f = (e**2).sum()
    e.zero_()
    f.backward()
print(d.grad)
try:
    y = x.exp()
    y.mul_(2)
    y.sum().backward()
except RuntimeError as error:
    print(str(error).partition(";")[0])
