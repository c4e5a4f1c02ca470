"""Settings of PyTorch's tracer: kept as they are set, and without effect here.

What a script records is compiled whatever they say.
"""

from __future__ import annotations

from torchshim._config_module import install

install(
    __name__,
    {
        "accumulated_cache_size_limit": 256,
        "accumulated_recompile_limit": 256,
        "allow_unspec_int_on_nn_module": False,
        "assume_static_by_default": True,
        "automatic_dynamic_shapes": True,
        "cache_size_limit": 8,
        "capture_dynamic_output_shape_ops": False,
        "capture_scalar_outputs": False,
        "compiled_autograd": False,
        "disable": False,
        "dynamic_shapes": True,
        "error_on_recompile": False,
        "fail_on_recompile_limit_hit": False,
        "force_parameter_static_shapes": True,
        "guard_nn_modules": True,
        "inline_inbuilt_nn_modules": True,
        "log_level": None,
        "optimize_ddp": True,
        "recompile_limit": 8,
        "report_guard_failures": True,
        "skip_nnmodule_hook_guards": True,
        "specialize_float": False,
        "specialize_int": False,
        "suppress_errors": False,
        "trace_numpy": True,
        "verbose": False,
    },
)
