"""Times of operators and of the programs that they become (`torch.autograd.profiler`).

https://docs.pytorch.org/docs/2.13/autograd.html#profiler

An operator's time is what it takes to record it, on the host: `aten::mm`. What was
recorded runs later, as one program: `XLA program (12 events)`, with the line of the
user's program that made it run; while profiling each is waited for. What happens within
a program JAX's own profiler shows (`jax.profiler.trace`), where blocks of
`record_function` appear under their names.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from torchshim import _warnings as warnings
from torchshim._arguments import type_name
from torchshim._core import program
from torchshim._core.callers import caller
from torchshim._core.layout import strided
from torchshim._core.naming import grad_name
from torchshim._core.storage import TensorBase
from torchshim._core.walk import watcher
from torchshim._function_modes import pop_mode, push_mode
from torchshim._hooks import naming
from torchshim._tensor import Tensor
from torchshim.autograd.profiler_util import EventList, FunctionEvent, write_trace

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile"]
__all__ += ["record_function"]

_NOT_OPERATORS = frozenset({"__get__", "__set__", "__delete__"})


class _Collector:
    """Gathers events, from the thread that starts it."""

    current: _Collector | None = None

    def __init__(self, shapes: bool, stack: bool, memory: bool, flops: bool) -> None:
        self.shapes = shapes
        self.memory, self.flops = memory, flops
        self.with_stack = stack
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []
        self.owner = threading.get_ident()

    def start(self) -> None:
        if _Collector.current is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        _Collector.current = self
        self.before = watcher[:]
        watcher[:] = [self.backward]
        program.watchers.append(self.ran)
        naming.append(record_function)
        push_mode(self)

    def stop(self) -> None:
        if _Collector.current is not self:  # `_disable_profiler` was called
            return
        pop_mode()
        program.watchers.remove(self.ran)
        naming.clear()
        watcher[:] = self.before
        _Collector.current = None

    # -- what calls it -----------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", str(func))
        if name in _NOT_OPERATORS:
            return func(*args, **(kwargs or {}))
        shapes = None
        if self.shapes:
            shapes = [
                list(a._tmeta.shape) if isinstance(a, TensorBase) else [] for a in args
            ]
        plain = name[2:-2] if name.startswith("__") else name
        event = self.begin(f"aten::{plain}", shapes)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self.end(event)
        if self.memory:
            event.self_cpu_memory_usage = _new_bytes(result, args)
        if self.flops:
            event.flops = _flops(plain, args, result)
        return result

    def backward(
        self, run: Any, recording: Any, state: Any, grads: Any, wrt: Any
    ) -> Any:
        """The gradient of one event in a backward."""
        name = grad_name(state) or "Backward"
        event = self.begin(f"autograd::engine::evaluate_function: {name}")
        try:
            if self.before:
                return self.before[0](run, recording, state, grads, wrt)
            return run(recording, state, grads, wrt)
        finally:
            self.end(event)

    def ran(self, each: program.Program, began: int, result: Any) -> None:
        """A run of a program."""
        jax.block_until_ready(result)
        count = each.lowered.n_events
        kind = "XLA program" if each.entry is None else "XLA compilation and program"
        event = self.begin(f"{kind} ({count} events)", category="kernel", began=began)
        self.end(event)

    # -- events ------------------------------------------------------------------------

    def begin(
        self,
        name: str,
        shapes: list[Any] | None = None,
        category: str = "cpu_op",
        began: int | None = None,
    ) -> FunctionEvent:
        stack = None
        line = caller() if self.with_stack else None
        if line is not None:
            stack = [f"{line[0]}({line[1]})"]
        mine = threading.get_ident() == self.owner
        parent = self.open[-1] if mine and self.open else None
        start = time.perf_counter_ns() if began is None else began
        event = FunctionEvent(
            len(self.events), name, start, parent, shapes, stack, category
        )
        self.events.append(event)
        if mine:
            self.open.append(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        event.end_ns = time.perf_counter_ns()
        while event in self.open:
            self.open.pop()


def _profiler_enabled() -> bool:
    """Whether something is being profiled."""
    return _Collector.current is not None


def _disable_profiler() -> None:
    """Ends the profiling in progress, if any; its context manager has the events."""
    if _Collector.current is not None:
        _Collector.current.stop()


def _new_bytes(result: Any, args: Sequence[Any]) -> int:
    """What results take that are neither arguments nor views."""
    results = result if isinstance(result, tuple | list) else (result,)
    return sum(
        each.numel() * each.element_size()
        for each in results
        if isinstance(each, Tensor)
        and each.layout == strided
        and not each._is_view()
        and not any(each is a for a in args)
    )


# The argument whose last dimension a product sums over.
_PRODUCTS = {"mm": 0, "bmm": 0, "matmul": 0, "linear": 0, "addmm": 1}


def _flops(name: str, args: Sequence[Any], result: Any) -> int:
    """Additions and multiplications of the operators that PyTorch counts."""
    if not isinstance(result, Tensor):
        return 0
    if name in ("add", "mul"):
        return result.numel()
    if name == "conv2d":
        return 2 * result.numel() * math.prod(args[1].shape[1:])
    if name in _PRODUCTS:
        return 2 * result.numel() * args[_PRODUCTS[name]].shape[-1]
    return 0


class record_function:
    """Gives a block, or a function it decorates, a name in the profile.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.profiler.record_function.html

    >>> import torchshim as torch
    >>> with profile() as found, record_function("mine"):
    ...     _ = torch.ones(2) * 2
    >>> [event.name for event in found.function_events]
    ['mine', 'aten::ones', 'aten::mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        if not isinstance(self.name, str):
            raise RuntimeError(
                "profiler::_record_function_enter_new() Expected a value of type 'str' "
                f"for argument 'name' but instead found type '{type_name(self.name)}'."
            )
        self._collector = _Collector.current
        if self._collector is not None:
            self._event = self._collector.begin(self.name, category="user_annotation")
        self._annotation = jax.profiler.TraceAnnotation(self.name)
        self._annotation.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._annotation.__exit__(*error)
        if self._collector is not None:
            self._collector.end(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class profile:
    """Within it operators, gradients and programs are timed.

    `use_device` and `use_cuda` change nothing: programs are timed wherever they run.
    With `profile_memory` an operator has the bytes of its results, which is what
    PyTorch allocates; the program that it becomes may need less. With `with_flops`
    products, `conv2d`, `add` and `mul` have their operations. `with_modules` adds
    nothing, as in PyTorch for modules that are not TorchScript.
    Raises NotImplementedError for what else is not supported.
    https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.profiler.profile

    >>> import torchshim as torch
    >>> with profile() as found:
    ...     _ = torch.ones(2).exp()
    >>> print(found.key_averages().table().splitlines()[1].split()[:3])
    ['Name', 'Self', 'CPU']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        for name, asked in (
            ("experimental_config", experimental_config),
            ("custom_trace_id_callback", custom_trace_id_callback),
            ("post_processing_timeout_s", post_processing_timeout_s),
            ("use_cpu=False", not use_cpu),
        ):
            if asked:
                raise NotImplementedError(f"profiler: {name} is not supported")
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use "
                "``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_stack = with_stack
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_modules = with_modules
        self.entered = False
        self.function_events: EventList | None = None
        self._collector: _Collector | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._collector = _Collector(
            self.record_shapes, self.with_stack, self.profile_memory, self.with_flops
        )
        self._collector.start()
        return self

    def __exit__(self, *error: Any) -> bool:
        if self._collector is not None:
            self._collector.stop()
            self.function_events = EventList(
                self._collector.events, self.profile_memory, self.with_flops
            )
            self._collector = None
        return False

    def _events(self) -> EventList:
        """The events; none while it runs."""
        if self.function_events is None:
            return EventList([], self.profile_memory, self.with_flops)
        return self.function_events

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        return repr(self) if self.function_events is None else str(self._events())

    def table(self, *args: Any, **kwargs: Any) -> str:
        """As `EventList.table`."""
        return self._events().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """As `EventList.export_chrome_trace`."""
        write_trace(self._events(), path, {})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """As `EventList.export_stacks`; needs `with_stack=True`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._events().export_stacks(path, metric)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """As `EventList.key_averages`."""
        by = group_by_input_shape, group_by_stack_n, group_by_overload_name
        return self._events().key_averages(*by)

    def total_average(self) -> Any:
        """As `EventList.total_average`."""
        return self._events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events."""
        return self._events().self_cpu_time_total


class emit_nvtx:
    """Ranges for NVIDIA's tools: not supported, unless it is switched off."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx | None:
        if self.enabled:
            raise NotImplementedError(
                f"torch.autograd.profiler.{type(self).__name__}: operators run within "
                "XLA programs; jax.profiler.trace shows what they do"
            )
        return None

    def __exit__(self, *error: Any) -> bool:
        return False


class emit_itt(emit_nvtx):
    """Ranges for Intel's tools: not supported, unless it is switched off."""
