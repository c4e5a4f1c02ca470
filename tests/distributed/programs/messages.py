"""Two processes send one another tensors and objects."""

import torch
import torch.distributed as dist
from told import leave, told

dist.init_process_group("gloo")
rank = dist.get_rank()
other = 1 - rank
x, y = torch.arange(3.0) + rank, torch.zeros(3)
if rank == 0:
    dist.send(x * 5, 1, tag=3)
    told(dist.send, x * 6, 1)
    print(dist.isend(x, 1).wait())
    dist.send(torch.tensor([1, 2], dtype=torch.int16), dst=1)
    told(dist.send, torch.ones(2, 3).t(), 1)
    dist.send(torch.ones(3, 3) * 7, 1)
else:
    told(dist.recv, y, 0, tag=3)
    print(y, dist.recv(y), y)
    work = dist.irecv(y, src=0)
    print(work.wait(), y, work.is_completed(), work.source_rank())
    told(work.get_future)
    told(work.result)
    small = torch.zeros(2, dtype=torch.int16)
    dist.recv(small, src=0)
    view = torch.zeros(4, 3)
    told(dist.irecv, view.t(), 0)
    dist.recv(view[1:], src=0)
    print(small, view.sum(), view[0])
ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
print(ops[0], ops[1])
for work in dist.batch_isend_irecv(ops):
    work.wait()
print(y)
requests = [dist.isend(x * 2, other), dist.irecv(y, other)]
print([request.wait() for request in requests], y)

for call in (
    lambda: dist.send(x, rank),
    lambda: dist.send(x),
    lambda: dist.send(x, 0, group_dst=1),
    lambda: dist.recv(3, 0),
    lambda: dist.recv(x, 0, group_src=1),
    lambda: dist.P2POp(dist.send, x, 0),
    lambda: dist.P2POp(dist.isend, x),
    lambda: dist.batch_isend_irecv([3]),
    lambda: dist.send_object_list([1], dst=rank),
    lambda: dist.send_object_list([1]),
):
    told(call)

objects = [None, None]
if rank == 0:
    dist.send_object_list([{"a": torch.ones(2)}, "b"], dst=1)
    told(dist.recv_object_list, objects)
    told(dist.recv_object_list, objects, group_src=1)
else:
    told(dist.recv_object_list, objects, src=0)
    dist.send_object_list([3, (4, None)], dst=0)
print(objects)
dist.barrier()
dist.destroy_process_group()
print(dist.is_initialized())
leave()
