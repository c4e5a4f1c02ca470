"""Processes that `torchrun` starts."""

import os
import sys

import torch
import torch.distributed as dist

folder = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(1) * rank
dist.all_reduce(x)
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK ROLE_NAME"
more = "TORCHELASTIC_RESTART_COUNT TORCHELASTIC_USE_AGENT_STORE MASTER_ADDR"
with open(f"{folder}/{rank}.txt", "w") as told:
    print([os.environ[name] for name in f"{names} {more}".split()], x, file=told)
    print(dist.get_node_local_rank(), dist.is_torchelastic_launched(), file=told)
dist.barrier()
dist.destroy_process_group()
if rank == 1:
    sys.exit(3)
