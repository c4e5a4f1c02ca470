"""Collective communication of processes: `torch.distributed`.

Processes meet through a store (`rendezvous`), then have connections with one another
(`_transport.py`). What they send is read from their tensors, exchanged by NumPy, and
written to tensors in place. The layers, each of which uses those before it:

    _words _stores _tcp_store _file_store      values by keys that processes share
    rendezvous                                 how processes find a store
    _transport                                 bytes from one process to another
    _reductions _channel                       what a group does with arrays
    _group                                     groups, and who is in them
    _checks _work                              tensors as arrays, handles
    _collectives _point_to_point _objects      what programs call

https://docs.pytorch.org/docs/2.13/distributed.html

>>> import torchshim as torch
>>> import torchshim.distributed as dist
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> x = torch.ones(2)
>>> dist.all_reduce(x), x, dist.get_world_size()
(None, tensor([1., 1.]), 1)
>>> dist.destroy_process_group()
"""

from importlib import import_module
from typing import Any

from torchshim.distributed._buckets import (
    GradBucket,
)
from torchshim.distributed._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from torchshim.distributed._debug import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from torchshim.distributed._dist_errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from torchshim.distributed._file_store import (
    FileStore,
)
from torchshim.distributed._group import (
    Backend,
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from torchshim.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from torchshim.distributed._point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from torchshim.distributed._reductions import (
    ReduceOp,
    supports_complex,
)
from torchshim.distributed._stores import (
    HashStore,
    PrefixStore,
    Store,
)
from torchshim.distributed._tcp_store import (
    TCPStore,
)
from torchshim.distributed._work import (
    Work,
)
from torchshim.distributed._work import Work as _Work  # noqa: F401
from torchshim.distributed.constants import (
    default_pg_timeout,
)
from torchshim.distributed.device_mesh import (
    DeviceMesh,
    init_device_mesh,
)
from torchshim.distributed.rendezvous import (
    register_rendezvous_handler,
    rendezvous,
)

__all__ = [
    "Backend",
    "DebugLevel",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "supports_complex",
]

# Submodules that are imported when they are first used.
_LAZY = ("algorithms", "distributed_c10d", "rpc", "utils")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
