"""Parameters spread over processes: not supported.

Programs name settings and classes ahead of use; what wraps a module is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchshim._core.dtypes import dtype
from torchshim._errors import unsupported
from torchshim.distributed.fsdp import api
from torchshim.distributed.fsdp.api import *  # noqa: F403

__all__ = [
    "CPUOffloadPolicy",
    "DataParallelMeshDims",
    "FSDPModule",
    "FullyShardedDataParallel",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]
__all__ += api.__all__


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computation, of what is reduced, and of results."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the memory of the host."""

    pin_memory: bool = True


_REASON = "parameters are whole in each process (DistributedDataParallel)"
DataParallelMeshDims = unsupported("distributed.fsdp.DataParallelMeshDims", _REASON)
FSDPModule = unsupported("distributed.fsdp.FSDPModule", _REASON)
FullyShardedDataParallel = unsupported(
    "distributed.fsdp.FullyShardedDataParallel", _REASON
)
UnshardHandle = unsupported("distributed.fsdp.UnshardHandle", _REASON)
fully_shard = unsupported("distributed.fsdp.fully_shard", _REASON)
register_fsdp_forward_method = unsupported(
    "distributed.fsdp.register_fsdp_forward_method", _REASON
)
share_comm_ctx = unsupported("distributed.fsdp.share_comm_ctx", _REASON)
