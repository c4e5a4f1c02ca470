"""What the members of a group do together with objects: these travel as pickles.

As in PyTorch, who takes part in these is trusted: unpickling runs what a pickle says.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributed import _point_to_point
from torchshim.distributed._checks import left_out, root_of
from torchshim.distributed._group import ProcessGroup, chosen

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pickled(obj: Any) -> np.ndarray:
    buffer = io.BytesIO()
    pickle.Pickler(buffer).dump(obj)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _unpickled(data: np.ndarray) -> Any:
    return pickle.loads(data.tobytes())


def _tensor(data: np.ndarray) -> Tensor:
    return torchshim.tensor(data)


def _bytes(size: Any) -> Tensor:
    return torchshim.zeros(int(size), dtype=torchshim.uint8)


def _padded(data: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([data, np.zeros(size - data.size, np.uint8)])


def all_gather_object(
    object_list: list[Any], obj: Any, group: ProcessGroup | None = None
) -> None:
    """Gives the objects of all members to all."""
    if left_out(group, "all_gather_object"):
        return
    found = _gathered(obj, group, None)
    assert found is not None
    for i, data in enumerate(found):
        object_list[i] = _unpickled(data)


def _gathered(
    obj: Any, group: ProcessGroup | None, root: int | None
) -> list[np.ndarray] | None:
    """The pickles of all members' objects, for the root, or for all if that is None."""
    channel = chosen(group)._channel
    data = _pickled(obj)
    own = np.array([data.size], np.int64)
    sizes = [int(each[0]) for each in channel.all_gather(channel.ticket(), own)]
    padded, ticket = _padded(data, max(sizes)), channel.ticket()
    if root is None:
        found: list[np.ndarray] | None = channel.all_gather(ticket, padded)
    else:
        found = channel.gather(ticket, padded, root)
    if found is None:
        return None
    return [each[:size] for each, size in zip(found, sizes, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gives the objects of all members to one: member 0, if none is named."""
    if left_out(group, "gather_object"):
        return
    chosen(group)
    named = dst is not None or group_dst is not None
    root = root_of("gather", dst, group_dst, group) if named else 0
    if chosen(group).rank() != root:
        if object_gather_list:
            raise ValueError(
                "Argument ``gather_list`` must NOT be specified on non-destination "
                "ranks."
            )
    elif not object_gather_list:
        raise ValueError(
            "Argument ``gather_list`` must be specified on destination rank."
        )
    found = _gathered(obj, group, root)
    if found is not None and object_gather_list is not None:
        for i, data in enumerate(found):
            object_gather_list[i] = _unpickled(data)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives one member's objects to all: member 0's, if none is named."""
    if left_out(group, "broadcast_object_list"):
        return
    chosen(group)
    named = src is not None or group_src is not None
    root = root_of("broadcast", src, group_src, group) if named else 0
    channel = chosen(group)._channel
    own = channel.me == root
    pickles = [_pickled(each) if own else None for each in object_list]
    lengths = [0 if each is None else each.size for each in pickles]
    sizes = channel.broadcast(channel.ticket(), np.array(lengths, np.int64), root)
    joined = np.concatenate([p for p in pickles if p is not None]) if own else None
    data = np.empty(int(sizes.sum()), np.uint8) if joined is None else joined
    data = channel.broadcast(channel.ticket(), data, root)
    if not own:
        for i, piece in enumerate(np.split(data, np.cumsum(sizes)[:-1])):
            object_list[i] = _unpickled(piece)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Gives each member one of a member's objects: member 0's, if none is named."""
    if left_out(group, "scatter_object_list"):
        return
    outputs = scatter_object_output_list
    if not isinstance(outputs, list) or len(outputs) < 1:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at "
            "least 1."
        )
    chosen(group)
    named = src is not None or group_src is not None
    root = root_of("scatter", src, group_src, group) if named else 0
    channel = chosen(group)._channel
    pickles: Sequence[np.ndarray] = []
    if channel.me == root:
        if scatter_object_input_list is None:
            raise ValueError(
                "source rank must provide non-empty scatter_object_input_list"
            )
        pickles = [_pickled(each) for each in scatter_object_input_list]
        if len(pickles) != len(channel.ranks):
            raise RuntimeError(
                "ProcessGroupGloo::scatter: Incorrect input list size "
                f"{len(pickles)}. Input list size should be {len(channel.ranks)}, same "
                "as size of the process group."
            )
    # Each pickle has its length before it, as they are sent padded to the longest.
    lengths = [np.array([each.size], np.int64) for each in pickles]
    size = np.zeros(1, np.int64)
    longest = np.array([max((each.size for each in pickles), default=0)], np.int64)
    longest = channel.broadcast(channel.ticket(), longest, root)
    size = channel.scatter(channel.ticket(), lengths, size, root)
    padded = [_padded(each, int(longest[0])) for each in pickles]
    like = np.empty(int(longest[0]), np.uint8)
    data = channel.scatter(channel.ticket(), padded, like, root)
    outputs[0] = _unpickled(data[: int(size[0])])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to another member."""
    to = _point_to_point.member(dst, group_dst, group)
    _point_to_point.check_destination(to, chosen(group))
    if left_out(group, "send_object_list"):
        return
    pickles = [_pickled(each) for each in object_list]
    sizes = np.array([each.size for each in pickles], np.int64)
    for data in (sizes, np.concatenate(pickles)):
        _point_to_point.send(_tensor(data), group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects: the number, among all processes, of who sent them."""
    if left_out(group, "recv_object_list"):
        return -1
    whom = _point_to_point.member(src, group_src, group)
    sizes = torchshim.zeros(len(object_list), dtype=torchshim.int64)
    source = _point_to_point.recv(sizes, group=group, group_src=whom)
    lengths = sizes.tolist()
    data = _bytes(sum(lengths))
    _point_to_point.recv(data, group=group, group_src=whom)
    pieces = np.split(data._host(), np.cumsum(lengths)[:-1])
    for i, piece in enumerate(pieces):
        object_list[i] = _unpickled(piece)
    return source
