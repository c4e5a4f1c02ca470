"""Compilers of traced graphs: not supported, what is called is recorded."""

from __future__ import annotations

from torchshim._errors import unsupported
from torchshim._functorch import config

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "config",
    "debug_compile",
    "default_partition",
    "draw_graph",
    "draw_graph_compile",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
    "memory_efficient_fusion",
    "min_cut_rematerialization_partition",
    "minifier",
    "nop",
    "print_compile",
    "ts_compile",
]

_MODULE = "functorch.compile"
_REASON = "what is called is recorded, and compiled by XLA"
aot_function = unsupported(f"{_MODULE}.aot_function", _REASON)
aot_module = unsupported(f"{_MODULE}.aot_module", _REASON)
aot_module_simplified = unsupported(f"{_MODULE}.aot_module_simplified", _REASON)
compiled_function = unsupported(f"{_MODULE}.compiled_function", _REASON)
compiled_module = unsupported(f"{_MODULE}.compiled_module", _REASON)
debug_compile = unsupported(f"{_MODULE}.debug_compile", _REASON)
default_partition = unsupported(f"{_MODULE}.default_partition", _REASON)
draw_graph = unsupported(f"{_MODULE}.draw_graph", _REASON)
draw_graph_compile = unsupported(f"{_MODULE}.draw_graph_compile", _REASON)
get_aot_compilation_context = unsupported(
    f"{_MODULE}.get_aot_compilation_context", _REASON
)
get_aot_graph_name = unsupported(f"{_MODULE}.get_aot_graph_name", _REASON)
get_graph_being_compiled = unsupported(f"{_MODULE}.get_graph_being_compiled", _REASON)
make_boxed_compiler = unsupported(f"{_MODULE}.make_boxed_compiler", _REASON)
make_boxed_func = unsupported(f"{_MODULE}.make_boxed_func", _REASON)
memory_efficient_fusion = unsupported(f"{_MODULE}.memory_efficient_fusion", _REASON)
min_cut_rematerialization_partition = unsupported(
    f"{_MODULE}.min_cut_rematerialization_partition", _REASON
)
minifier = unsupported(f"{_MODULE}.minifier", _REASON)
nop = unsupported(f"{_MODULE}.nop", _REASON)
print_compile = unsupported(f"{_MODULE}.print_compile", _REASON)
ts_compile = unsupported(f"{_MODULE}.ts_compile", _REASON)
