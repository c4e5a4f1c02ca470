"""Process groups of one member, and how they come to be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar

from torchshim import cuda
from torchshim._errors import Unsupported

_NO_GROUP = (
    "Default process group has not been initialized, please make sure to call "
    "init_process_group."
)
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RedOpType(Enum):
    """The operations by which the tensors of the members become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        return self.value


class _ReduceOpMeta(type):
    """Operations are instances of `ReduceOp`, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RedOpType) or super().__instancecheck__(instance)


class ReduceOp(metaclass=_ReduceOpMeta):
    """How the tensors of the members become one."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op: RedOpType) -> None:
        if type(op) is not RedOpType:
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following "
                "argument types are supported:\n    1. torch._C._distributed_c10d."
                "ReduceOp(arg0: c10d::ReduceOp::RedOpType)\n\nInvoked with: "
                f"{op!r}"
            )
        self.op = op

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return self.op.value


class Backend(str):
    """The name of what carries messages; nothing has to be carried here."""

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
    """Processes that communicate: this one."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def rank(self) -> int:
        """The number of this process among the members."""
        return 0

    def size(self) -> int:
        """The number of members."""
        return 1

    def name(self) -> str:
        """The backend's name."""
        return self._backend


class group:
    """`group.WORLD`: the default group."""

    WORLD: ProcessGroup | None = None


GroupMember = group


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
    """The group that an argument names: the default one for None."""
    found = group.WORLD if member_of is None else member_of
    if found is None:
        raise ValueError(_NO_GROUP)
    return found


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default group, of this process alone.

    A group of more processes raises NotImplementedError. Nobody has to be met, so that
    `timeout`, `group_name` and the place to meet at have no effect.
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
    else:
        rank, world_size = _rendezvous(init_method or "env://", rank, world_size)
    if world_size != 1:
        raise Unsupported(
            f"torch.distributed: a group of {world_size} processes is not supported, "
            "only one of one process"
        )
    if rank != 0:
        raise ValueError(f"rank {rank} is not in a group of one process")
    names = [part.rpartition(":")[2] for part in (backend or "").lower().split(",")]
    known = {Backend.NCCL: is_nccl_available()}
    for name in (Backend.NCCL, Backend.MPI, Backend.UCC, Backend.XCCL):
        if name in names and not known.get(name, False):
            raise RuntimeError(
                f"Distributed package doesn't have {name.upper()} built in"
            )
    unknown = [n for n in names if n not in ("", Backend.GLOO, Backend.NCCL)]
    if unknown:
        raise ValueError(f"Invalid backend: '{unknown[0]}'")
    group.WORLD = ProcessGroup((backend or Backend.UNDEFINED).lower())


def _rendezvous(method: str, rank: int, world_size: int) -> tuple[int, int]:
    """What the place to meet at says about rank and number of processes."""
    scheme = method.partition("://")[0]
    if scheme == "env":
        missing = [n for n in _VARIABLES if n not in os.environ]
        given = {"RANK": rank, "WORLD_SIZE": world_size}
        missing = [n for n in missing if given.get(n, -1) == -1]
        if missing:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: "
                f"environment variable {missing[0]} expected, but not set"
            )
        rank = int(os.environ["RANK"]) if rank == -1 else rank
        return rank, int(os.environ["WORLD_SIZE"]) if world_size == -1 else world_size
    if scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    for name, value in (("rank", rank), ("world size", world_size)):
        if value == -1:
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: "
                f"{name} parameter missing"
            )
    return rank, world_size


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Gives a group up: the default one for None."""
    default = GroupMember.WORLD
    if group is None and default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is default:
        GroupMember.WORLD = None


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup:
    """A further group, of this process."""
    default = chosen()
    if ranks is not None:
        _check_members(list(ranks), default.size())
    return ProcessGroup((backend or default.name()).lower())


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
    ranks = get_process_group_ranks(group)
    return new_subgroups_by_enumeration(
        [ranks], timeout, backend, pg_options, group_desc
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
    made: list[ProcessGroup] = []
    for ranks in ranks_per_subgroup_list:
        new = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        if made:  # each has rank 0, as there is no other
            first = ranks_per_subgroup_list[0]
            raise ValueError(
                f"Rank 0 has appeared in both subgroup {first} and {ranks}"
            )
        made.append(new)
    return made[0], made


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group."""
    return chosen(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in a group."""
    return chosen(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend."""
    return chosen(group).name()


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The members of a group."""
    return list(range(chosen(group).size()))


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A process's number in a group, from that among all."""
    return checked_rank("get_group_rank", global_rank, group)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """A process's number among all, from that in a group."""
    return checked_rank("get_global_rank", group_rank, group)


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


def checked_rank(function: str, rank: int, member_of: ProcessGroup | None) -> int:
    """A member's number, if there is such a member."""
    if not 0 <= rank < chosen(member_of).size():
        raise RuntimeError(
            f"ProcessGroupGloo::{function}: invalid root rank: {rank}"
        ) from None
    return rank
