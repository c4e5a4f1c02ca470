"""TorchScript, as far as scripts name it: modules and functions stay Python.

Follows https://docs.pytorch.org/docs/2.13/jit.html. What they record is compiled by
XLA. `save` writes the Python module, which `load` finds again.
"""

import builtins
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._functions._arguments import warn_once
from torchshim._lazy import submodules as _submodules
from torchshim._tensor import Tensor
from torchshim.futures import Future, _fork, _wait
from torchshim.jit import annotations
from torchshim.jit._calls import Error
from torchshim.jit._decorators import (
    Attribute,
    Final,
    annotate,
    enable_onednn_fusion,
    export,
    fuser,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    isinstance,
    onednn_fusion_enabled,
    optimized_execution,
    script_if_tracing,
    script_method,
    set_fusion_strategy,
    strict_fusion,
    unused,
)
from torchshim.jit._decorators import _overload as _overload
from torchshim.jit._decorators import _overload_method as _overload_method
from torchshim.jit._decorators import _script_if_tracing as _script_if_tracing
from torchshim.jit._decorators import _unwrap_optional as _unwrap_optional
from torchshim.jit._files import loaded
from torchshim.jit._module import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    refuse,
    refuse_uninitialized,
    wrapped,
)
from torchshim.nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "annotate",
    "annotations",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_is = builtins.isinstance


class ScriptWarning(Warning):
    """What scripting warns of."""


class TracerWarning(Warning):
    """What tracing warns of."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: nothing is traced."""


#: What the class of a module that is being traced is called in errors.
_TRACED = "torch.jit._trace.TracedModule.__init__.<locals>.QualnameWrapper"


def _say(
    name: str, instead: str = "switch to `torch.compile` or `torch.export`"
) -> None:
    # At this very line, as in PyTorch: a script shows only warnings of its own lines.
    text = f"`torch.jit.{name}` is deprecated. Please {instead}."
    warnings.warn(text, DeprecationWarning, stacklevel=1)


def _no_script() -> None:
    warn_once(
        "torch.jit: nothing is compiled to TorchScript, as XLA compiles what a script "
        "records anyway; what you get runs the Python code that it was made of"
    )


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """A module, function or class as TorchScript: it runs as the Python code it is.

    https://docs.pytorch.org/docs/2.13/generated/torch.jit.script.html. RuntimeError for
    a class of modules, TypeError for what cannot be scripted. Warns once that nothing
    is compiled.
    """
    _say("script")
    if _is(obj, (ScriptModule, ScriptFunction, list, dict)):
        return obj
    if _is(obj, Module):
        refuse_uninitialized(obj)
        _no_script()
        return wrapped(obj, {})
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, "
                "pass an instance instead"
            )
        return obj
    if not callable(obj):
        raise TypeError(f"{type(obj)} is a built-in class")
    _no_script()
    return ScriptFunction(getattr(obj, "__original_fn", obj))


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """A module or function as TorchScript, called once with the example inputs.

    https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html. Unlike PyTorch's
    trace the result goes on running the Python code, with what that decides by values;
    so there is nothing to check. Warns once that nothing is compiled.
    """
    _say("trace")
    if _is(func, (ScriptModule, ScriptFunction)):
        return func
    bound = getattr(func, "__self__", None)
    for module in (func, bound):
        if _is(module, Module):
            refuse_uninitialized(module, _TRACED)
    given, named = _examples(example_inputs, example_kwarg_inputs)
    _no_script()
    if not callable(func):
        raise RuntimeError("Could not get name of python class object")
    _check_traced(func(*given, **named), strict)
    if _is(func, Module):
        return wrapped(func, {}, TopLevelTracedModule)
    if _is(bound, Module) and getattr(func, "__name__", "") == "forward":
        return wrapped(bound, {}, TopLevelTracedModule)
    return ScriptFunction(func, traced=True)


