"""Tensors and the memory they share.

A tensor that shares its memory with no other carries its value itself. The first view
or `detach()` gives it a `Storage`, which holds the value from then on. Each tensor on
it knows the path of view operators from the storage's base to itself. A write replaces
the base value and makes the slots of all tensors on it stale.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.meta import Meta
from torchshim._core.op import Op

# Locks are taken in this order: accumulate_lock (gradients are added to leaves, which
# threads may share), a recorder's lock (its flush, or a look into it from another
# thread), value_lock (values change hands; nothing is run under it).
accumulate_lock = threading.RLock()
value_lock = threading.RLock()


class _Views(threading.local):
    """What the nodes of views are called that were derived again after a write.

    Such views are always made again by the operators of their path. PyTorch does so if
    asked (`replayed`); otherwise it uses `as_strided`, and so says `grad_fn` here.
    """

    replayed = False


views = _Views()


# How many writes there were that no version counts: rarely any.
hidden_writes = [0]

# A slot is (number of the recorder << SLOT_BITS) + position among its values.
SLOT_BITS = 40
# Order of recordings and of what is in them, across threads.
next_sequence = itertools.count().__next__


class TensorBase:
    """The recorder's side of a tensor. `Tensor` adds what users see.

    The value is pending where `_array` is None: `_slot` (or the storage's slot) tells
    which value of the running recording it is.
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_slot", "_tmeta")

    _slot: int  # slot in the running recording, or -1: not in it, or stale
    # The slot as the hot path sees it: classes that override functions have none.
    _key: int
    # (Not `_meta`: subclasses in libraries, such as MONAI's, have such an attribute.)
    _tmeta: Meta
    _array: Any  # jax.Array, NumPy array or None

    # Rare state lives in the instance dictionary, with these defaults.

    # The storage that holds the value; None: the tensor carries it itself.
    _storage: Storage | None = None
    # Of a view: the tensor whose memory and history it shares.
    _view_of: Any = None
    # The way from the storage's base to a view: (operator, its further arguments, which
    # of its results) for each step.
    _path: tuple[Any, ...] = ()
    # (recording, slot) where its history goes on, where it is not in the running one.
    _hist: Any = None
    # Views: the version of their storage that `_hist` belongs to, or their last write.
    _hist_version: int = -1
    # `.grad`; the hooks on its gradient (`hooks.TensorHooks`); its `grad_fn` object, or
    # a weak reference to it, once asked for.
    _grad: Any = None
    _hooks: Any = None
    _node: Any = None
    # A copy that is on its way to another device.
    _sent: Any = None
    # The writes to a tensor that carries its value itself. Of a view: the version that
    # its memory had when its node was made.
    _versions: int = 0
    # Why a view must not be written to, if so: a key of `views._VIEW_NOTES`.
    _view_note: str | None = None
    # A view that a custom function returned, which has a history of its own: the name
    # of the function and which output it was; and what it is said to be a view of.
    _made_by: Any = None
    _made_on: Any = None
    # A view that requires grad only because its base does: it has no history and
    # gets no gradient.
    _inherits: bool = False
    # A view without history whose base got one since: PyTorch takes it for a leaf
    # until its node is asked for.
    _unaware: bool = False
    # Slot of a value written without history to a tensor that has its memory to
    # itself and requires grad. It gets a new identity event when it is used next.
    _raw: int = -1
    # `.data` and what is made of it count versions by themselves, in one cell; and a
    # tensor on memory that was assigned to its `.data`, while others are there, too.
    _own_version: list[int] | CountOf | None = None
    # Forward mode: {level: tangent} of a value that is in no recording.
    _tangents: dict[int, Any] | None = None
    # The version of a view's storage that they belong to.
    _tangent_version: int = -1
    # The storage that the tensor took its value back from: it is used again.
    _former: Storage | None = None
    # The levels of function transforms within which it was made, where its slot does
    # not tell.
    _levels: tuple[Any, ...] = ()
    # Changes with each assignment to `.data` (by `REPLACED`).
    _replaced: int = 0
    # Of a leaf to whose `.data` was assigned: (number of a recording, slot) from which
    # on it has its present node.
    _node_since: tuple[int, int] | None = None
    # By how much its version was ahead of that of the memory assigned.
    _ahead: int = 0
    # Why there is no value: the error that its program met (`undo`).
    _lost: str | None = None
    # What `data_ptr()` says, once asked for.
    _address: int | None = None
    # What tells it from others, once its content was swapped with another's.
    _identity: int | None = None
    # Indices: what was computed from their values.
    _plans: dict[Any, Any] | None = None
    # Offsets or lengths of nested tensors: the size that stands for them.
    _ragged: Any = None
    # Whether it is made of other tensors, as sparse ones are: it has no slot itself.
    _composed: bool = False


TensorBase._key = TensorBase._slot


class CountOf:
    """A tensor's own version after an assignment to `.data`, where views stayed behind.

    In PyTorch the tensor still shares its counter with the views on its old memory, so
    this counts what that memory's storage counts.
    """

    __slots__ = ("_last", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = weakref.ref(storage)
        self._last = writes_of(storage)

    @property
    def storage(self) -> Storage | None:
        """The storage that counts with it, if anybody still holds that."""
        return self._storage()

    def __getitem__(self, index: int) -> int:
        storage = self._storage()
        if storage is not None:
            self._last = writes_of(storage)
        return self._last

    def __setitem__(self, index: int, version: int) -> None:
        self._last = version
        storage = self._storage()
        home = None if storage is None or storage.home is None else storage.home()
        if home is not None:
            home._versions = version
        elif storage is not None:
            storage.version = version


# The class of results; `_tensor` puts the public one here.
tensor_class: list[type[TensorBase]] = [TensorBase]
# Subclasses whose operators give plain tensors (Parameter, Buffer add themselves).
plain_classes: set[type] = set()


class Storage:
    """A mutable cell that several tensors share: one value, one version counter.

    It takes the value over from a tensor that had its memory to itself
    (`Viewing.storage_of`), and may give it back (`Entering.give_back`).
    """

    __slots__ = (
        "__weakref__",
        "aliases",
        "array",
        "hidden",
        "home",
        "meta",
        "shared",
        "slot",
        "tracked",
        "version",
    )

    def __init__(self, tensor: TensorBase) -> None:
        # Writes that the version does not count, through `.data`.
        self.hidden = 0
        self.aliases: list[weakref.ref[TensorBase]] = []
        self.take(tensor)

    def take(self, tensor: TensorBase) -> None:
        """Takes over the value that a tensor carries itself."""
        meta = tensor._tmeta
        self.meta = meta.plain
        self.slot = tensor._slot if tensor._raw < 0 else tensor._raw
        self.array = tensor._array
        # Whether the value in `slot` carries autograd history.
        self.tracked = meta.requires_grad and tensor._slot >= 0
        self.version = tensor._versions
        # Another thread may just have put a tensor on it (`Viewing.link`).
        others = [r for r in self.aliases if getattr(r(), "_storage", None) is self]
        self.aliases = [weakref.ref(tensor), *others]
        # A numpy array whose memory this storage shares, if any.
        self.shared: Any = None
        # The tensor that took the value back, and counts the writes since then.
        self.home: weakref.ref[TensorBase] | None = None

    def add(self, tensor: TensorBase) -> None:
        """Registers a tensor on this storage, forgetting those that died."""
        tensor._storage = self
        aliases = self.aliases
        if (number := len(aliases)) & 15 == 15:
            with value_lock:  # other threads may add theirs, behind
                aliases[:number] = [r for r in aliases[:number] if r() is not None]
        aliases.append(weakref.ref(tensor))

    def tensors(self) -> list[TensorBase]:
        return [t for r in self.aliases if (t := r()) is not None]

    def count_write(self, writer: TensorBase) -> bool:
        """Counts a write; False if no version tells of it: one through `.data`."""
        if writer._own_version is None:
            self.version += 1
            return True
        writer._own_version[0] += 1
        self.hidden += 1
        hidden_writes[0] += 1
        return False


def base_of(view: TensorBase) -> Any:
    """The tensor that a view is said to be one of."""
    base = view._view_of
    made_on = view._made_on if base is None else base._made_on
    return base if made_on is None else made_on


def writes_of(holder: Storage | TensorBase) -> int:
    """How often the memory that a tensor or a storage stands for was written to."""
    if isinstance(holder, Storage):
        home = None if holder.home is None else holder.home()
        return holder.version if home is None else home._versions
    if holder._replaced and holder._own_version is not None:
        return holder._own_version[0]
    storage = holder._storage
    return holder._versions if storage is None else storage.version


def version_of(tensor: TensorBase) -> int:
    """What a tensor's version counter says, which may be of `.data` alone."""
    if tensor._own_version is not None:
        return tensor._own_version[0]
    storage = tensor._storage
    return tensor._versions if storage is None else storage.version


def shown_version(tensor: TensorBase) -> int:
    """`Tensor._version`: what stays the same while nobody writes to the tensor.

    (`version_of` may change where a tensor takes its value back from a storage.)
    """
    return version_of(tensor) + tensor._ahead


def count_of(tensor: TensorBase) -> Callable[[], int]:
    """Gives the writes to a tensor, also when it is dead.

    Its version may be ahead of that; only differences count.
    """
    own, storage = tensor._own_version, tensor._storage
    if own is not None:
        return lambda: own[0]
    return lambda: 0 if storage is None else writes_of(storage)


def counts_as_memory(tensor: TensorBase) -> bool:
    """Whether a tensor that is alone on its memory has the same version as that."""
    own = tensor._own_version
    if own is None:
        return True
    return tensor._replaced > 0 and getattr(own, "storage", None) is None


def set_version(tensor: TensorBase, version: int) -> None:
    """Sets a tensor's version counter."""
    if tensor._own_version is not None:
        tensor._own_version[0] = version
    elif tensor._storage is not None:
        tensor._storage.version = version
    else:
        tensor._versions = version


def written_since(view: TensorBase) -> bool:
    """Whether a view's counter moved on since its node was made."""
    return view._versions != version_of(view)


def lacks_node(view: TensorBase) -> bool:
    """Whether a view got no node from a write that would have changed its own."""
    if view._view_note is None or not written_since(view):
        return False
    base = view._view_of
    return base is None or base._tmeta.requires_grad or not view._tmeta.leaf


def underived(base: TensorBase) -> list[TensorBase]:
    """Views of a tensor whose histories would be derived only when they are used."""
    storage, found = base._storage, []
    for view in storage.tensors() if storage is not None else ():
        meta = view._tmeta
        own = meta.requires_grad and not meta.leaf and not view._inherits
        known = view._slot >= 0 or (
            view._hist is not None and view._hist_version == writes_of(view)
        )
        if view._view_of is base and own and not known:
            found.append(view)
    return found


# What an assignment to `.data` adds to `_replaced`: more than `Storage.hidden` reaches.
REPLACED = 1 << 32


def hidden_of(holder: Storage | TensorBase) -> int:
    """What changes with each write that no version counts."""
    if isinstance(holder, Storage):
        return holder.hidden
    storage = holder._former if holder._storage is None else holder._storage
    return holder._replaced + (0 if storage is None else storage.hidden)


Placement = tuple[tuple[int, ...], tuple[int, ...], int]


def placement(tensor: TensorBase) -> Placement:
    """Shape, strides and offset of a tensor in its memory.

    The offset in a view's meta is not to be trusted where an index is a runtime
    scalar: the path has the indices.
    """
    meta, storage = tensor._tmeta, tensor._storage
    if storage is None:
        return tuple(meta.shape), meta.strides, meta.offset
    return placed(storage.meta, tensor._path)


def placed(root: Meta, path: Sequence[Any]) -> Placement:
    """Where in a memory the steps of a path lead."""
    at: Placement = tuple(root.shape), root.strides, root.offset
    for op, args, k in path:
        found = op.view.geometry(*at, *args)
        at = found[k] if isinstance(found, list) else found
    return at


def leads_on(path: Sequence[Any], way: Sequence[Any]) -> bool:
    """Whether a path goes on from where another one leads."""
    return len(way) >= len(path) and all(map(operator.is_, path, way))


def steps_from(base: TensorBase, view: TensorBase) -> tuple[Any, ...]:
    """The steps from a base to its view.

    NotImplementedError where there are none, as the base was resized.
    """
    path = base._path
    here = base._storage is view._storage
    if path and here and not leads_on(path, view._path):
        raise NotImplementedError(
            "a view that shows more of the memory than its base, which was resized, "
            "can't take part in gradients"
        )
    return view._path[len(path) :]


BITS = ("conj", "neg")


def has_bit(tensor: TensorBase, bit: str) -> bool:
    """Whether a tensor shows its memory conjugated ("conj") or negated ("neg").

    A fact of its path: twice is not at all.
    """
    found = False
    for op, _, _ in tensor._path:
        if op.view.bit == bit:
            found = not found
    return found


def bits_of(tensor: TensorBase) -> tuple[str, ...]:
    """The bits that a tensor has."""
    return tuple(bit for bit in BITS if has_bit(tensor, bit)) if tensor._path else ()


SHARED_WITHIN = (
    "unsupported operation: more than one element of the written-to tensor refers to a "
    "single memory location. Please clone() the tensor before performing the operation."
)
SHARED_WITH_OPERAND = (
    "unsupported operation: some elements of the input tensor and the written-to "
    "tensor refer to a single memory location. Please clone() the tensor before "
    "performing the operation."
)


def repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether several elements of an expanded tensor are one in memory."""
    steps = zip(shape, strides, strict=True)
    return 0 not in shape and any(n > 1 and not step for n, step in steps)


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether several elements may be one in memory; False where surely none are.

    >>> overlaps((3, 2), (1, 1)), overlaps((2, 3), (3, 1))
    (True, False)
    """
    reach = 0
    for step, n in sorted(zip(strides, shape, strict=True)):
        if n > 1:
            if step <= reach:
                return 0 not in shape
            reach += (n - 1) * step
    return False


def check_memory(op: Op, target: Any, args: Sequence[Any]) -> None:
    """Raises where an operator may not write to `target`, for what it has been given.

    As its declaration says: `apart` and `whole`.
    """
    if op.apart and not op.writes and not op.overlaps:
        check_apart(target, ())
    # PyTorch's `copy_` alone reads and writes what is conjugated or negated.
    as_is = op.name == "copy_"
    for param, value in zip(op.params, args, strict=False):
        if param.name in op.apart:
            _check_common(target, (value,), as_is)
        elif param.name in op.whole and _common(target, value, as_is) == "part":
            raise RuntimeError(SHARED_WITH_OPERAND)


def check_piece(at: Placement, value: TensorBase) -> None:
    """Raises where a piece of a memory is assigned a value that shows part of it."""
    if in_common(at, placement(value)) == "part":
        raise RuntimeError(SHARED_WITH_OPERAND)


def check_apart(out: Any, args: Sequence[Any]) -> None:
    """Raises where what is written to shares its elements, also with an operand."""
    if isinstance(out, TensorBase):
        shape, strides, _ = placement(out)
        if repeats(shape, strides):
            raise RuntimeError(SHARED_WITHIN)
        _check_common(out, args)


def _check_common(target: TensorBase, args: Sequence[Any], as_is: bool = False) -> None:
    for each in args:
        if isinstance(each, (tuple, list)):
            _check_common(target, each, as_is)
        elif _common(target, each, as_is):
            raise RuntimeError(SHARED_WITH_OPERAND)


def _common(target: TensorBase, other: Any, as_is: bool = False) -> str:
    """What of a tensor's memory is another's: "whole", "part", or "".

    As PyTorch's `get_overlap_status` (aten/src/ATen/MemoryOverlap.cpp), which knows it
    of dense tensors only. Unless `as_is`, operators get copies of tensors with bits.
    """
    if other is target:
        return "whole" if as_is or not bits_of(target) else ""
    storage = target._storage
    if storage is None or getattr(other, "_storage", None) is not storage:
        return ""
    if not as_is and (bits_of(target) or bits_of(other)):
        return ""
    return in_common(placement(target), placement(other))


def in_common(mine: Placement, theirs: Placement) -> str:
    """What of the first place is the second's: "whole", "part", or ""."""
    if 0 in mine[0] or 0 in theirs[0]:
        return ""
    if mine == theirs:
        return "whole"
    if not (dense(mine) and dense(theirs)):
        return ""
    start, first = mine[2], theirs[2]
    end, last = start + math.prod(mine[0]), first + math.prod(theirs[0])
    if (start, end, mine[1]) == (first, last, theirs[1]):
        return "whole"
    return "part" if start < last and first < end else ""


def dense(at: Placement) -> bool:
    """Whether the elements fill their memory without gaps, in some order."""
    expected = 1
    for stride, size in sorted(zip(at[1], at[0], strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return 0 not in at[0]
