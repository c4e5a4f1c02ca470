"""What the members of a group exchange: arrays, in collective operations.

Members begin the operations of a group in the same order, so that each has a number,
its ticket, that is the same for all. An operation that meets messages of another kind
is refused. Each is made of `swap`: arrays to some members, and arrays from some.
"""

from __future__ import annotations

import hashlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from torchshim.distributed._reductions import RedOpType, reduced
from torchshim.distributed._transport import Mesh

__all__ = ["Channel"]

# Operations by the numbers that their messages have; 0 is from one member to another.
_KINDS = (
    "send",
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "monitored_barrier",
)
# Up to so many bytes everybody sends all to all, and adds up by itself: one trip less.
_SMALL = 1 << 15
_NOTHING = np.empty(0, np.uint8)


def _memory(array: np.ndarray) -> memoryview:
    """An array's bytes, without a copy if it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class Channel:
    """The members of a group, as this process reaches them.

    Members are named by their numbers within the group. Arrays are of any shape; what
    comes is flat.
    """

    def __init__(
        self, mesh: Mesh, ranks: Sequence[int], name: str, timeout: float
    ) -> None:
        self.mesh, self.ranks, self.timeout = mesh, list(ranks), timeout
        self.me = self.ranks.index(mesh.rank)
        self.others = [i for i in range(len(self.ranks)) if i != self.me]
        digest = hashlib.sha256(name.encode()).digest()
        self._number = int.from_bytes(digest[:8])
        self._tickets = itertools.count()
        self._jobs: queue.SimpleQueue[Callable[[], Any]] | None = None

    def ticket(self) -> int:
        """The number of the next collective operation."""
        return next(self._tickets)

    def later(self, job: Callable[[], Any]) -> None:
        """Has a function called by the group's own thread, after those before it."""
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            told = (self._jobs,)
            threading.Thread(target=_work_off, args=told, daemon=True).start()
        self._jobs.put(job)

    # Messages from one member to another

    def send(self, member: int, tag: int, array: np.ndarray) -> None:
        """Sends an array; does not wait for the receiver."""
        peer = self.ranks[member]
        self.mesh.send(peer, self._number, 0, tag, [_memory(array)])

    def receive(
        self, members: Iterable[int], tag: int, timeout: float
    ) -> tuple[int, bytearray]:
        """The first message of one of some members: who sent it, and the bytes."""
        peers = [self.ranks[member] for member in members]
        address = self._number, False, tag
        peer, _, data = self.mesh.receive(peers, address, timeout)
        return self.ranks.index(peer), data

    def holds(self, members: Iterable[int], tag: int) -> bool:
        """Whether a message of one of some members is there."""
        peers = [self.ranks[member] for member in members]
        return self.mesh.holds(peers, (self._number, False, tag))

    # Collective operations

    def swap(
        self,
        name: str,
        ticket: int,
        outgoing: Mapping[int, np.ndarray],
        sources: Iterable[int],
        timeout: float | None = None,
    ) -> dict[int, bytearray]:
        """Sends arrays to members, and gives what comes of some others.

        RuntimeError where a member is in another operation, is gone, or late.
        """
        kind = _KINDS.index(name)
        for member, array in outgoing.items():
            peer = self.ranks[member]
            self.mesh.send(peer, self._number, kind, ticket, [_memory(array)])
        limit = self.timeout if timeout is None else timeout
        found = {}
        for member in sources:
            peer, address = self.ranks[member], (self._number, True, ticket)
            _, other, data = self.mesh.receive([peer], address, limit)
            if other != kind:
                raise RuntimeError(
                    f"{name}: rank {peer} is in {_KINDS[other]} meanwhile"
                )
            found[member] = data
        return found

    def _arrays(
        self, name: str, found: Mapping[int, bytearray], like: np.ndarray
    ) -> dict[int, np.ndarray]:
        for member, data in found.items():
            if len(data) != like.nbytes:
                raise RuntimeError(
                    f"{name}: rank {self.ranks[member]} sent {len(data)} bytes where "
                    f"{like.nbytes} are expected"
                )
        return {
            member: np.frombuffer(data, like.dtype) for member, data in found.items()
        }

    def all_gather(
        self, ticket: int, array: np.ndarray, name: str = "all_gather"
    ) -> list[np.ndarray]:
        """The arrays of all members, which are of one size."""
        outgoing = dict.fromkeys(self.others, array)
        found = self._arrays(
            name, self.swap(name, ticket, outgoing, self.others), array
        )
        found[self.me] = array.reshape(-1)
        return [found[i] for i in range(len(self.ranks))]

    def all_to_all(
        self,
        ticket: int,
        arrays: Sequence[np.ndarray],
        sizes: Sequence[int],
        name: str = "all_to_all",
    ) -> list[np.ndarray]:
        """One array of each member; `sizes` says how many elements each has."""
        outgoing = {i: arrays[i] for i in self.others}
        data = self.swap(name, ticket, outgoing, self.others)
        found: list[np.ndarray] = []
        for i, size in enumerate(sizes):
            if i == self.me:
                found.append(arrays[i].reshape(-1))
            else:
                like = np.empty(size, arrays[self.me].dtype)
                found.append(self._arrays(name, {i: data[i]}, like)[i])
        return found

    def reduce_scatter(
        self,
        ticket: int,
        kind: RedOpType,
        arrays: Sequence[np.ndarray],
        name: str = "reduce_scatter",
    ) -> np.ndarray:
        """What becomes of this member's array of each member's list."""
        sizes = [arrays[self.me].size] * len(self.ranks)
        return reduced(kind, self.all_to_all(ticket, arrays, sizes, name))

    def all_reduce(self, ticket: int, kind: RedOpType, array: np.ndarray) -> np.ndarray:
        """What becomes of all members' arrays: to the bit the same for all."""
        flat, count = array.reshape(-1), len(self.ranks)
        if count == 1 or flat.nbytes * (count - 1) <= _SMALL:
            return reduced(kind, self.all_gather(ticket, flat, "all_reduce"))
        pieces = np.array_split(flat, count)
        mine = self.reduce_scatter(ticket, kind, pieces, "all_reduce")
        outgoing = dict.fromkeys(self.others, mine)
        found = self.swap("all_reduce", ticket, outgoing, self.others)
        parts = [
            mine if i == self.me else np.frombuffer(found[i], flat.dtype)
            for i in range(count)
        ]
        return np.concatenate(parts)

    def reduce(
        self, ticket: int, kind: RedOpType, array: np.ndarray, root: int
    ) -> np.ndarray | None:
        """What becomes of all members' arrays, for the root; None for the others."""
        found = self.gather(ticket, array, root, "reduce")
        return None if found is None else reduced(kind, found)

    def gather(
        self, ticket: int, array: np.ndarray, root: int, name: str = "gather"
    ) -> list[np.ndarray] | None:
        """The arrays of all members, for the root; None for the others."""
        if self.me != root:
            self.swap(name, ticket, {root: array}, ())
            return None
        found = self._arrays(name, self.swap(name, ticket, {}, self.others), array)
        found[root] = array.reshape(-1)
        return [found[i] for i in range(len(self.ranks))]

    def broadcast(self, ticket: int, array: np.ndarray, root: int) -> np.ndarray:
        """The root's array."""
        if self.me == root:
            self.swap("broadcast", ticket, dict.fromkeys(self.others, array), ())
            return array.reshape(-1)
        found = self.swap("broadcast", ticket, {}, [root])
        return self._arrays("broadcast", found, array)[root]

    def scatter(
        self,
        ticket: int,
        arrays: Sequence[np.ndarray],
        like: np.ndarray,
        root: int,
    ) -> np.ndarray:
        """This member's array of the root's list, which is of the size of `like`."""
        if self.me == root:
            self.swap("scatter", ticket, {i: arrays[i] for i in self.others}, ())
            return arrays[root].reshape(-1)
        found = self.swap("scatter", ticket, {}, [root])
        return self._arrays("scatter", found, like)[root]

    def barrier(self, ticket: int, timeout: float | None = None) -> None:
        """Waits until all members are here."""
        outgoing = dict.fromkeys(self.others, _NOTHING)
        self.swap("barrier", ticket, outgoing, self.others, timeout)

    def monitored_barrier(self, ticket: int, timeout: float, wait_all: bool) -> None:
        """Waits for all members; member 0 hears of each, and answers if all came."""
        name = "monitored_barrier"
        if self.me:
            try:
                self.swap(name, ticket, {0: _NOTHING}, [0], timeout)
            except RuntimeError as error:
                rank = self.ranks[0]
                raise RuntimeError(
                    f"Rank {self.me} successfully reached monitoredBarrier, but "
                    "received errors while waiting for send/recv from rank "
                    f"{rank}. Please check rank {rank} logs for faulty rank.\n "
                    f"Original exception: \n{error}"
                ) from None
            return
        end, late = time.monotonic() + timeout, []
        for member in self.others:
            left = max(0.0, end - time.monotonic())
            try:
                self.swap(name, ticket, {}, [member], left)
            except RuntimeError as error:
                told = f"[Rank {self.ranks[0]}]: Rank {self.ranks[member]} failed to "
                told += f"pass monitoredBarrier in {round(timeout * 1000)} ms"
                if not wait_all:
                    raise RuntimeError(
                        f"{told}\n Original exception: \n{error}"
                    ) from None
                late.append(self.ranks[member])
        if late:
            ranks = ", ".join(map(str, late))
            raise RuntimeError(
                f"[Rank {self.ranks[0]}]: Ranks {ranks} failed to pass "
                f"monitoredBarrier in {round(timeout * 1000)} ms"
            )
        self.swap(name, ticket, dict.fromkeys(self.others, _NOTHING), ())


def _work_off(jobs: queue.SimpleQueue[Callable[[], Any]]) -> None:
    while True:
        jobs.get()()
