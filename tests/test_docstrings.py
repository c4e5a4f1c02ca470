"""The examples in the package's docstrings do what they say."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import torchshim
from tests.outcome import reset
from torchshim._derived import _derived

PACKAGE = Path(torchshim.__file__).parent
# Running it is what `python -m torchshim` does.
FILES = sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "__main__.py"})
ALIASES = ("torch", "functorch")
# Namespaces that only PyTorch's own code uses.
PRIVATE = ("_C._nn", "_VF", "ops.aten")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def examples(path: Path, scope: dict[str, Any]) -> list[doctest.DocTest]:
    """The docstrings of a file that have examples."""
    parse = doctest.DocTestParser().get_doctest
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text and ">>>" in text:
            name = getattr(node, "name", path.stem)
            line = getattr(node, "lineno", 0)
            found.append(parse(text, dict(scope), name, str(path), line))
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if ">>> " in path.read_text()],
    ids=lambda path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts),
)
def test_examples(path, capsys, monkeypatch):
    if sys.modules.get("torch", torchshim) is not torchshim:
        # PyTorch, which an earlier test compared with: examples run without it.
        for each in [m for m in sys.modules if m.partition(".")[0] in ALIASES]:
            monkeypatch.delitem(sys.modules, each)
    name = module_of(path)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Users find these functions elsewhere, and copy their examples.
        elsewhere = re.search(r"\._functions\.[^_]", name)
        scope = {} if elsewhere else vars(module)
        for each in examples(path, scope):
            runner.run(each)
            reset(torchshim)
    vars(builtins).pop("_", None)  # which doctest leaves, and `fx` would avoid
    assert not runner.failures, capsys.readouterr().out


def reachable() -> Iterator[tuple[str, Any]]:
    """What users find, by names."""
    for space, functions in _derived.namespaces.items():
        if space not in PRIVATE:
            for name, function in functions.items():
                yield f"{space}.{name}", function
    for name in vars(torchshim.Tensor):
        yield f"Tensor.{name}", inspect.getattr_static(torchshim.Tensor, name)
    for module in map(module_of, FILES):
        if "._" not in module:
            found = importlib.import_module(module)
            for name in getattr(found, "__all__", ()):
                yield f"{module}.{name}", getattr(found, name, None)


def with_examples(folder: Path) -> dict[tuple[Path, int], bool]:
    """Whether the functions of a folder have one, by the lines that they begin in."""
    found = {}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                has = ">>> " in (ast.get_docstring(node) or "")
                for each in (node, *node.decorator_list):
                    found[path, each.lineno] = has
    return found


def test_each_public_function_has_an_example():
    folder = (PACKAGE / "_functions").resolve()
    written = with_examples(folder)
    seen, without = set(), set()
    for name, shown in reachable():
        value = shown.fget if isinstance(shown, property) else shown
        if name.rpartition(".")[2].startswith("_") or type(value) is not FunctionType:
            continue
        code = inspect.unwrap(value).__code__
        at = Path(code.co_filename).resolve(), code.co_firstlineno
        if at[0].parent == folder:
            seen.add(at)
            if not (written.get(at) and ">>> " in (shown.__doc__ or "")):
                without.add(name)
    assert len(seen) > 350
    assert not without
