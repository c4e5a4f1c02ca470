"""Where the time of a program goes (``torch.profiler``).

https://docs.pytorch.org/docs/2.13/profiler.html. What is timed: see
`torch.autograd.profiler`.
"""

from torchshim.profiler import itt as itt
from torchshim.profiler import profiler as profiler
from torchshim.profiler.profiler import (
    ExecutionTraceObserver as ExecutionTraceObserver,
)
from torchshim.profiler.profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from torchshim.profiler.profiler import _ExperimentalConfig as _ExperimentalConfig
from torchshim.profiler.profiler import _KinetoProfile as _KinetoProfile

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
