"""Timing statements and comparing the times (``torch.utils.benchmark``).

https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""

from torchshim.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from torchshim.utils.benchmark.utils.compare import Colorize, Compare
from torchshim.utils.benchmark.utils.fuzzer import (
    FuzzedParameter,
    FuzzedTensor,
    Fuzzer,
    ParameterAlias,
)
from torchshim.utils.benchmark.utils.sparse_fuzzer import FuzzedSparseTensor
from torchshim.utils.benchmark.utils.timer import (
    CallgrindStats,
    CopyIfCallgrind,
    FunctionCount,
    FunctionCounts,
    Language,
    Timer,
    timer,
)

__all__ = [
    "CallgrindStats",
    "Colorize",
    "Compare",
    "CopyIfCallgrind",
    "FunctionCount",
    "FunctionCounts",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