def _check_traced(found: Any, strict: bool) -> None:
    """RuntimeError for what a trace cannot give."""
    if found is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not "
            "captured in traces, so it would be a no-op."
        )
    if _is(found, (list, dict)) and not found:
        kind = "List trace inputs must have elements"
        if _is(found, dict):
            kind = "Dictionary inputs must have entries"
        raise RuntimeError(f"Tracer cannot infer type of {found}\n:{kind}")
    _check_each(found, strict)


def _check_each(found: Any, strict: bool) -> None:
    if _is(found, dict):
        if strict:
            raise RuntimeError(_A_DICT)
        return
    tensors = _is(found, list) and all(_is(each, Tensor) for each in found)
    if _is(found, (bool, int, float, complex, str, list, torchshim.dtype)) or (
        found is None
    ):
        if not tensors:
            raise RuntimeError(
                "Only tensors, lists, tuples of tensors, or dictionary of tensors can "
                "be output from traced functions"
            )
    elif _is(found, tuple) and not _is(found, torchshim.Size):
        for each in found:
            _check_each(each, strict)


_A_DICT = (
    "Encountering a dict at the output of the tracer might cause the trace to be "
    "incorrect, this is only valid if the container structure does not change based on "
    "the module's inputs. Consider using a constant container instead (e.g. for "
    "`list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you "
    "absolutely need this and know the side effects, pass strict=False to trace() to "
    "allow this behavior."
)


def _examples(inputs: Any, named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if named is not None:
        if not _is(named, dict):
            raise RuntimeError("example_kwarg_inputs should be a dict")
        return (), named
    if _is(inputs, (Tensor, dict)):
        return (inputs,), {}
    return tuple(inputs), {}


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """A module as TorchScript, its methods called once with the example inputs."""
    _say("trace_method")
    if not _is(inputs, Mapping):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    refuse_uninitialized(mod, _TRACED)
    _no_script()
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            method(**example)
        else:
            method(*_examples(example, None)[0])
    return wrapped(mod, {}, TopLevelTracedModule)


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """A scripted module in eval mode: itself, as XLA sees no difference.

    RuntimeError for other modules, and for those in training mode.
    """
    _say("freeze", "use `torch.compile` instead")
    if not _is(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please "
            "call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """A scripted module: itself."""
    _say("optimize_for_inference", "use `torch.compile` instead")
    if not _is(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use "
            "torch.jit.script or torch.jit.trace to script your 'nn.Module'."
        )
    return mod


def run_frozen_optimizations(mod: Any, *args: Any, **kwargs: Any) -> None:
    """Does nothing: XLA optimizes."""


# Asynchronous calls -----------------------------------------------------------------


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Calls a function; its result as a future. Outside TorchScript it runs at once."""
    _say("fork", "use `torch.compile` instead")
    return _fork(func, *args, **kwargs)


def wait(future: Future[Any]) -> Any:
    """The result of a future."""
    _say("wait", "use `torch.compile` instead")
    return _wait(future)


# Files ------------------------------------------------------------------------------


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a scripted module to a file, which only torchshim reads.

    What is saved is the Python module: its class has to be importable on loading.

    >>> import io
    >>> import torchshim as torch
    >>> file = io.BytesIO()
    >>> torch.jit.save(torch.jit.script(torch.nn.ReLU()), file)
    >>> _ = file.seek(0)
    >>> torch.jit.load(file)
    RecursiveScriptModule(original_name=ReLU)
    """
    _say("save", "switch to `torch.export`")
    if _is(f, (str, os.PathLike)):
        m.save(f, _extra_files=_extra_files)
    else:
        f.write(m.save_to_buffer(_extra_files=_extra_files))


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: Any = None,
    _restore_shapes: bool = False,
) -> Any:
    """A module that `save` wrote.

    ValueError for a file that is not there, RuntimeError for one that is something
    else, NotImplementedError for TorchScript, UnpicklingError where the file names what
    is neither a class of modules nor a function that the program has imported.
    """
    _say("load", "switch to `torch.export`")
    if _is(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    return loaded(f, map_location, _extra_files)


class CompilationUnit:
    """Refused: there is no TorchScript to compile."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        refuse("torch.jit.CompilationUnit")


__getattr__ = _submodules(__name__, "_script", "_trace")
