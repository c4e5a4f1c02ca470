"""Modules: their repr, parameters, state and errors."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.5)
        )
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        x = self.layers(F.relu(self.norm(self.conv(x))))
        return self.heads["a"](x), self.heads["b"](x)


torch.manual_seed(0)
net = Net()
print(net)
for name, parameter in net.named_parameters():
    print(name, tuple(parameter.shape), parameter.requires_grad)
print([name for name, _ in net.named_buffers()])
print(list(net.state_dict()))
print(sum(p.numel() for p in net.parameters()))
print([type(m).__name__ for m in net.modules()])
first, second = net(torch.zeros(2, 1, 4, 4))
print(first.shape, second.shape, net.training, net.eval().training)
print(net.load_state_dict(net.state_dict()))
state = net.state_dict()
del state["norm.bias"]
state["extra"] = torch.zeros(1)
try:
    net.load_state_dict(state)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
print(net.load_state_dict(state, strict=False))
try:
    net.nothing  # noqa: B018
except AttributeError as error:
    print(f"AttributeError: {error}")
try:
    nn.Linear(3, 4)(torch.zeros(2, 5))
except RuntimeError as error:
    print(f"RuntimeError: {error}")
print(nn.Linear(2, 2).weight, nn.Parameter(torch.ones(2)))
