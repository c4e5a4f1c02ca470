"""PyTorch's API on JAX, with no torch installed: `import torchshim as torch`."""

import gc as _gc
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# A collection of the whole heap, jax's included, costs 50 ms and finds nothing.
_collecting = _gc.isenabled()
_gc.disable()

from math import e, inf, nan, pi

from torchshim import (
    _functions as _functions,
)
from torchshim import (
    _tensor_str as _tensor_str,
)
from torchshim import (
    autograd as autograd,
)
from torchshim import (
    cuda as cuda,
)
from torchshim import (
    fft as fft,
)
from torchshim import (
    linalg as linalg,
)
from torchshim import (
    random as random,
)
from torchshim import (
    signal as signal,
)
from torchshim import (
    special as special,
)
from torchshim import (
    storage as storage,
)
from torchshim._alias import install as install
from torchshim._alias import know_torch as _know_torch
from torchshim._alias import uninstall as uninstall
from torchshim._core import garbage as _garbage  # noqa: F401 (it watches collections)
from torchshim._core import host_memory as _host_memory
from torchshim._core.device import (
    device,
    get_default_device,
    set_default_device,
)
from torchshim._core.dtypes import NAMES as _DTYPES
from torchshim._core.dtypes import (
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
)
from torchshim._core.layout import NAMES as _LAYOUTS
from torchshim._core.layout import layout, memory_format
from torchshim._core.meta import Size
from torchshim._core.random import Generator, default_generator
from torchshim._derived import namespace as _namespace
from torchshim._explain import explain as explain
from torchshim._functions.defaults import (
    set_default_dtype as set_default_dtype,
)
from torchshim._functions.defaults import (
    set_default_tensor_type,
)
from torchshim._functions.legacy import TENSOR_TYPES as _TENSOR_TYPES
from torchshim._functions.legacy_storage import STORAGE_TYPES as _STORAGE_TYPES
from torchshim._functions.legacy_storage import default_storage as _default_storage
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import TypedStorage
from torchshim._library.tags import Tag as Tag
from torchshim._printing import set_printoptions
from torchshim._questions import deprecated_question as _deprecated_question
from torchshim._tensor import Tensor
from torchshim._version import torch_version as __version__  # noqa: F401
from torchshim.autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
)
from torchshim.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
)
from torchshim.autograd.grad_mode import (
    set_grad_enabled as set_grad_enabled,
)
from torchshim.random import thread_safe_generator

newaxis = None

globals().update(_DTYPES)
globals().update(_LAYOUTS)
globals().update(_TENSOR_TYPES)
globals().update(_STORAGE_TYPES)
globals().update(_namespace("torch"))

# Its own name, also where programs find it as `torch`.
_SELF = __name__

_know_torch()
_host_memory.keep_freed()

# Submodules that are imported when they are first used.
_LAZY = (
    *("_C", "_VF", "classes", "functional", "library", "ops", "overrides", "profiler"),
    *("_functorch", "_higher_order_ops", "_jit_internal", "_prims_common"),
    *("_subclasses", "_utils", "_vmap_internals", "fx"),
    *("__config__", "__future__", "_dynamo", "_inductor", "accelerator", "backends"),
    *("compiler", "cpu", "distributed", "distributions", "export", "futures"),
    *("ao", "hub", "jit", "mps", "mtia", "onnx", "package", "quantization"),
    *("_custom_ops", "_decomp", "_dispatch", "_linalg_utils", "_lobpcg", "_prims"),
    *("_logging", "_refs", "_utils_internal", "_weights_only_unpickler", "monitor"),
    *(
        "masked",
        "nested",
        "quasirandom",
        "return_types",
        "sparse",
        "testing",
        "torch_version",
        "types",
        "version",
        "xpu",
    ),
)

# Schemes of quantized tensors, and functions of these: `_quantization` makes them.
_SCHEMES = (
    *("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine"),
    *("per_channel_symmetric", "per_channel_affine_float_qparams"),
)
_QUANTIZED = (
    *("empty_quantized", "quantize_per_channel", "quantize_per_tensor"),
    *("quantize_per_tensor_dynamic", "quantized_batch_norm", "quantized_max_pool1d"),
    *("quantized_max_pool2d", "quantized_max_pool3d", "_empty_affine_quantized"),
    *("_empty_per_channel_affine_quantized", "_make_per_tensor_quantized_tensor"),
    "_choose_qparams_per_tensor",
    *("_make_per_channel_quantized_tensor", "quantized_gru", "quantized_lstm"),
)

