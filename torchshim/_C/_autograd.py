"""What programs reach of autograd's C++ side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.record import local
from torchshim._core.storage import set_version
from torchshim._core.walk import walking
from torchshim._functions.saved_values import SavedTensor as SavedTensor
from torchshim.autograd import saving


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks for saved tensors may be used."""
    return saving.disabled() is None


def _saved_tensors_hooks_disable(
    error_message: str, fail_if_non_empty: Any = None
) -> None:
    """Using hooks for saved tensors raises an error with this message from now on."""
    saving.disable(error_message)


def _saved_tensors_hooks_enable() -> None:
    """Hooks for saved tensors may be used again."""
    saving.disable(None)


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The message of the error, while hooks are disabled."""
    return saving.disabled()


def _push_saved_tensors_default_hooks(
    pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
) -> None:
    """Hooks for saved tensors from now on, until they are popped."""
    saving.push_checked(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """Takes the hooks off that were pushed last."""
    saving.pop()


def _get_sequence_nr() -> int:
    """The number of the next node: that of the last event, and one."""
    rec = local.rec
    return (rec.recording.seq << 32) + rec.state.depth + 1


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the running backward keeps what the graph saved; True outside of one."""
    stack = walking.stack
    return not stack or stack[-1].retain


def _unsafe_set_version_counter(
    tensors: Sequence[Any], versions: Sequence[int]
) -> None:
    """Sets how often tensors were written to."""
    if len(tensors) != len(versions):
        raise RuntimeError(
            "tensors and versions must have the same length in unsafe_set_version"
        )
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(
                f"Cannot set a version_counter to a value below 0: {version}"
            )
        set_version(tensor, version)


def __getattr__(name: str) -> Any:
    if name == "DeviceType":
        from torchshim.autograd.profiler_util import DeviceType

        return DeviceType
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
