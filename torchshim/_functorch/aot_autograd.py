"""Tracing ahead of time: not supported, what is called is recorded."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "AOTConfig aot_compile_joint_with_descriptors aot_export_joint_simple "
        "aot_export_joint_with_descriptors aot_export_module aot_function aot_module "
        "aot_module_simplified create_aot_dispatcher_function create_functional_call "
        "get_aot_compilation_context get_aot_graph_name get_graph_being_compiled "
        "make_boxed_compiler make_boxed_func",
        "what is called is recorded, and compiled by XLA",
    )
)
