"""One call of a checkpointed function: what its backward needs, and the second run.

Non-re-entrant checkpointing is a pair of saved-tensor hooks. Packing a value keeps
nothing but a `Holder`; the first unpacking in a backward runs the function again, which
packs the same values in the same order, and each finds its holder by its number.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim._core.saved import DETACHED_IN_PLACE
from torchshim._core.walk import walking
from torchshim._derived import fns
from torchshim._functions.query import of_all_examples
from torchshim._tensor import Tensor
from torchshim.autograd import saving
from torchshim.autograd._context import SavedForBackward
from torchshim.autograd.grad_mode import enable_grad
from torchshim.utils._checkpoint_state import Size


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function differed from the first."""

    __module__ = "torch.utils.checkpoint"


class _Stop(Exception):
    """Ends a second run that has given everything that is needed."""


TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\u2011debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
See https://github.com/pytorch/pytorch/issues/166926 for more details and
workaround examples.
"""


def _default_meta_extractor(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _nothing(tensor: Tensor) -> None:
    return None


DETERMINISM_CHECKS: dict[str, Callable[[Tensor], Any]] = {
    "default": _default_meta_extractor,
    "none": _nothing,
}


class _Groups(threading.local):
    current: GraphExecGroup | None = None


_groups = _Groups()


class GraphExecGroup:
    """Within it several backwards over parts of a graph run a function again once.

    Raises RuntimeError inside of another.
    https://docs.pytorch.org/docs/2.13/checkpoint.html
    """

    __module__ = "torch.utils.checkpoint"

    def __enter__(self) -> GraphExecGroup:
        if _groups.current is not None:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Already inside group "
                f"{_groups.current}"
            )
        _groups.current = self
        return self

    def __exit__(self, *args: object) -> None:
        _groups.current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _groups.current


class _Outside:
    """Stands for the backward where a saved value is asked for outside of one."""


class Holder:
    """Stands for one value of the first run."""

    __slots__ = ("__weakref__", "taken")

    def __init__(self) -> None:
        # The backwards that got it already.
        self.taken: weakref.WeakSet[Any] = weakref.WeakSet()


class Series:
    """The values of one kind, in the order in which the first run packed them."""

    def __init__(self) -> None:
        self.holders: list[weakref.ref[Holder]] = []
        self.metadata: list[Any] = []


class Again:
    """A second run for one backward."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        # What backwards within the second run get; it goes when that is over.
        self.cells: list[list[Tensor]] = []
        self.values: weakref.WeakKeyDictionary[Holder, Tensor] = (
            weakref.WeakKeyDictionary()
        )
        # Arguments, and the tensors of the first run that they stand for.
        self.given: list[tuple[Tensor, Tensor]] = []

    def take(self, kept: Any) -> Any:
        """An argument of the second run."""
        if not isinstance(kept, SavedForBackward):
            return kept
        if kept.was_detached():
            raise RuntimeError(DETACHED_IN_PLACE)
        tensor = kept.unpack(None)
        requires_grad = kept.meta.requires_grad
        if kept.meta.leaf and kept.packed is None:
            requires_grad = tensor.requires_grad  # it is kept itself, as it is by now
        argument = as_input(tensor, requires_grad)
        if not argument.requires_grad:
            self.given.append((argument, tensor))
        return argument

    def original(self, tensor: Tensor) -> Tensor:
        """The tensor of the first run that an argument without gradient stands for."""
        for argument, given in self.given:
            if argument is tensor:
                return given
        return tensor


