"""Process groups, and how they come to be."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from torchshim import cuda
from torchshim.distributed._channel import Channel
from torchshim.distributed._dist_errors import DistNetworkError
from torchshim.distributed._stores import PrefixStore, Store
from torchshim.distributed._tcp_store import CLOSED
from torchshim.distributed._transport import Mesh
from torchshim.distributed.constants import default_pg_timeout
from torchshim.distributed.rendezvous import host_of, meet

_NO_GROUP = (
    "Default process group has not been initialized, please make sure to call "
    "init_process_group."
)


class Backend(str):
    """The name of what carries messages: TCP and host memory, whatever it is here."""

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    XCCL = "xccl"
    UNDEFINED = "undefined"
    FAKE = "fake"
    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map: ClassVar = {
        "cpu": GLOO,
        "cuda": NCCL,
        "xpu": XCCL,
        "mps": GLOO,
    }
    backend_capability: ClassVar = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }

    def __new__(cls, name: str) -> Backend:
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Processes that communicate, this one among them."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self,
        backend: str,
        channel: Channel,
        group_name: str,
        group_desc: str,
        store: Store | None = None,
        bound_device_id: Any = None,
    ) -> None:
        self._backend, self._channel = backend, channel
        self.group_name, self.group_desc = group_name, group_desc
        self._store, self.bound_device_id = store, bound_device_id
        self._left = False

    def rank(self) -> int:
        """The number of this process among the members."""
        return self._channel.me

    def size(self) -> int:
        """The number of members."""
        return len(self._channel.ranks)

    def name(self) -> str:
        """The backend's name."""
        named = self._backend.partition(",")[0].rpartition(":")[2]
        return Backend.GLOO if named == Backend.UNDEFINED else named

    def get_group_store(self) -> Store:
        """The store that the members share."""
        assert self._store is not None
        return self._store


class GroupMember:
    """`group.WORLD`: the default group; and what stands for a group of others."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = -100


group = GroupMember


class _World:
    """What belongs to the default group: connections, and the groups made since."""

    mesh: Mesh
    store: Store
    timeout: timedelta

    def __init__(self) -> None:
        self.groups: list[ProcessGroup] = []
        # The members of groups that this process is not in.
        self.foreign: list[int] = []
        self.made = 0


_world = _World()


def is_available() -> bool:
    """True: the package is there."""
    return True


def is_initialized() -> bool:
    """Whether there is a default group."""
    return group.WORLD is not None


def is_gloo_available() -> bool:
    """True, as PyTorch's CPU builds answer."""
    return True


def is_nccl_available() -> bool:
    """Whether there is a GPU: where PyTorch would use NCCL, XLA does."""
    return cuda.is_available()


def is_mpi_available() -> bool:
    """False."""
    return False


def is_ucc_available() -> bool:
    """False."""
    return False


def is_xccl_available() -> bool:
    """False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend is there."""
    return backend.lower() == Backend.GLOO


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device: Any) -> str:
    """The backend for a device."""
    kind = str(device).partition(":")[0]
    return Backend.NCCL if kind == "cuda" else Backend.GLOO


def chosen(member_of: Any = None) -> ProcessGroup:
    """The group that an argument names: the default one for None.

    ValueError where there is none, or it was given up.
    """
    found = group.WORLD if member_of is None else member_of
    if found is None:
        raise ValueError(_NO_GROUP)
    if isinstance(found, ProcessGroup) and found._left:
        raise ValueError("Invalid process group specified or has been destroyed.")
    if not isinstance(found, ProcessGroup):
        if found == GroupMember.NON_GROUP_MEMBER:
            raise ValueError("Invalid process group specified")
        raise TypeError(f"a process group is needed, not {type(found).__name__}")
    return found


def is_elsewhere(member_of: Any) -> bool:
    """Whether a group is one that this process is not in."""
    return member_of.__class__ is int and member_of == GroupMember.NON_GROUP_MEMBER


def _checked_backend(backend: str | None) -> str:
    """A backend's name. RuntimeError or ValueError for one that is not there."""
    told = (backend or "").lower()
    names = [part.rpartition(":")[2] for part in told.split(",")]
    known = {Backend.NCCL: is_nccl_available()}
    for name in (Backend.NCCL, Backend.MPI, Backend.UCC, Backend.XCCL):
        if name in names and not known.get(name, False):
            raise RuntimeError(
                f"Distributed package doesn't have {name.upper()} built in"
            )
    unknown = [n for n in names if n not in ("", Backend.GLOO, Backend.NCCL)]
    if unknown:
        raise ValueError(f"Invalid backend: '{unknown[0]}'")
    return told or Backend.UNDEFINED


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default group, once all its processes have come.

    Messages go over TCP and host memory, whatever the backend. ValueError if there is a
    default group, or the rank or the number of processes is not told.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    told = _checked_backend(backend)
    limit = default_pg_timeout if timeout is None else timeout
    if not isinstance(limit, timedelta):
        raise TypeError(
            "Expected timeout argument to be of type datetime.timedelta, got "
            f"timeout={timeout}"
        )
    name = _next_name(group_name)
    end = time.monotonic() + limit.total_seconds()
    while True:
        met = store, rank, world_size
        try:
            if store is None:
                url = init_method or "env://"
                met = next(iter(meet(url, rank, world_size, limit)))
            mesh, prefixed = _connected(name, *met, limit)
            break
        except DistNetworkError as error:
            # It was the store of a group before, which the first process has left.
            late = time.monotonic() > end
            if str(error) != CLOSED or store is not None or late:
                raise
    _world.mesh, _world.store, _world.timeout = mesh, prefixed, limit
    world_size = mesh.size
    channel = Channel(mesh, range(world_size), name, limit.total_seconds())
    # A store may end with the process that serves it: all have to be through with it.
    channel.barrier(channel.ticket())
    made = ProcessGroup(told, channel, name, "default_pg", prefixed, device_id)
    _world.groups.append(made)
    GroupMember.WORLD = made


