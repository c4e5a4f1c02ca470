"""Traced modules under the name of PyTorch's module."""

from torchshim.jit import (
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    is_tracing,
    trace,
    trace_module,
)
from torchshim.jit._decorators import _script_if_tracing as _script_if_tracing

__all__ = [
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "is_tracing",
    "trace",
    "trace_module",
]
