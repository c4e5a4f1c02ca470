"""Two processes that train one module."""

import torch
import torch.distributed as dist
from told import leave, told
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)


def grads(module):
    return [None if p.grad is None else p.grad.sum() for p in module.parameters()]


model = DDP(
    nn.Sequential(
        nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)
    )
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
print([p.sum() for p in model.parameters()])
for step in range(4):
    optimizer.zero_grad()
    x = torch.randn(5, 3) + rank
    if step == 2:
        with model.no_sync():
            model(x).pow(2).mean().backward()
        print(model.module[0].weight.grad)
    model(x * 2).pow(2).mean().backward()
    print(model.module[0].weight.grad, model.module[1].running_mean)
    optimizer.step()
print(list(model.parameters()))
model.eval()
print(model(torch.ones(1, 3)))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(2, 2) for _ in range(3))

    def forward(self, x, both):
        return self.b(self.a(x)) if both else self.a(x)


x = torch.ones(1, 2) * (rank + 1)
model = DDP(Branches(), find_unused_parameters=True)
for none in (True, True, False):
    model.zero_grad(set_to_none=none)
    model(x, both=rank == 1).sum().backward()
    print(grads(model))
for unused in (True, False):
    model = DDP(nn.Linear(2, 2), find_unused_parameters=unused)
    for _ in range(3):
        model(x)  # what nobody differentiates
    for _ in range(2):
        model(x).sum().backward()
    print(grads(model))
model = DDP(Branches(), static_graph=True)
for _ in range(2):
    model.zero_grad()
    model(x, both=False).sum().backward()
    print(grads(model))
model = DDP(Branches())
model(x, both=False).sum().backward()
told(model, x, both=False)


def doubled(state, bucket):
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0] * state)


model = DDP(nn.Linear(2, 2))
model.register_comm_hook(2, doubled)
for _ in range(2):
    model.zero_grad()
    model(x).sum().backward()
    print(model.module.weight.grad)
dist.barrier()
dist.barrier()
leave()
