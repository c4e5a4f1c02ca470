"""Two processes that share an optimizer's state, and have unequal amounts of data."""

import torch
import torch.distributed as dist
from told import leave, told
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()

torch.manual_seed(0)
model = DDP(nn.Linear(1, 1))
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.01)
with Join([model, optimizer]):
    for i in range(3 + 2 * rank):
        optimizer.zero_grad()
        model(torch.tensor([float(i + rank)])).sum().backward()
        print(i, model.module.weight.grad)
        optimizer.step()
print(list(model.parameters()))
with model.join(divide_by_initial_world_size=False):
    for i in range(2 + rank):
        model.zero_grad()
        model(torch.tensor([float(i + rank)])).sum().backward()
        print(i, model.module.weight.grad)
with model.join():
    model.zero_grad()
    model(torch.tensor([1.0 + rank])).sum().backward()
    print(model.module.weight.grad)
try:
    with model.join(throw_on_early_termination=True):
        for i in range(2 + rank):
            model.zero_grad()
            model(torch.tensor([float(i + rank)])).sum().backward()
except RuntimeError as error:
    print(error)

torch.manual_seed(0)
model = DDP(nn.Sequential(*[nn.Linear(6, 6) for _ in range(4)]))
optimizer = ZeroRedundancyOptimizer(
    model.parameters(), torch.optim.Adam, lr=0.01, weight_decay=0.1
)
print([len(group["params"]) for group in optimizer.optim.param_groups])


def step():
    optimizer.zero_grad()
    model(torch.ones(4, 6) * (rank + 1)).pow(2).sum().backward()
    optimizer.step()


for _ in range(3):
    step()
print([p.sum() for p in model.parameters()], len(optimizer.optim.state))
told(optimizer.state_dict)
optimizer.consolidate_state_dict(to=0)
state = optimizer.state_dict() if rank == 0 else None
if rank:
    told(optimizer.state_dict)
else:
    print(sorted(state["state"]), state["param_groups"])
    print([each["exp_avg"].sum() for each in state["state"].values()])
found = [state]
dist.broadcast_object_list(found, 0)
optimizer.load_state_dict(found[0])
step()
print([p.sum() for p in model.parameters()])
dist.barrier()
leave()
