"""Selective checkpointing: some results are kept, the others computed again.

https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.create_selective_checkpoint_contexts
"""

from __future__ import annotations

import contextlib
import enum
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim import ops
from torchshim._core.storage import shown_version
from torchshim._derived import fns
from torchshim.autograd import saving

# Operators that a policy is never asked about.
SAC_IGNORED_OPS: set[Any] = {ops.aten.detach.default}


class SelectiveCheckpointContext:
    """What a policy is told beside the operator: its result.

    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.SelectiveCheckpointContext
    """

    __module__ = "torch.utils.checkpoint"

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class CheckpointPolicy(enum.Enum):
    """What a policy answers: whether a result is kept or computed again.

    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.CheckpointPolicy
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


CheckpointPolicy.__module__ = "torch.utils.checkpoint"

_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic "
    "or depend on global state that changed between forward and backward."
)


class _Results:
    """The kept results of one operator, and their versions; None: computed again."""

    def __init__(self, outs: Sequence[Any] | None) -> None:
        self.outs = outs
        self.versions = [shown_version(o) for o in outs or ()]
        self.consumed = False


_Storage = defaultdict[Any, list[_Results]]


@contextlib.contextmanager
def _caching(policy: Callable[..., Any], storage: _Storage) -> Iterator[None]:
    """The context of the first run: keeps what the policy says."""

    def observe(state: Any, args: Sequence[Any], outs: list[Any]) -> None:
        op = ops.overload_of(state.call, args)
        if op in SAC_IGNORED_OPS:
            return
        output = outs[0] if len(outs) == 1 else tuple(outs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        with saving.unobserved():
            answer = policy(context, op, *args)
        if isinstance(answer, bool):
            keep = answer
        else:
            keep = answer in _KEPT
        with saving.unobserved():
            kept = [o.detach() for o in outs] if keep else None
        storage[op].append(_Results(kept))

    with saving.observing(observe):
        yield


class _Cached:
    """The context of the second run: gives the results that were kept."""

    def __init__(self, storage: _Storage, allow_mutation: bool) -> None:
        self.storage = storage
        self.allow_mutation = allow_mutation
        self.counts: dict[Any, int] = defaultdict(int)
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        self.counts.clear()
        self.stack.enter_context(saving.observing(self.observe))

    def __exit__(self, *args: object) -> None:
        self.stack.close()

    def observe(
        self, state: Any, args: Sequence[Any], outs: list[Any]
    ) -> list[Any] | None:
        op = ops.overload_of(state.call, args)
        if op in SAC_IGNORED_OPS:
            return None
        at = self.counts[op]
        self.counts[op] += 1
        known = self.storage.get(op)
        if known is None:
            raise RuntimeError(
                f"{op} encountered during backward but not found in storage. "
                f"{_MISMATCH}"
            )
        if at >= len(known):
            raise RuntimeError(
                f"{op} invocation index {at} encountered during backward but not found "
                f"in storage. {_MISMATCH}"
            )
        results = known[at]
        if results.consumed:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward "
                "once on any region computed under selective activation checkpoint."
            )
        if results.outs is None:
            return None
        if not self.allow_mutation and results.versions != [
            shown_version(o) for o in results.outs
        ]:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        kept, results.outs, results.consumed = results.outs, (), True
        with saving.unobserved():
            return [
                fns._with_history_of(value, out) if out.requires_grad else value
                for value, out in zip(kept, outs, strict=True)
            ]


def _keeping(chosen: list[Any]) -> Callable[..., Any]:
    def policy(context: Any, op: Any, *args: Any) -> CheckpointPolicy:
        if op in chosen:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The contexts for `checkpoint`'s `context_fn` that keep some results.

    `policy_fn_or_list`: operators whose results are kept (`torch.ops.aten.mm.default`),
    or a function (context, operator, *arguments) -> `CheckpointPolicy`. Raises
    RuntimeError in the backward if a kept result was written to, unless
    `allow_cache_entry_mutation`.
    https://docs.pytorch.org/docs/2.13/checkpoint.html#torch.utils.checkpoint.create_selective_checkpoint_contexts
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, ops.OpOverload):
                extra = ""
                if isinstance(op, ops.OpOverloadPacket):
                    extra = (
                        "Please update the OpOverloadPacket to a specific OpOverload."
                        "For example, if you have `torch.ops.aten.mm`, change it to "
                        "`torch.ops.aten.mm.default`."
                    )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} "
                    f"of type {type(op)}. {extra}"
                )
        policy = _keeping(list(policy_fn_or_list))

    elif callable(policy_fn_or_list):
        policy: Callable[..., Any] = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: _Storage = defaultdict(list)
    return _caching(policy, storage), _Cached(storage, allow_cache_entry_mutation)