def _connected(
    name: str, store: Any, rank: int, world_size: int, limit: timedelta
) -> tuple[Mesh, Store]:
    """The connections of a default group, and its part of the store."""
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not in a group of {world_size} processes")
    prefixed = PrefixStore("default_pg", store)
    prefixed.set_timeout(limit)
    part = PrefixStore(name, prefixed)
    return Mesh(part, rank, world_size, host_of(store), limit), prefixed


def _next_name(name: str = "") -> str:
    _world.made += 1
    return name or str(_world.made - 1)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Gives a group up: the default one, and all others with it, for None."""
    default = GroupMember.WORLD
    if is_elsewhere(group):
        return
    if group is None and default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is default:
        for each in _world.groups:
            each._left = True
        _world.mesh.close()
        _world.__init__()
        for name in ("mesh", "store"):
            _world.__dict__.pop(name, None)
        GroupMember.WORLD = None
        return
    if group not in _world.groups:
        raise ValueError("Invalid process group specified or has been destroyed.")
    _world.groups.remove(group)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup | None:
    """A further group, of some of the processes.

    All processes make it, in the same order; with `use_local_synchronization` only its
    members do. Those that are not in it get `GroupMember.NON_GROUP_MEMBER`, or None.
    """
    default = chosen()
    count = default.size()
    if ranks is None:
        ranks = list(range(count))
    else:
        ranks = sorted(ranks) if sort_ranks else list(ranks)
        _check_members(ranks, count)
    told = default._backend if backend is None else _checked_backend(backend)
    if use_local_synchronization:
        if default.rank() not in ranks:
            return None
        digest = hashlib.sha1("_".join(map(str, ranks)).encode()).hexdigest()
        before = [g for g in _world.groups if g.group_name.startswith(digest)]
        name = f"{digest}_{len(before)}"
    else:
        name = _next_name()
    if default.rank() not in ranks:
        _world.foreign = list(ranks)
        return GroupMember.NON_GROUP_MEMBER
    limit = _world.timeout if timeout is None else timeout
    channel = Channel(_world.mesh, ranks, name, limit.total_seconds())
    store = PrefixStore(name, _world.store)
    made = ProcessGroup(told, channel, name, group_desc or "undefined", store)
    made.bound_device_id = device_id
    _world.groups.append(made)
    return made


def _check_members(ranks: list[int], count: int) -> None:
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > count:
        raise ValueError(
            "the new group's world size should be less or equal to the world size "
            "set by init_process_group"
        )
    for rank in ranks:
        if rank < 0 or rank >= count:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {count - 1} "
                f"(world_size={count})"
            )
    if not ranks:
        raise ValueError("a group without members cannot be made")


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """A group's members in groups of `group_size`: this process's group, and all."""
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available."
            "If your subgroup using a backend that does not depend on CUDA,"
            "please pass in 'group_size' correctly."
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    count = get_world_size(group)
    if group_size > count:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size "
            f"({count})"
        )
    if count % group_size != 0:
        raise ValueError(
            f"The world size ({count}) must be divisible by 'group_size={group_size}'"
        )
    ranks = get_process_group_ranks(group)
    pieces = [ranks[i : i + group_size] for i in range(0, count, group_size)]
    return new_subgroups_by_enumeration(
        pieces, timeout, backend, pg_options, group_desc
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[ProcessGroup]]:
    """Groups of the members that are listed: this process's group, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made: list[Any] = []
    own, mine = None, get_rank()
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        new = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(new)
        for rank in ranks:
            if rank in seen:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and "
                    f"{ranks}"
                )
            seen[rank] = ranks
            if rank == mine:
                own = new
    return own, made


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group; -1 of a group that it is not in."""
    return -1 if is_elsewhere(group) else chosen(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in a group; -1 of a group that this one is not in."""
    return -1 if is_elsewhere(group) else chosen(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend."""
    return chosen(group)._backend


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backend of each kind of device."""
    told = chosen(group)._backend
    if told == Backend.UNDEFINED:
        return "cpu:gloo,cuda:nccl" if is_nccl_available() else "cpu:gloo"
    if ":" in told:
        return told
    return ",".join(f"{kind}:{told}" for kind in Backend.backend_capability[told])


def get_pg_count() -> int:
    """How many groups were made, the default one among them."""
    return _world.made


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The members of a group, by their numbers among all processes."""
    if is_elsewhere(group):
        return list(_world.foreign)
    return list(chosen(group)._channel.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A process's number in a group, from that among all. ValueError if not in it."""
    if group is GroupMember.WORLD:
        return global_rank
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """A process's number among all, from that in a group. ValueError if not in it."""
    if group is GroupMember.WORLD:
        return group_rank
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device "
        "context and want the code to run locally instead."
    )
