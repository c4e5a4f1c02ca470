"""Three processes, and groups of some of them."""

import torch
import torch.distributed as dist
from told import leave, told

dist.init_process_group("gloo")
rank = dist.get_rank()
outer, single = dist.new_group([0, 2]), dist.new_group([1])
print(outer if rank == 1 else (outer.rank(), outer.size(), outer.group_name))
mine = outer if rank != 1 else single
print(mine.name(), mine.group_desc, dist.get_pg_count())
for query in (
    dist.get_rank,
    dist.get_world_size,
    dist.get_process_group_ranks,
    dist.get_backend,
):
    told(query, outer)
x = torch.ones(2) * (rank + 1)
for call, *arguments in (
    (dist.all_reduce, x),
    (dist.broadcast, x, 2),
    (dist.barrier,),
    (dist.get_group_rank, outer, 2),
    (dist.get_global_rank, outer, 1),
    (dist.get_global_rank, dist.group.WORLD, 1),
):
    queried = call in (dist.get_group_rank, dist.get_global_rank)
    told(call, *arguments, **({} if queried else {"group": outer}))
if rank != 1:
    dist.broadcast(x, group_src=1, group=outer)
    told(dist.get_group_rank, outer, 1)
    told(dist.get_global_rank, outer, 2)
print(x)
if rank == 1:
    for call, *arguments in (
        (dist.reduce, x, 0),
        (dist.all_gather, [x, x], x),
        (dist.recv, x, 0),
        (dist.isend, x, 0),
        (dist.all_gather_object, [1, 2], 3),
    ):
        told(call, *arguments, group=outer)
if rank == 0:
    dist.send(x, dst=2, group=outer)
if rank == 2:
    y = torch.zeros(2)
    print(dist.recv(y, group=outer), y)

world = [None] * 3
dist.all_gather_object(world, ("a", rank, torch.ones(2) * rank))
print(world)
pair = [None] * 2
told(dist.all_gather_object, pair, {"rank": rank}, group=outer)
print(pair)
gathered = [None] * 3 if rank == 1 else None
dist.gather_object(rank, gathered, dst=1)
print(gathered)
told_all = [rank, "x" * rank, {rank}]
dist.broadcast_object_list(told_all, src=2)
print(told_all)
output = [None]
dist.scatter_object_list(output, [{i} for i in range(3)] if rank == 0 else None, src=0)
print(output)

own, made = dist.new_subgroups_by_enumeration([[0, 2], [1]])
print(len(made), dist.get_process_group_ranks(own))
own, made = dist.new_subgroups(1)
print(len(made), dist.get_process_group_ranks(own))
told(dist.new_subgroups, 2)
for sort_ranks in (True, False):
    found = dist.new_group([2, 1], sort_ranks=sort_ranks)
    print(rank and (found.rank(), dist.get_process_group_ranks(found)))
if rank:
    local = dist.new_group([1, 2], use_local_synchronization=True, group_desc="few")
    y = torch.ones(1)
    dist.all_reduce(y, group=local)
    print(local.group_desc, y)
else:
    print(dist.new_group([1, 2], use_local_synchronization=True))
dist.barrier()
if rank != 1:
    dist.destroy_process_group(outer)
    told(dist.all_reduce, x, group=outer)
print(dist.get_pg_count())
dist.destroy_process_group()
leave()
