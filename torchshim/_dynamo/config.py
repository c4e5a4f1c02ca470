"""Settings of PyTorch's tracer: kept as they are set, and without effect here.

What a script records is compiled whatever they say.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_DEFAULTS: dict[str, Any] = {
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
}


class _Config(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"torch._dynamo.config.{name} does not exist"
        ) from KeyError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _DEFAULTS and not name.startswith("__"):
            raise AttributeError(f"torch._dynamo.config.{name} does not exist")
        super().__setattr__(name, value)


@contextlib.contextmanager
def patch(
    changes: dict[str, Any] | str | None = None, /, *value: Any, **named: Any
) -> Iterator[None]:
    """Other settings within a block: a dict, a name with its value, or keywords."""
    wanted = {changes: value[0]} if isinstance(changes, str) else {**(changes or {})}
    wanted |= named
    module = sys.modules[__name__]
    before = {name: getattr(module, name) for name in wanted}
    try:
        for name, new in wanted.items():
            setattr(module, name, new)
        yield
    finally:
        for name, old in before.items():
            setattr(module, name, old)


globals().update(_DEFAULTS)
sys.modules[__name__].__class__ = _Config