class CheckpointFrame:
    """What one call of a checkpointed function leaves for backward."""

    def __init__(
        self,
        recompute: Callable[..., None],
        early_stop: bool,
        metadata_of: Callable[[Tensor], Any],
        log: DebugLog | None,
    ) -> None:
        self.recompute = recompute
        self.early_stop = early_stop
        self.metadata_of = metadata_of
        self.log = log
        self.size = Size()
        self.inputs: list[Any] = []
        self.forward_completed = False
        self.ignore_mismatch = False
        # What PyTorch saves, too, and the operands of what it gets from results.
        self.saved, self.operands = self.series = Series(), Series()
        self.runs: weakref.WeakKeyDictionary[Any, Again] = weakref.WeakKeyDictionary()

    def save_inputs(self, args: Sequence[Any]) -> None:
        # A tensor that is given twice is kept once: the function may ask for that.
        found: dict[int, SavedForBackward] = {}
        for arg in args:
            if isinstance(arg, Tensor) and id(arg) not in found:
                found[id(arg)] = SavedForBackward(arg, None)
                found[id(arg)].pack(arg)
        self.inputs = [found.get(id(a), a) for a in args]

    # -- first run -------------------------------------------------------------------

    def pack(self, tensor: Tensor, kind: int = 0) -> Holder:
        holder = Holder()
        series = self.series[kind]
        series.holders.append(weakref.ref(holder))
        series.metadata.append(self.metadata_of(tensor))
        return holder

    def pack_operand(self, tensor: Tensor) -> Holder:
        return self.pack(tensor, 1)

    # -- second run ------------------------------------------------------------------

    def unpack(self, holder: Holder) -> Tensor:
        if self.log is None:
            return self._unpack(holder)
        try:
            return self._unpack(holder)
        except CheckpointError as error:
            raise CheckpointError(self.log.text()) from error

    def _unpack(self, holder: Holder) -> Tensor:
        outside = None
        task: Any = _groups.current
        if task is None:
            stack = walking.stack
            task = stack[-1] if stack else (outside := _Outside())
        again = self.runs.get(task)
        if again is None:
            again = self.run_again(task)
        if task in holder.taken:
            extra = ""
            if _groups.current is not None:
                extra = (
                    "Performing two backward calls that overlap (i.e. require the same "
                    "saved activation in order to compute gradients) is not allowed "
                    "while under the torch.utils.checkpoint.GraphExecGroup context. "
                )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that "
                f"was already unpacked once. {extra}If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. "
                "Otherwise please open an issue with details on your use case."
            )
        value = again.values.pop(holder, None)
        if value is None:
            raise AssertionError(
                "Something went unexpectedly wrong in activation checkpoint. Please "
                "report this bug by filing an issue to PyTorch."
            )
        holder.taken.add(task)
        del outside
        return value

    def run_again(self, task: Any) -> Again:
        """Runs the function again and keeps what the first run packed."""
        self.size.make_room()
        again = Again()
        taken = {id(kept): again.take(kept) for kept in self.inputs}
        inputs = [taken[id(kept)] for kept in self.inputs]
        hooks = _Recomputing(self, again)
        try:
            with hooks, enable_grad():
                self.recompute(*inputs)
        except _Stop:
            pass
        finally:
            for cell in again.cells:
                cell.clear()
            again.given.clear()
        self.runs[task] = again
        self.check(again)
        return again

    def pack_again(self, again: Again, kind: int, tensor: Tensor) -> list[Tensor]:
        value = tensor.detach() if tensor.requires_grad else again.original(tensor)
        again.cells.append([value])
        series = self.series[kind]
        at = again.counts[kind]
        again.counts[kind] += 1
        if at >= len(series.holders):
            if not self.forward_completed:
                # A backward within the first run, which goes on to save more.
                self.ignore_mismatch = True
                return again.cells[-1]
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during "
                "recomputation than during the original forward pass.\n"
                f"{TIP}"
            )
        holder = series.holders[at]()
        if holder is not None:
            again.values[holder] = value
        if kind == 0 and self.early_stop and at + 1 == len(series.holders):
            raise _Stop
        return again.cells[-1]

    def check(self, again: Again) -> None:
        """Raises if the second run gave something else than the first."""
        if self.ignore_mismatch:
            return
        expected, found = len(self.saved.holders), again.counts[0]
        if expected != found:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved "
                "during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {found}.\n"
                f"{TIP}"
            )
        different = ""
        for at, ref in enumerate(self.saved.holders):
            holder = ref()
            if holder is None:
                continue
            metadata = self.metadata_of(again.values[holder])
            if metadata != self.saved.metadata[at]:
                different += (
                    f"tensor at position {at}:\n"
                    f"saved metadata: {self.saved.metadata[at]}\n"
                    f"recomputed metadata: {metadata}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors "
                "have different metadata than during the forward pass.\n"
                f"{different}.\n"
                f"{TIP}"
            )


