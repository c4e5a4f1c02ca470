"""Names of `torch._C` whose functions and classes are in other modules here."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

# Those that `torch` has of `torch._C`.
_OF_TORCH = frozenset(
    """
    CompilationUnit Event Future ScriptFunction ScriptObject Stream Tag
    ThroughputBenchmark
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache finfo
    fork get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
    get_autocast_ipu_dtype get_autocast_xla_dtype get_default_dtype
    get_num_interop_threads get_num_threads iinfo init_num_threads
    is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled
    is_autocast_xla_enabled qscheme set_anomaly_enabled set_autocast_cache_enabled
    set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype
    set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype
    set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled
    set_flush_denormal set_num_interop_threads set_num_threads wait
    """.split()
)

# A module, and its name of it.
_ELSEWHERE = {
    "_BlasBackend": "backends.cuda _BlasBackend",
    "_LinalgBackend": "backends.cuda _LinalgBackend",
    "_SDPBackend": "nn.attention SDPBackend",
    "_collect_all": "futures collect_all",
    "_cxx_flags": "__config__ _cxx_flags",
    "_from_dlpack": "utils.dlpack from_dlpack",
    "_get_autograd_fallback_mode": ("_library.operators get_autograd_fallback_mode"),
    "_get_cudnn_sdp_enabled": "backends.cuda cudnn_sdp_enabled",
    "_get_flash_sdp_enabled": "backends.cuda flash_sdp_enabled",
    "_get_math_sdp_enabled": "backends.cuda math_sdp_enabled",
    "_get_mem_efficient_sdp_enabled": "backends.cuda mem_efficient_sdp_enabled",
    "_get_deterministic_algorithms": "_settings are_deterministic_algorithms_enabled",
    "_get_deterministic_fill_uninitialized_memory": "utils.deterministic _fills",
    "_get_warnAlways": "_functions.autograd is_warn_always_enabled",
    "_get_privateuse1_backend_name": "utils.backend_registration _name",
    "_group_tensors_by_device_and_dtype": (
        "utils._foreach_utils _group_tensors_by_device_and_dtype"
    ),
    "_parallel_info": "__config__ parallel_info",
    "_set_deterministic_fill_uninitialized_memory": "utils.deterministic _set_fills",
    "_set_autograd_fallback_mode": ("_library.operators set_autograd_fallback_mode"),
    "_set_warnAlways": "_functions.autograd set_warn_always",
    "_show_config": "__config__ show",
    "_to_dlpack": "utils.dlpack to_dlpack",
    "_torchDeviceToDLDevice": "_functions.interop dlpack_device",
}
# `_get_…` and `_set_…` of these: a module of `backends`, and its attribute.
_SWITCHES = {
    "cudnn_benchmark": ("cudnn", "benchmark"),
    "cudnn_deterministic": ("cudnn", "deterministic"),
    "cudnn_enabled": ("cudnn", "enabled"),
    "mkldnn_deterministic": ("mkldnn", "deterministic"),
    "mkldnn_enabled": ("mkldnn", "enabled"),
    "nnpack_enabled": ("nnpack", "enabled"),
}
_MODULES = {"_VariableFunctions": "_VF", "_monitor": "monitor"}


def find(name: str) -> Any:
    """What `torch._C` has under a name; None where it is nothing that is here."""
    if name in _OF_TORCH:
        return getattr(importlib.import_module("torchshim"), name)
    if name in _MODULES:
        return importlib.import_module(f"torchshim.{_MODULES[name]}")
    if name in _ELSEWHERE:
        module, own = _ELSEWHERE[name].split()
        return getattr(importlib.import_module(f"torchshim.{module}"), own)
    if name[:5] in ("_get_", "_set_") and name[5:] in _SWITCHES:
        module, own = _SWITCHES[name[5:]]
        of = importlib.import_module(f"torchshim.backends.{module}")
        # Not as an attribute is set, which `disable_global_flags` forbids.
        switch = vars(type(of))[own]
        return partial(switch.__get__ if name[1] == "g" else switch.__set__, of)
    return None
