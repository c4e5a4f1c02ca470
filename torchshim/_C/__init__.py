"""What programs ask PyTorch's C++ side about overriding functions (`torch._C`).

PyTorch's own names for `_overrides`; nothing else of `torch._C` is here.
"""

from __future__ import annotations

import enum
import importlib
import weakref
from collections.abc import Callable
from typing import Any

from torchshim import _function_modes, _overrides
from torchshim import _warnings as warnings
from torchshim._C import _elsewhere
from torchshim._C._convolution import _ConvBackend as _ConvBackend
from torchshim._C._convolution import _select_conv_backend as _select_conv_backend
from torchshim._C._dispatch_keys import DispatchKey as DispatchKey
from torchshim._C._dispatch_keys import DispatchKeySet as DispatchKeySet
from torchshim._C._stash import _get_obj_in_tls as _get_obj_in_tls
from torchshim._C._stash import _is_key_in_tls as _is_key_in_tls
from torchshim._C._stash import _stash_obj_in_tls as _stash_obj_in_tls
from torchshim._core.device import current_accelerator, get_default_device
from torchshim._core.device import device as device
from torchshim._core.dtypes import dtype as dtype
from torchshim._core.layout import layout as layout
from torchshim._core.layout import memory_format as memory_format
from torchshim._core.meta import Size as Size
from torchshim._core.random import Generator as Generator
from torchshim._core.random import default_generator as default_generator
from torchshim._core.record import local
from torchshim._core.storage import TensorBase as TensorBase
from torchshim._errors import AcceleratorError as AcceleratorError
from torchshim._errors import OutOfMemoryError as OutOfMemoryError
from torchshim._errors import Unsupported, refused, unsupported
from torchshim._function_modes import ALL_DISABLED, ENABLED, SUBCLASSES_DISABLED
from torchshim._ops._linalg import LinAlgError
from torchshim._overrides import TensorMeta, overloaded
from torchshim.autograd import _tasks, forward_ad, grad_mode

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass"]

_TensorMeta = TensorMeta
_LinAlgError = LinAlgError
_disabled_torch_function_impl = _overrides.disabled_torch_function_impl
_pop_torch_function_stack = _function_modes.pop_mode
_push_on_torch_function_stack = _function_modes.push_mode


class _TorchFunctionState(enum.Enum):
    """What may override functions in a thread."""

    ENABLED = ENABLED
    SUBCLASSES_DISABLED = SUBCLASSES_DISABLED
    ALL_DISABLED = ALL_DISABLED


class DisableTorchFunctionSubclass(_function_modes.disabled):
    """Within the block, no class overrides functions; modes still do."""

    def __init__(self) -> None:
        super().__init__(SUBCLASSES_DISABLED)


class DisableTorchFunction(_function_modes.disabled):
    """Within the block, neither classes nor modes override functions."""

    def __init__(self) -> None:
        super().__init__(ALL_DISABLED)


class _EnableTorchFunction:
    """As long as it lives, classes and modes override functions."""

    def __init__(self) -> None:
        self._before = _get_torch_function_state()
        _set_torch_function_state(_TorchFunctionState.ENABLED)

    def __del__(self) -> None:
        _set_torch_function_state(self._before)


def _is_torch_function_enabled() -> bool:
    """Whether classes may override functions."""
    return _function_modes.state.disabled == ENABLED


def _is_torch_function_all_disabled() -> bool:
    """Whether neither classes nor modes may override functions."""
    return _function_modes.state.disabled == ALL_DISABLED


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode sees the functions called."""
    return _function_modes.mode_enabled()


def _get_torch_function_state() -> _TorchFunctionState:
    """What may override functions in this thread."""
    return _TorchFunctionState(_function_modes.state.disabled)


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    """Sets what may override functions in this thread."""
    local.rec.about_to_change()
    _function_modes.set_disabled(state.value)


def _len_torch_function_stack() -> int:
    """How many modes are on this thread's stack."""
    return len(_function_modes.state.stack)


