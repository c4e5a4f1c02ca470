"""Two processes, of which the second does not do what the first one waits for."""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def told(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        print(call.__name__, type(error).__name__, str(error).split(" [")[0])


ending = sys.argv[1]
dist.init_process_group("gloo")
impatient = dist.new_group(timeout=timedelta(milliseconds=300))
other, third = dist.new_group(), dist.new_group()
x = torch.ones(2)
if dist.get_rank() == 0:
    told(dist.all_reduce, x, group=impatient)
    dist.barrier()
    told(dist.all_reduce, x, group=other)
    told(dist.all_reduce, x, group=third)
    told(dist.all_reduce, x)
    told(dist.recv, x, 1)
    try:
        dist.send(torch.ones(1000000), 1)
    except RuntimeError as error:
        print("Connection" in str(error))
else:
    print("going", flush=True)
    time.sleep(0.5)
    dist.barrier()
    dist.broadcast(x, 1, group=other)
    try:
        dist.all_reduce(torch.ones(1), group=third)
    except RuntimeError:
        pass
    if ending == "left":
        dist.destroy_process_group()
        sys.exit()
    os._exit(0)
