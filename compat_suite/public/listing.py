"""The documented public names of the installed PyTorch, and the file that keeps them.

A name is documented if it is public (in `__all__`, or without an underscore where there
is none) and has a docstring of its own. Attributes of `Tensor` need none.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
import types
from pathlib import Path
from typing import Any

NAMES = Path(__file__).with_name("names.txt")
MODULES = (
    "torch",
    "torch.amp",
    "torch.autograd",
    "torch.autograd.forward_ad",
    "torch.autograd.functional",
    "torch.autograd.graph",
    "torch.compiler",
    "torch.cuda",
    "torch.distributions",
    "torch.distributions.constraints",
    "torch.distributions.transforms",
    "torch.fft",
    "torch.func",
    "torch.linalg",
    "torch.masked",
    "torch.nn",
    "torch.nn.attention",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.parameter",
    "torch.nn.utils",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.nn.utils.rnn",
    "torch.nn.utils.stateless",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.profiler",
    "torch.random",
    "torch.signal.windows",
    "torch.sparse",
    "torch.special",
    "torch.testing",
    "torch.utils",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.utils.dlpack",
)
#: Classes whose public methods are listed as well.
CLASSES = (
    "torch.Generator",
    "torch.Tensor",
    "torch.autograd.Function",
    "torch.distributions.Distribution",
    "torch.nn.Module",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler",
    "torch.utils.data.DataLoader",
)
_VALUES = ("dtype", "layout", "memory_format")


def write() -> None:
    """Lists the names of the installed PyTorch in the file."""
    import torch

    version = torch.__version__.partition("+")[0]
    lines = [
        f"# Documented names of PyTorch {version}, written by "
        "`python -m compat_suite names --record`."
    ]
    for path in (*MODULES, *CLASSES):
        found = sorted(_members(path))
        body = textwrap.wrap(" ".join(found), 86, break_on_hyphens=False)
        lines += ["", f"[{path}]", *body]
    NAMES.write_text("\n".join(lines) + "\n")


def read() -> dict[str, list[str]]:
    """The names in the file, by module or class."""
    found: dict[str, list[str]] = {}
    members: list[str] = []
    for line in NAMES.read_text().splitlines():
        if line.startswith("["):
            members = found.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            members += line.split()
    return found


def _members(path: str) -> list[str]:
    if path in CLASSES:
        module, _, name = path.rpartition(".")
        return _of_class(getattr(importlib.import_module(module), name))
    return _of_module(importlib.import_module(path))


def _of_module(module: Any) -> list[str]:
    public = getattr(module, "__all__", None)
    names = [n for n in dir(module) if not n.startswith("_")]
    found = []
    for name in names:
        value = getattr(module, name)
        if type(value).__name__ in _VALUES and module.__name__ == "torch":
            found.append(name)
        elif isinstance(value, types.ModuleType):
            if value.__name__ == f"{module.__name__}.{name}":
                found.append(name)
        elif (public is None or name in public) and callable(value):
            home = str(getattr(value, "__module__", None) or module.__name__)
            if _documented(value) and (public or home.startswith(("torch", "_"))):
                own = home == module.__name__ or home.startswith(module.__name__ + "._")
                if public or own or not inspect.isfunction(value):
                    found.append(name)
    if module.__name__ == "torch":
        found += ["e", "inf", "nan", "pi", "newaxis"]
    return found


def _of_class(cls: type) -> list[str]:
    found = []
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        plain = inspect.isgetsetdescriptor(value) or isinstance(value, property)
        if not name.startswith("_") and (plain or _documented(value)):
            found.append(name)
    return found


def _documented(value: Any) -> bool:
    doc = getattr(value, "__doc__", None)
    if isinstance(value, type):
        # A class without a docstring of its own shows that of its base.
        doc = value.__dict__.get("__doc__")
    return bool(doc)