def _get_function_stack_at(level: int) -> Any:
    """The mode at a place of this thread's stack; the last is on top."""
    return _function_modes.state.stack[level]


def _has_torch_function(args: Any, /) -> bool:
    """Whether a mode, or an element's class, overrides functions."""
    if not hasattr(args, "__iter__"):
        raise TypeError("expected a sequence")
    if _function_modes.skips():
        return False
    found = overloaded(args, False)
    own = [value for value in found if not _overrides.is_plain_kind(type(value))]
    return _function_modes.mode_enabled() or bool(own)


def _has_torch_function_unary(obj: Any, /) -> bool:
    """Whether a mode, or the argument's class, overrides functions."""
    return _has_torch_function((obj,))


def _has_torch_function_variadic(*args: Any) -> bool:
    """Whether a mode, or an argument's class, overrides functions."""
    return _has_torch_function(args)


def _skip_one_hop_torch_function(
    func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Calls a function as if neither modes nor its arguments' classes overrode it.

    The functions that it calls in turn are overridden as ever.
    """
    return _function_modes.skip_one(func, args, kwargs or {})


def _warn() -> None:
    """Gives a warning, as tests of warnings ask for."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """Gives a warning, as tests of warnings ask for."""
    text = "Test message for TORCH_WARN_DEPRECATION"
    warnings.warn(text, DeprecationWarning, stacklevel=2)


def _get_tracing_state() -> None:
    """What `torch.jit.trace` is at: nothing, as functions run as they are."""
    return None


def _is_tracing() -> bool:
    """Whether `torch.jit.trace` is at work: never, as functions run as they are."""
    return False


_current_autograd_node = _tasks.current_node
_current_graph_task_id = _tasks.number
_current_graph_task_execution_order = _tasks.execution_order
_will_engine_execute_node = _tasks.will_execute


def _log_api_usage_once(event: str) -> None:
    """Nothing is reported to anybody."""


# Settings of TorchScript's optimizer: kept, and without effect, as XLA optimizes.
_jit_settings = {
    "profiling mode": True,
    "profiling executor": True,
    "autocast": True,
    "fuses on the CPU": False,
}


def _kept(name: str) -> Callable[[bool], bool]:
    def setting(value: bool) -> bool:
        """Keeps the setting; what it was before."""
        before, _jit_settings[name] = _jit_settings[name], value
        return before

    return setting


_jit_set_profiling_mode = _kept("profiling mode")
_jit_set_profiling_executor = _kept("profiling executor")
_jit_set_autocast_mode = _kept("autocast")


def _jit_override_can_fuse_on_cpu(value: bool) -> None:
    """Sets whether TorchScript would fuse on the CPU: XLA does."""
    _jit_settings["fuses on the CPU"] = value


def _jit_override_can_fuse_on_gpu(value: bool) -> None:
    """Whether TorchScript fuses on a GPU: XLA does."""


def _jit_can_fuse_on_cpu() -> bool:
    """What was set: TorchScript fuses nothing."""
    return _jit_settings["fuses on the CPU"]


def _jit_can_fuse_on_gpu() -> bool:
    """False: TorchScript fuses nothing."""
    return False


def _jit_set_texpr_fuser_enabled(value: bool) -> None:
    """Which fuser TorchScript has: XLA fuses."""


def _debug_set_autodiff_subgraph_inlining(value: bool) -> None:
    """How TorchScript differentiates: it does not."""


# Of the `vmap` before `torch.func`'s: kept, as no operator is looped over there.
_old_vmap = {"warns": False}


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Sets whether `torch._vmap_internals` warns of operators that it loops over."""
    _old_vmap["warns"] = enabled


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Whether `torch._vmap_internals` warns of operators that it loops over."""
    return _old_vmap["warns"]


def _get_default_device() -> str:
    """The type of the default device."""
    return get_default_device().type


def _disabled_torch_dispatch_impl(*args: Any, **kwargs: Any) -> Any:
    """`__torch_dispatch__` is not supported: nothing calls it."""
    raise Unsupported(_overrides.NO_DISPATCH)


class _DisableTorchDispatch:
    """Within the block, no class is dispatched to: none ever is."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


_TensorBase = TensorBase
# LAPACK is JAX's.
has_lapack = has_spectral = True
has_openmp = has_mkl = has_cuda = _has_cuda = _has_mkldnn = False


def _set_grad_enabled(mode: bool) -> None:
    """Switches the recording of history on or off."""
    grad_mode.set_grad_enabled(mode)


_is_multithreading_enabled = grad_mode.is_multithreading_enabled
_is_view_replay_enabled = grad_mode.is_view_replay_enabled


def _set_multithreading_enabled(mode: bool) -> None:
    """Whether a backward may use several threads; it uses one."""
    grad_mode.set_multithreading_enabled(mode)


is_grad_enabled = grad_mode.is_grad_enabled
is_inference_mode_enabled = grad_mode.is_inference_mode_enabled


class _WeakTensorRef:
    """A weak reference that only tells whether the tensor is still there."""

    def __init__(self, tensor: TensorBase, /) -> None:
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether nothing holds the tensor any longer."""
        return self._tensor() is None


def _get_accelerator(check: bool | None = None) -> device:
    """The kind of the accelerator; the CPU where there is none, unless `check`."""
    found = current_accelerator()
    if found is None and check:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return device("cpu") if found is None else found


def _is_fwd_grad_enabled() -> bool:
    """Whether forward mode is on."""
    return forward_ad._is_fwd_grad_enabled()


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Switches forward mode on or off."""
    forward_ad._set_fwd_grad_enabled(mode)


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of `torch.func` is in progress."""
    return local.rec.transforming()


def _len_torch_dispatch_stack() -> int:
    """How many dispatch modes are in force: none."""
    return 0


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Whether two tensors show the same memory."""
    return tensor.untyped_storage()._cdata == other.untyped_storage()._cdata


_REASON = "torchshim has no C++ side"
_ExcludeDispatchKeyGuard = unsupported("_C._ExcludeDispatchKeyGuard", _REASON)
ScriptMethod = unsupported("_C.ScriptMethod", "functions run as they are")
ScriptModule = unsupported("ScriptModule", "modules run as they are")
# What annotations of symbolic functions name.
_NO_GRAPH = "nothing is compiled to TorchScript"
Argument = unsupported("_C.Argument", _NO_GRAPH)
Block = unsupported("_C.Block", _NO_GRAPH)
Graph = unsupported("_C.Graph", _NO_GRAPH)
Node = unsupported("_C.Node", _NO_GRAPH)
Value = unsupported("_C.Value", _NO_GRAPH)
# Types of values in such graphs.
_TYPES = """
AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType
FloatType FutureType InferredType IntType InterfaceType ListType NoneType NumberType
OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType
TensorType TupleType Type UnionType
"""
globals().update(refused(__name__, _TYPES, _NO_GRAPH))
_FILES = "torch.load and torch.save read and write archives"
PyTorchFileReader = unsupported("PyTorchFileReader", _FILES)
PyTorchFileWriter = unsupported("PyTorchFileWriter", _FILES)
parse_schema = unsupported(
    "_C.parse_schema", "torch.library reads the schemas of a program's operators"
)
_rename_privateuse1_backend = unsupported("_C._rename_privateuse1_backend", _REASON)


# Imported when they are first used.
_SUBMODULES = (
    *("_autograd", "_functions", "_functorch", "_nn"),
    *("_fft", "_linalg", "_sparse", "_special"),
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "_AutoDispatchBelowAutograd":
        operators = importlib.import_module("torchshim._library.operators")
        return operators.AutoDispatchBelowAutograd
    found = _elsewhere.find(name)
    if found is not None:
        return found
    raise AttributeError(
        f"module 'torch._C' has no attribute '{name}'; torchshim has no C++ side"
    )
