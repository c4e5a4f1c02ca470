"""Two processes whose calls are wrong."""

import torch
import torch.distributed as dist
from told import leave, told

dist.init_process_group("gloo")
rank, count = dist.get_rank(), dist.get_world_size()
x, y = torch.ones(3), torch.ones(2)
other = 1 - rank
for call in (
    lambda: dist.broadcast(x, 5),
    lambda: dist.broadcast(x),
    lambda: dist.broadcast(x, -1),
    lambda: dist.broadcast(x, 0, group_src=0),
    lambda: dist.reduce(x, 7),
    lambda: dist.reduce(x),
    lambda: dist.gather(x, None if rank == 0 else [x], 0),
    lambda: dist.gather(x, [x], rank),
    lambda: dist.gather(x, [y, y], rank),
    lambda: dist.scatter(x, None, rank),
    lambda: dist.scatter(x, [x, x], other),
    lambda: dist.scatter(x, [x], rank),
    lambda: dist.scatter(x, [y, y], rank),
    lambda: dist.all_gather([x], x),
    lambda: dist.all_gather([y, y], x),
    lambda: dist.all_gather([x.double(), x.double()], x),
    lambda: dist.all_gather([], x),
    lambda: dist.all_gather(x, x),
    lambda: dist.all_gather([1], x),
    lambda: dist.all_gather_single(torch.ones(5), x),
    lambda: dist.all_gather_single(torch.ones(2, 3), x),
    lambda: dist.reduce_scatter(y, [y]),
    lambda: dist.reduce_scatter(y, [y, y], dist.ReduceOp.BAND),
    lambda: dist.reduce_scatter(y, y),
    lambda: dist.all_to_all([y], [y]),
    lambda: dist.all_to_all_single(y.double(), y),
    lambda: dist.all_reduce([x]),
    lambda: dist.all_reduce(x, dist.ReduceOp.BOR),
    lambda: dist.all_reduce(torch.ones(1) * 1j, dist.ReduceOp.MAX),
    lambda: dist.scatter_object_list([], [1, 2], 0),
    lambda: dist.gather_object(1, None if rank == 0 else [None] * 2, dst=0),
    lambda: dist.new_group([0, 7]),
    lambda: dist.new_group([0, 0]),
    lambda: dist.new_group([0, 1, 2]),
    lambda: dist.new_subgroups(3),
    lambda: dist.init_process_group("gloo"),
):
    told(call)
for op in (dist.ReduceOp.PREMUL_SUM, "sum", 0):
    try:
        dist.all_reduce(x, op)
    except TypeError as error:
        print(str(error).split(".")[0][:35])
dist.barrier()
told(dist.all_reduce, x)
print(x)
dist.destroy_process_group()
told(dist.all_reduce, x)
told(dist.get_rank)
told(dist.destroy_process_group)
leave()
