"""Where the time of a program goes (``torch.profiler``).

https://docs.pytorch.org/docs/2.13/profiler.html. What is timed: see
`torch.autograd.profiler`.
"""

from torchshim.autograd.profiler_util import DeviceType
from torchshim.profiler import itt as itt
from torchshim.profiler import profiler as profiler
from torchshim.profiler.profiler import (
    ExecutionTraceObserver,
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
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
