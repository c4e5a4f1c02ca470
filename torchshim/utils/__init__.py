"""Utilities: loading data, handles of hooks (``torch.utils``)."""

from importlib import import_module as _import_module
from os.path import dirname as _dirname
from os.path import join as _join
from typing import Any as _Any

from torchshim._functions.memory import swap_contents as _swap_contents
from torchshim.utils import _pytree as _pytree
from torchshim.utils import data as data
from torchshim.utils import hooks as hooks

# Submodules that are imported when they are first used.
_LAZY = ("_import_utils", "_mode_utils", "_python_dispatch", "checkpoint")
_LAZY += ("benchmark", "cpp_extension", "deterministic", "dlpack", "flop_counter")
_LAZY += ("_content_store", "_device", "_traceback", "collect_env", "module_tracker")
_LAZY += ("mkldnn", "weak", "_contextlib", "_dtype_abbrs", "_exposed_in")
_LAZY += ("_ordered_set", "_stats", "_thunk", "_typing_utils")
_LAZY += ("backend_registration", "cpp_backtrace", "throughput_benchmark")


# Where PyTorch has its files for CMake.
cmake_prefix_path = _join(_dirname(_dirname(__file__)), "share", "cmake")


def set_module(obj: _Any, mod: str) -> None:
    """Sets the module that an object says it is of; TypeError for what is no text."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: _Any, t2: _Any) -> None:
    """Gives two tensors without views each other's content; who they are stays.

    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/__init__.py

    >>> import torchshim as torch
    >>> a, b = torch.zeros(1), torch.ones(2)
    >>> torch.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([1., 1.]), tensor([0.]))
    """
    _swap_contents(t1, t2)


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
