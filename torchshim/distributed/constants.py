"""How long members wait for each other: `torch.distributed.constants`."""

from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = timedelta(minutes=30)
# Of a backend that is not there.
default_pg_nccl_timeout = None
