"""Anomaly detection: which forward line made the backward fail or give NaN.

https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim._arguments import check_bool
from torchshim._core import record
from torchshim._core.callers import is_own
from torchshim._core.leaves import on_error
from torchshim._core.naming import grad_name, shows_forward
from torchshim._core.record import local, refresh_modes
from torchshim._core.state import IDENTITY, INPUT
from torchshim._core.walk import watcher
from torchshim._derived import fns
from torchshim._errors import triggered
from torchshim._functions.query import _is_any_true

__all__ = ["detect_anomaly", "set_detect_anomaly"]


_PACKAGE = __name__.partition(".")[0]


class _State:
    enabled = False
    check_nan = True


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on.

    https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection

    >>> is_anomaly_enabled()
    False
    """
    return _State.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN.

    https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection

    >>> is_anomaly_check_nan_enabled()
    True
    """
    return _State.check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly detection on or off.

    https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection

    >>> set_anomaly_enabled(False)
    """
    check_bool("set_anomaly_enabled", "enabled", enabled)
    check_bool("set_anomaly_enabled", "check_nan", check_nan, 2)
    _State.enabled, _State.check_nan = enabled, check_nan
    shows_forward[0] = enabled
    watcher[:] = [_watch] if enabled else []
    on_error[:] = [_tell] if enabled else []
    record.watchers[:] = [_note] if enabled else []
    refresh_modes()


def _stack() -> list[str]:
    """The program's stack, as `traceback.format_stack` has it."""
    frames: list[Any] = []
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "runpy":
        runs_it = frame.f_globals.get("__package__") == _PACKAGE  # python -m torchshim
        if not (runs_it or is_own(frame)):
            frames.append(frame)
        frame = frame.f_back
    lines = ((each, each.f_lineno) for each in reversed(frames))
    return traceback.StackSummary.extract(lines).format()


def _note(rec: Any, depth: int) -> None:
    """Keeps the stack for the events recorded since; those within have theirs."""
    traces = rec.recording.traces
    made = [d for d in range(depth + 1, rec.state.depth + 1) if d not in traces]
    if made:
        traces.update(dict.fromkeys(made, _stack()))


def _watch(
    backward: Any, recording: Any, event: Any, grads: Sequence[Any], wrt: Any
) -> Sequence[Any]:
    """Runs one event's backward; raises where it gives NaN."""
    rec = local.rec
    running, depth = rec.recording, rec.state.depth
    outs = backward(recording, event, grads, wrt)
    if rec.grad and rec.recording is running:
        _note(rec, depth)
        for made in range(depth + 1, rec.state.depth + 1):
            running.parents.setdefault(made, (recording, event))
    if _State.check_nan:
        _check(_name(event), event, wrt, outs)
    return outs


def _name(event: Any) -> str:
    if event.kind in (INPUT, IDENTITY):
        return "torch::autograd::AccumulateGrad"
    return grad_name(event) or "Backward"


def _check(name: str, event: Any, wrt: Sequence[int], outs: Sequence[Any]) -> None:
    for i, out in zip(wrt, outs, strict=True):
        if out is None:
            continue
        with local.rec.lock:
            values = out._values() if out.is_sparse else out
            value = _is_any_true(fns.ne(values, values))
        if value.item():
            raise RuntimeError(
                f"Function '{name}' returned nan values in its {i}th output."
            )


def _tell(recording: Any, event: Any) -> None:
    """Warns of where an event was recorded, and of what it is the gradient of."""
    what = f"Error detected in {_name(event)}."
    kind, line = "forward call that caused the error", 122
    while True:
        trace = recording.traces.get(_noted_at(recording, event))
        if trace is None:
            line = 100
            text = (
                f"Error detected in {_name(event)}. No forward pass information "
                "available. Enable detect anomaly during forward pass for more "
                "information."
            )
        else:
            text = f"{what} Traceback of {kind}:\n{''.join(trace)}"
        where = f"torch/csrc/autograd/python_anomaly_mode.cpp:{line}"
        try:
            warnings.warn(triggered(text, where), UserWarning, stacklevel=2)
        except Warning as error:
            # A filter made it an error, which must not take the place of the first.
            sys.excepthook(type(error), error, error.__traceback__)
        parent = recording.parents.get(event.depth)
        if parent is None:
            return
        recording, event = parent
        what = f"\n\nPrevious calculation was induced by {grad_name(event)}."
        kind, line = "forward call that induced the previous calculation", 129


def _noted_at(recording: Any, event: Any) -> int:
    """The depth that an event's stack is noted at: a leaf's at its first use."""
    if event.kind in (INPUT, IDENTITY):
        for user in (recording.state or local.rec.state).path():
            if event.slot in [user.operands[i] for i in user.wrt]:
                return user.depth
    return event.depth


class detect_anomaly:
    """Within it a backward names the forward line behind an error or a NaN.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.detect_anomaly

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with detect_anomaly():
    ...         is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _State.enabled
        self.check_nan = check_nan
        self.prev_check_nan = _State.check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime "
            "and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switches anomaly detection on or off: a function or a context manager.

    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.set_detect_anomaly

    >>> with set_detect_anomaly(True):
    ...     is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _State.enabled
        self.prev_check_nan = _State.check_nan
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)
