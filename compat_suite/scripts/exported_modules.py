# compat: rtol=1e-4 atol=1e-6 seconds=2 (the order of sums in float32)
"""What is exported after a training: scripted, traced, saved and loaded again."""

import io
import os
import tempfile
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)


class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Cell(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate = gate
        self.linear = nn.Linear(4, 4)
        self.scale = 3
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, h):
        new = torch.tanh(self.gate(self.linear(x)) + h)
        return new, new

    @torch.jit.export
    def scaled(self, x):
        return x * self.scale


@torch.jit.script
def weighted(x, weight: float):
    if x.sum() > 0:
        return x * weight
    return x


class Unrolled(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, xs):
        h = torch.zeros(3, 4)
        y = torch.zeros(3, 4)
        for i in range(xs.size(0)):
            y, h = self.cell(xs[i], h)
        return y, weighted(h, 0.5)


x, h, xs = torch.rand(3, 4), torch.rand(3, 4), torch.rand(5, 3, 4)
cell = Cell(Gate())
optimizer = torch.optim.SGD(cell.parameters(), lr=0.5)
for _ in range(3):
    optimizer.zero_grad()
    loss = cell(x, h)[0].pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss)

scripted, traced = torch.jit.script(cell), torch.jit.trace(cell, (x, h))
print(scripted)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "cell.pt")
    for made in (scripted, traced):
        made.save(path)
        loaded = torch.jit.load(path, map_location="cpu")
        print(loaded, loaded.original_name, isinstance(loaded, Cell))
        print(loaded(x, h)[0], loaded.linear.weight is cell.linear.weight)
    torch.jit.save(torch.jit.script(Unrolled(scripted)), path)
    unrolled = torch.jit.load(path)
    print(unrolled.eval()(xs)[1].detach())
    with torch.no_grad():
        unrolled.cell.linear.bias.fill_(7.0)
    print(unrolled(xs)[1].mean(), bool(cell.linear.bias.max() < 7))
    torch.save(cell.state_dict(), path)
    try:
        torch.jit.load(path)
    except RuntimeError as error:
        print(str(error)[:80])

buffer, notes = io.BytesIO(), {"notes.txt": "trained for three steps"}
torch.jit.save(scripted, buffer, _extra_files=notes)
buffer.seek(0)
notes = {"notes.txt": ""}
loaded = torch.jit.load(buffer, _extra_files=notes)
print(notes, loaded.scaled(torch.ones(2)), loaded.scale, sorted(loaded.state_dict()))
loss = loaded(x, h)[0].sum()
loss.backward()
print(loss, loaded.linear.bias.grad)
function = torch.jit.load(io.BytesIO(weighted.save_to_buffer()))
print(function(torch.ones(2), 2.0))
