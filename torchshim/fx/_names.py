"""What PyTorch calls functions and classes: the names that generated code says.

Functions that PyTorch writes in C++ are of modules such as `torch._C._nn` there, and
some are called otherwise than users call them. Modules are `torch.…` here, too,
whatever name the package was imported under.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable
from typing import Any

from torchshim import functional
from torchshim._derived import namespace
from torchshim._refusal import OPERATORS_IN_PYTHON
from torchshim._tensor import Tensor
from torchshim.ops import OpOverload, OpOverloadPacket

_SHIM = __name__.partition(".")[0]
# Public namespaces whose functions PyTorch's own code calls with a prefix.
_PREFIXED = ("linalg", "special", "fft")
_SPARSE = {
    **{name: f"_sparse_{name}" for name in ("addmm", "log_softmax", "mm", "softmax")},
    **{"sampled_addmm": "sparse_sampled_addmm", "spsolve": "_spsolve"},
}
# Functions of `nn.functional` that PyTorch writes in C++.
_NN = (
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot "
    "scaled_dot_product_attention softplus softshrink"
).split()
_NN_NAMES = {"logsigmoid": "log_sigmoid"}
_IN_LAYERS = {"threshold": "_threshold"}
# Names in torch for functions that are called otherwise.
_SAME = {"dsmm": "mm", "hsmm": "mm", "spmm": "mm"}
# Functions of torch itself that are defined in one of its modules.
_DEFINED = {
    "random": "get_rng_state initial_seed manual_seed seed set_rng_state",
    "_linalg_utils": "eig lstsq matrix_rank solve symeig",
    "_lowrank": "pca_lowrank svd_lowrank",
    "_lobpcg": "lobpcg",
    "serialization": "load save",
}


def torch_module(name: str) -> str:
    """PyTorch's name for a module of torchshim's, any other name as it is."""
    if name == _SHIM or name.startswith(f"{_SHIM}."):
        return f"torch{name.removeprefix(_SHIM)}"
    return name


@functools.cache
def _homes() -> dict[Any, tuple[str, str]]:
    """Functions of PyTorch's by (module, name), where PyTorch defines them."""
    found: dict[Any, tuple[str, str]] = {}
    for name, function in namespace("torch").items():
        found.setdefault(function, ("torch", _SAME.get(name, name)))
    for name, function in vars(functional).items():
        if name in functional.__all__ and name != "istft":
            found[function] = "torch.functional", name
    for module, names in _DEFINED.items():
        for name in names.split():
            function = getattr(importlib.import_module(_SHIM), name, None)
            if function is not None:
                found[function] = f"torch.{module}", name
    for space in _PREFIXED:
        module = vars(importlib.import_module(f"{_SHIM}.{space}"))
        for name, function in module.items():
            if name[0] != "_" and inspect.isfunction(function):
                found.setdefault(function, (f"torch._C._{space}", f"{space}_{name}"))
    sparse = importlib.import_module(f"{_SHIM}.sparse")
    for name, own in _SPARSE.items():
        found[getattr(sparse, name)] = "torch._C._sparse", own
    layers = vars(importlib.import_module(f"{_SHIM}.nn.functional"))
    for name in _NN:
        found[layers[name]] = "torch._C._nn", _NN_NAMES.get(name, name)
    for name, function in layers.items():
        if name[0] == "_" or not inspect.isfunction(function):
            continue
        if function.__name__ in OPERATORS_IN_PYTHON:
            found[function] = "torch.nn.functional", name
        in_place = name[-1] == "_" and name in namespace("torch")
        home = "torch" if in_place else "torch.nn.functional"
        found.setdefault(function, (home, _IN_LAYERS.get(name, name)))
    return found


def native_function(module: str, name: str) -> Any:
    """The function of a module of PyTorch's in C++: AttributeError without one."""
    for function, home in _homes().items():
        if home == (module, name):
            return function
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def home_of(obj: Any) -> tuple[str | None, str]:
    """(module, name) that PyTorch's function or class of this kind says it is of."""
    if isinstance(obj, (OpOverload, OpOverloadPacket)):
        space = obj.namespace if isinstance(obj, OpOverload) else obj._namespace
        return f"torch.ops.{space}", obj.__name__
    if inspect.isfunction(obj):
        found = _homes().get(obj)
        if found is not None:
            return found
    module = getattr(obj, "__module__", None)
    return module if module is None else torch_module(module), obj.__name__


def short_name(target: Callable[..., Any]) -> str:
    """The name that a node gets of its function."""
    return home_of(target)[1]


def method_name(func: Any) -> str | None:
    """The name of one of Tensor's methods, None for anything else."""
    name = getattr(func, "__name__", "")
    known = inspect.isfunction(func) and vars(Tensor).get(name) is func
    return name if known else None


def type_repr(obj: Any) -> str:
    """A type as annotations in generated code write it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{torch_module(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace(f"{_SHIM}.", "torch.")


def qualified_name(func: Any) -> str:
    """The full name of a function, as generated code calls it.

    Raises RuntimeError for a lambda whose source cannot be read, and for what is of no
    module.
    """
    if getattr(builtins, func.__name__, None) is func:
        return func.__name__
    of_tensor = method_name(func)
    if of_tensor is not None:
        return f"torch.Tensor.{of_tensor}"
    module, name = home_of(func)
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    if (module, name) == ("torch", "segment_reduce"):
        name = "_segment_reduce"
    return f"{module}.{name}"


# Of PyTorch, but not of its compiler, whose functions generated code imports.
_OF_TORCH = re.compile(r"torch(?:\.(?!_dynamo\.|_inductor\.)[^.]+)*")


def is_from_torch(obj: Any) -> bool:
    """Whether generated code finds an object by its full name under `torch`."""
    if isinstance(obj, str):
        return False
    module = getattr(obj, "__module__", None)
    if module is None:
        return False
    if inspect.isfunction(obj) and obj in _homes():
        return True
    return _OF_TORCH.fullmatch(torch_module(module)) is not None
