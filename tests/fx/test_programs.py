"""Programs of the kinds that are published, run as they are."""

from __future__ import annotations

import builtins
import importlib
import linecache
import sys
from pathlib import Path
from types import ModuleType

from tests.oracle import case

FOLDER = Path(__file__).parent / "programs"


def run(torch, name):
    """Runs a program with a module as its torch, under whatever name that has."""

    def import_(name, globals=None, locals=None, fromlist=(), level=0):
        first, _, rest = name.partition(".")
        if first != "torch":
            return builtins.__import__(name, globals, locals, fromlist, level)
        own = torch.__name__
        found = importlib.import_module(f"{own}.{rest}" if rest else own)
        return found if fromlist else torch

    path = FOLDER / f"{name}.py"
    module = ModuleType(f"tests.fx.programs.{name}")
    scope = vars(module)
    scope["__builtins__"] = {**vars(builtins), "__import__": import_}
    linecache.checkcache(str(path))
    sys.modules[module.__name__] = module  # where `pickle` finds its classes
    try:
        exec(compile(path.read_text(), str(path), "exec"), scope)
    finally:
        del sys.modules[module.__name__]


@case(warnings=False, numbers_in_text=True).over(
    *sorted(path.stem for path in FOLDER.glob("*.py"))
)
def programs(torch, name):
    run(torch, name)
