"""Three processes, in which every collective operation is called."""

import warnings

import torch
import torch.distributed as dist
from told import leave, told

warnings.simplefilter("ignore")
dist.init_process_group("cpu:gloo")
rank, count = dist.get_rank(), dist.get_world_size()
ops = dist.ReduceOp
print(dist.get_backend(), dist.get_backend_config(), dist.group.WORLD.name())

for name in "float32 float16 bfloat16 int8 uint8 bool int32 int64 complex64".split():
    kind = getattr(torch, name)
    for op in (ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, ops.BAND, ops.BXOR, ops.AVG):
        x = torch.tensor([rank + 1, 2 * rank, 1, 5]).to(kind)
        if op == ops.AVG and not (kind.is_floating_point or kind.is_complex):
            told(dist.all_reduce, x, op)
            continue
        told(dist.all_reduce, x, op)
        print(op, x)
for kind in (torch.int16, torch.float8_e4m3fn):
    told(dist.all_reduce, torch.ones(2).to(kind))
    told(dist.broadcast, torch.ones(2).to(kind), 0)

x = torch.arange(30000.0) * (rank + 1)  # too large to be sent to everybody whole
dist.all_reduce(x)
print(x.sum(), x[12345])
x = torch.full((2, 2), float(rank))
print(dist.broadcast(x, src=2), x)
x = torch.tensor(float(rank))
dist.broadcast(x, group_src=1)
print(x)
x = torch.ones(3) * (rank + 1)
dist.reduce(x, dst=1)
print(x if rank == 1 else None)
dist.reduce(x.long(), 0, ops.BOR)

x = torch.tensor([rank, 10 * rank])
lists = [torch.zeros(2, dtype=torch.int64) for _ in range(count)]
print(dist.all_gather(lists, x), lists)
flat, rows = torch.zeros(6, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
told(dist.all_gather_single, rows, x[0])
dist.all_gather_single(flat, x)
dist.all_gather_into_tensor(rows, x[:1])
print(flat, rows)
dist.gather(x, lists if rank == 0 else None)
print(lists if rank == 0 else None)
dist.gather(x + 1, lists if rank == 2 else None, dst=2)
print(lists if rank == 2 else None)
x = torch.zeros(2)
pieces = [torch.ones(2) * i for i in range(count)]
dist.scatter(x, pieces if rank == 1 else None, src=1)
print(x)
dist.reduce_scatter(x, [piece + rank for piece in pieces])
print(x)
dist.reduce_scatter_single(x, torch.arange(6.0) * (rank + 1))
print(x)
dist.reduce_scatter_tensor(x, torch.arange(6.0) * (rank + 1), ops.AVG)
print(x)
lists = [torch.zeros(2) for _ in range(count)]
dist.all_to_all(lists, [torch.ones(2) * (10 * rank + i) for i in range(count)])
print(lists)
x = torch.zeros(3, 2)
dist.all_to_all_single(x, torch.arange(6.0).view(3, 2) + 10 * rank)
print(x)
sizes = [[1, 2, 3], [2, 0, 1], [1, 1, 1]]  # from row to column
incoming = [row[rank] for row in sizes]
x = torch.zeros(sum(incoming))
given = torch.arange(float(sum(sizes[rank]))) + 100 * rank
dist.all_to_all_single(x, given, incoming, sizes[rank])
print(x)
pair = [torch.ones(2) * rank, torch.ones(3) * rank]
dist.all_reduce_coalesced(pair)
print(pair)
outputs = [[torch.zeros(2), torch.zeros(3)] for _ in range(count)]
dist.all_gather_coalesced(outputs, pair)
print(outputs[0], outputs[2])

x = torch.ones(4) * rank
first, second = dist.all_reduce(x, async_op=True), torch.ones(2)
work = dist.broadcast(second, 0, async_op=True)
print(first.wait(), x, first.is_completed(), first.is_success(), first.result())
print(first.get_future().value(), work.get_future().wait(), work.exception())
then = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] / 2)
print(then.wait(), dist.barrier(async_op=True).wait())
futures = [dist.all_reduce(torch.ones(1), async_op=True).get_future() for _ in "ab"]
print(torch.futures.wait_all(futures))
told(dist.reduce_scatter_single(second, x.new_ones(6), async_op=True).get_future)

base = torch.zeros(4, 4)
dist.all_reduce(base[1].add_(rank))
dist.broadcast(base[:, 2], 1)
print(base)
leaf = torch.nn.Parameter(torch.ones(2) * rank)
dist.all_reduce(leaf)
print(leaf, leaf._version, leaf.is_leaf)
dist.all_reduce(torch.ones(0))
told(dist.monitored_barrier)
told(dist.monitored_barrier, dist.new_group(backend="gloo"))
dist.destroy_process_group()
leave()