def as_input(tensor: Tensor, requires_grad: bool) -> Tensor:
    """An argument of the second run: XLA cannot merge what is made of it with the first
    run, nor make it before the gradient that asks for it is there."""
    stack = walking.stack
    if tensor.requires_grad is not requires_grad:
        tensor = tensor.detach().requires_grad_(requires_grad)
    given = stack[-1].cotangents if stack else ()
    after = [of_all_examples(g) for g in given if g is not None]
    with enable_grad():
        return fns._recompute_input(tensor, after)


def _content(cell: list[Tensor]) -> Tensor:
    if not cell:
        raise RuntimeError(
            "the graph that a checkpointed function made when it ran again in a "
            "backward is gone by now"
        )
    return cell[0]


class _Recomputing:
    """The hooks of a second run. What it records may be differentiated, too."""

    def __init__(self, frame: CheckpointFrame, again: Again) -> None:
        self.frame, self.again = frame, again

    def __enter__(self) -> None:
        frame, again = self.frame, self.again
        saving.push(
            lambda tensor: frame.pack_again(again, 0, tensor),
            _content,
            lambda tensor: frame.pack_again(again, 1, tensor),
        )

    def __exit__(self, *args: object) -> None:
        saving.pop()


@contextlib.contextmanager
def checkpoint_hooks(frame: CheckpointFrame) -> Iterator[None]:
    """The hooks of a first run."""
    saving.push(frame.pack, frame.unpack, frame.pack_operand)
    try:
        yield
    finally:
        saving.pop()


class DebugLog:
    """The operators of both runs, for the error that `debug=True` asks for."""

    def __init__(self) -> None:
        self.forward: list[saving.Ran] = []
        self.again: list[saving.Ran] = []

    def contexts(self) -> tuple[Any, Any]:
        return saving.logging(self.forward), saving.logging(self.again)

    def text(self) -> str:
        def box(title: str) -> str:
            edge = "-" * 78
            return f"+{edge}+\n| {title:<77}|\n+{edge}+\n"

        def traces(log: list[saving.Ran], label: str) -> str:
            return "".join(
                f"{ran.text}   ({i + 1} of {len(log)} in {label})\n\n"
                f"{ran.line[0]}:{ran.line[1]}\n\n\n"
                for i, ran in enumerate(log)
                if ran.line is not None
            )

        def operators(log: list[saving.Ran]) -> str:
            return "\n".join(ran.text for ran in log)

        return (
            "An error happened while unpacking tensors; dumping logs of latest "
            "computation\nbecause you passed `debug=True` to "
            "`torch.utils.checkpoint.checkpoint()`.\n\n"
            + box("1. Where the operators of the original forward were called")
            + traces(self.forward, "original")
            + box("2. Where the operators of the recomputation were called")
            + traces(self.again, "recompute")
            + box("3. Operators of the original forward and of the recomputation")
            + "Operations executed during the original forward:\n\n"
            + operators(self.forward)
            + "\n\nOperations executed during recomputation:\n\n"
            + operators(self.again)
            + "\n\n"
            + box(
                "ERROR: Detected non-determinism while running activation checkpointing"
            )
            + "You are seeing this error because you passed `debug=True` to "
            "checkpoint.\nThe operators of the two runs are listed above.\n"
        )
