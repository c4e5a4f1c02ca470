"""Modules called from many threads of C++: they are not here."""

from torchshim._errors import refused
from torchshim.autograd.profiler_util import _format_time as format_time

__all__ = ["format_time"]

globals().update(
    refused(
        __name__,
        "ExecutionStats ThroughputBenchmark",
        "measure with torch.utils.benchmark.Timer",
    )
)
