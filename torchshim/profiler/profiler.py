"""What `torch.profiler` offers (``torch.profiler.profiler``).

https://docs.pytorch.org/docs/2.13/profiler.html. What is timed: see
`torch.autograd.profiler`.
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

import torchshim.autograd.profiler as _profiler
from torchshim import _warnings as warnings
from torchshim._errors import unsupported, warn
from torchshim.autograd.profiler import record_function
from torchshim.autograd.profiler_util import EventList, write_trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """Whose work is profiled."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


_EVENTS = "torch.profiler.profile times programs"
_ExperimentalConfig = unsupported("profiler._ExperimentalConfig", _EVENTS)
_KinetoProfile = unsupported("profiler._KinetoProfile", _EVENTS)
ExecutionTraceObserver = unsupported("profiler.ExecutionTraceObserver", _EVENTS)


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def _default_schedule_fn(_: int) -> ProfilerAction:
    """A plan without steps: all of it is recorded."""
    return ProfilerAction.RECORD


def kineto_available() -> bool:
    """Whether PyTorch's own collector is there: it is not."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be profiled: programs are timed wherever they run."""
    from torchshim import cuda

    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if cuda.is_available() else found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A plan: skip steps, then in turn wait, warm up, and record `active` steps.

    Raises AssertionError for negative numbers, or none to record.
    https://docs.pytorch.org/docs/2.13/profiler.html#torch.profiler.schedule

    >>> [schedule(wait=1, warmup=1, active=1)(step).name for step in range(3)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), "
            f"warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results",
            stacklevel=2,
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step / length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each trace to a file in a directory.

    https://docs.pytorch.org/docs/2.13/profiler.html#torch.profiler.tensorboard_trace_handler
    """

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(
            os.path.join(dir_name, name + ".gz" if use_gzip else name)
        )

    return handler


# In this process, whatever `set_warn_always` says.
_WARNINGS_SHOWN: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _WARNINGS_SHOWN:
        _WARNINGS_SHOWN.add(text)
        warn(text)


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Within it operators, gradients and programs are timed, by a `schedule` if given.

    `on_trace_ready` is called with it after the last step of each cycle. What
    `profile_memory` and `with_flops` count: see `torch.autograd.profiler.profile`.
    https://docs.pytorch.org/docs/2.13/profiler.html#torch.profiler.profile

    >>> import torchshim as torch
    >>> with profile(activities=[ProfilerActivity.CPU]) as prof:
    ...     _ = torch.ones(2) * 3
    >>> [average.key for average in prof.key_averages()]
    ['aten::ones', 'aten::mul']
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        chosen = supported_activities() if activities is None else set(activities)
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        for each in chosen:
            if not isinstance(each, ProfilerActivity):
                raise TypeError(f"expected a ProfilerActivity, got {each!r}")
        if execution_trace_observer is not None:
            raise NotImplementedError(
                "profiler: execution_trace_observer is not supported"
            )
        self.activities = chosen
        self.options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "profile_memory": profile_memory,
            "with_modules": with_modules,
            "experimental_config": experimental_config,
            "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
        }
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        # Of the cycles before, with `acc_events`.
        self.earlier = EventList()
        # From `start` to `stop`.
        self._running = False
        self.step_num = 0
        self.metadata: dict[str, Any] = {}
        self.current_action = self.schedule(0)
        self.profiler: _profiler.profile | None = None
        self.step_rec_fn: record_function | None = None
        # Refuses what is not supported.
        _profiler.profile(**self.options)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begins as the schedule says."""
        self._running = True
        self._to(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends; a cycle that is being recorded counts as done."""
        self._end_step()
        self._running = False
        if self.current_action in _RECORDING:
            self._finish()

    def step(self) -> None:
        """Tells that the next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if self._running:
            if before is ProfilerAction.RECORD_AND_SAVE:
                self._finish()
                before = ProfilerAction.NONE
            elif before is ProfilerAction.RECORD:
                if self.current_action not in _RECORDING:
                    warnings.warn(
                        "Incorrect schedule: RECORD followed by "
                        f"{self.current_action.name}",
                        stacklevel=2,
                    )
                    self._finish()
            self._to(before, self.current_action)
        self._begin_step()

    def _to(self, before: ProfilerAction, action: ProfilerAction) -> None:
        if action is ProfilerAction.NONE or before in _RECORDING:
            return
        if before is ProfilerAction.NONE and not self.acc_events:
            if self.profiler is not None:
                _warn_once(
                    "Warning: Profiler clears events at the end of each cycle. Only "
                    "events from the current cycle will be reported. To keep events "
                    "across cycles, set acc_events=True."
                )
            self.profiler = None
        if self.profiler is None:
            self.profiler = _profiler.profile(**self.options)
        if action in _RECORDING:
            if self.profiler.entered:
                self.earlier = self.events()
                self.profiler = _profiler.profile(**self.options)
            self.profiler.__enter__()

    def _finish(self) -> None:
        self._done("stopping trace").__exit__(None, None, None)
        self.events().extend(self.earlier)
        self.earlier = EventList()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _done(self, what: str) -> _profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of the events of one name."""
        done = self._done("getting key averages")
        return done.key_averages(group_by_input_shape, group_by_stack_n)

    def events(self) -> EventList:
        """Every event."""
        return self._done("accessing events")._events()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the events for chrome://tracing or Perfetto; gzipped for `.gz`."""
        done = self._done("exporting chrome trace")
        write_trace(done._events(), path, self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines for flame graphs; needs `with_stack=True`."""
        self._done("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace."""
        self.metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json
