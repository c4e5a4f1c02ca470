"""Two processes that make a default group again and again, at one place.

The second one is there before the first one has left the group before. PyTorch's fail
then, or wait for ever.
"""

import time

import torch
import torch.distributed as dist

for turn in range(3):
    dist.init_process_group("gloo")
    x = torch.ones(1)
    dist.all_reduce(x)
    print(turn, x.item())
    if dist.get_rank() == 0:
        time.sleep(0.2)
    dist.destroy_process_group()