# Names that are found in such a module.
_LAZY_NAMES = {
    **dict.fromkeys(("CompilationUnit", "ScriptFunction"), "jit"),
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter", "ScriptModule"), "_C"),
    **{"Future": "futures", "_tensor_classes": "_legacy_types"},
    **dict.fromkeys(("_import_dotted_name", "_running_with_deploy"), "_utils"),
    **{"classproperty": "_utils"},
    **dict.fromkeys(("DisableTorchFunction", "DisableTorchFunctionSubclass"), "_C"),
    **dict.fromkeys(("Argument", "Block", "Graph", "Node", "Value"), "_C"),
    **dict.fromkeys(("DeviceObjType", "ListType", "TensorType", "TupleType"), "_C"),
    **dict.fromkeys(("DispatchKey", "DispatchKeySet", "parse_schema"), "_C"),
    **{"to_dlpack": "utils.dlpack"},
    **{"ThroughputBenchmark": "utils.throughput_benchmark"},
    **{"_warn_typed_storage_removal": "storage"},
    **dict.fromkeys(("qscheme", *_SCHEMES, *_QUANTIZED), "_quantization"),
    **{"ScriptObject": "_quantization"},
}

if _TYPE_CHECKING:
    # The operators, dtypes and formats that stand in the module from here on.
    def __getattr__(name: str) -> _Any: ...

else:

    def __getattr__(name: str) -> _Any:
        if name in _LAZY:
            found = _import_module(f"{_SELF}.{name}")
            _know_torch()
            return found
        if name == "Storage":
            return _default_storage()
        if name == "torch":  # the name that PyTorch's own module has of itself
            return _import_module(_SELF)
        if name in _LAZY_NAMES:
            return getattr(_import_module(f"{_SELF}.{_LAZY_NAMES[name]}"), name)
        return _deprecated_question(name, f"module {__name__!r} has no attribute")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "Storage"})


# These use the names above.
from torchshim import (
    _conditions,
    _questions,
    _settings,
)
from torchshim import (
    amp as amp,
)
from torchshim import func as func
from torchshim import (
    multiprocessing as multiprocessing,
)
from torchshim import (
    nn as nn,
)
from torchshim import (
    optim as optim,
)
from torchshim import (
    serialization as serialization,
)
from torchshim import (
    utils as utils,
)
from torchshim._compile import compile
from torchshim._errors import AcceleratorError, OutOfMemoryError
from torchshim._picture import graph as graph
from torchshim._streams import Event, Stream
from torchshim.amp import _settings as _autocast_settings
from torchshim.amp import grad_scaler as _grad_scaler
from torchshim.amp.autocast_mode import autocast
from torchshim.amp.grad_scaler import GradScaler
from torchshim.futures import _fork as fork
from torchshim.futures import _wait as wait
from torchshim.serialization import load, save

_amp_foreach_non_finite_check_and_unscale_ = (
    _grad_scaler._amp_foreach_non_finite_check_and_unscale_
)
_amp_update_scale_ = _grad_scaler._amp_update_scale_

for _module in (_conditions, _settings, _questions, _autocast_settings):
    globals().update({name: getattr(_module, name) for name in _module.__all__})
del _module

if _collecting:
    _gc.enable()

# What stands here and PyTorch's star import leaves out.
_NOT_STARRED = frozenset(
    (
        *("BFloat16Storage", "BFloat16Tensor", "ComplexDoubleStorage"),
        *("ComplexFloatStorage", "HalfStorage", "HalfTensor", "Storage"),
        *("broadcast_shapes", "channels_last", "channels_last_3d", "classproperty"),
        *("compiled_with_cxx11_abi", "contiguous_format", "eig", "explain"),
        *("from_dlpack", "get_file_path", "graph", "install", "jagged"),
        *("legacy_contiguous_format", "lstsq", "lu", "matrix_rank", "pca_lowrank"),
        *("preserve_format", "segment_reduce", "set_default_dtype", "set_grad_enabled"),
        *("solve", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc"),
        *("sparse_csr", "strided", "svd_lowrank", "symeig", "to_dlpack"),
        *("uninstall", "unique", "while_loop", *_SCHEMES),
    )
)
__all__ = [
    "AcceleratorError",
    "Event",
    "Generator",
    "GradScaler",
    "OutOfMemoryError",
    "Size",
    "Stream",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "autocast",
    "compile",
    "default_generator",
    "device",
    "dtype",
    "e",
    "enable_grad",
    "finfo",
    "fork",
    "get_default_device",
    "get_default_dtype",
    "iinfo",
    "inf",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "layout",
    "load",
    "memory_format",
    "nan",
    "newaxis",
    "no_grad",
    "pi",
    "save",
    "set_anomaly_enabled",
    "set_default_device",
    "set_default_tensor_type",
    "set_printoptions",
    "thread_safe_generator",
    "wait",
]
# The operators, dtypes, and what is imported when it is used.
__all__ += sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    name
    for name in {*globals(), *_LAZY_NAMES, "export"}.difference(__all__, _NOT_STARRED)
    if name[0] != "_" and not isinstance(globals().get(name), _ModuleType)
)
