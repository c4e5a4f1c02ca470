"""Two processes, and the gradients of what they exchange."""

import importlib
import warnings

import torch
import torch.distributed as dist
from told import leave

warnings.simplefilter("ignore")
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.group.WORLD
together = importlib.import_module("torch.distributed.nn.functional")
functions = importlib.import_module("torch.distributed._functional_collectives")


def shown(name, found, x):
    parts = found if isinstance(found, tuple) else (found,)
    # Each process weighs what it has in its own way.
    total = sum((y * (i + 1) * (rank + 2)).pow(2).sum() for i, y in enumerate(parts))
    (grad,) = torch.autograd.grad(total, x)
    print(name, [part.detach().clone() for part in parts], grad)


x = (torch.arange(4.0) + rank).requires_grad_()
shown("all_reduce", together.all_reduce(x, group=world), x)
shown("all_gather", together.all_gather(x, group=world), x)
shown("broadcast", together.broadcast(x, 1, group=world), x)
shown("scatter", together.scatter([x, x * 2], 1, group=world), x)
new = [torch.zeros(2), torch.zeros(2)]
shown("all_to_all", together.all_to_all(new, [x[:2], x[2:]], group=world), x)
new = torch.zeros(4)
shown("all_to_all_single", together.all_to_all_single(new, x, group=world), x)
new = torch.zeros(2)
shown("reduce_scatter", together.reduce_scatter(new, [x[:2], x[2:]], group=world), x)
found = together.reduce(x, 1, group=world)
(grad,) = torch.autograd.grad((found * (rank + 1)).sum(), x)
print("reduce", found.detach() if rank == 1 else None, grad)
shown("gather", together.gather(x, 0, group=world), x)

x = (torch.arange(4.0) + rank).requires_grad_()
shown("all_reduce", functions.all_reduce(x, "sum", world), x)
shown("all_gather", functions.all_gather_single(x, 0, world), x)
shown("reduce_scatter", functions.reduce_scatter_single(x, "sum", 0, world), x)
shown("all_to_all", functions.all_to_all_single_autograd(x, [2, 2], [2, 2], world), x)
rows = (torch.arange(8.0).view(2, 4) + rank).requires_grad_()
shown("columns", functions.all_gather_single(rows, 1, world), rows)
shown("columns", functions.reduce_scatter_single(rows, "sum", 1, world), rows)
print(functions.all_reduce(x.detach(), "max", world) + 0)
print(functions.broadcast(x.detach(), 1, world) + 0)
dist.destroy_process_group()
leave()
