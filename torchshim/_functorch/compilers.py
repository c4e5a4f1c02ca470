"""Compilers of traced graphs: not supported, what is called is recorded."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "aot_function aot_module debug_compile debug_nop default_decompositions "
        "draw_graph_compile get_inputs memory_efficient_fusion nop print_compile "
        "simple_ts_compile ts_compile",
        "what is called is recorded, and compiled by XLA",
    )
)
