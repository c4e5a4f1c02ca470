"""How often nodes run, and for how long."""

import time

import torch
import torch.fx
from torch import nn
from torch.fx import Interpreter


class ProfilingInterpreter(Interpreter):
    def __init__(self, mod):
        gm = torch.fx.symbolic_trace(mod)
        super().__init__(gm)
        self.total_runtime_sec = []
        self.runtimes_sec = {}

    def run(self, *args):
        t_start = time.time()
        return_val = super().run(*args)
        self.total_runtime_sec.append(time.time() - t_start)
        return return_val

    def run_node(self, n):
        t_start = time.time()
        return_val = super().run_node(n)
        self.runtimes_sec.setdefault(n, [])
        self.runtimes_sec[n].append(time.time() - t_start)
        return return_val

    def summary(self):
        node_summaries = []
        mean_total = sum(self.total_runtime_sec) / len(self.total_runtime_sec)
        for node, runtimes in self.runtimes_sec.items():
            mean = sum(runtimes) / len(runtimes)
            share = mean / mean_total * 100
            node_summaries.append([node.op, str(node), len(runtimes), 0 <= share < 100])
        return node_summaries


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.fc = nn.Linear(36, 10)

    def forward(self, x):
        x = self.layers(x)
        return self.fc(torch.flatten(x, 1)).log_softmax(-1)


net = Net().eval()
interp = ProfilingInterpreter(net)
x = torch.randn(2, 1, 8, 8)
for _ in range(3):
    out = interp.run(x)
torch.testing.assert_close(out, net(x))
for line in interp.summary():
    print(*line)
