"""The examples in the package's docstrings do what they say."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import torchshim
from tests.outcome import reset

PACKAGE = Path(torchshim.__file__).parent
# Running it is what `python -m torchshim` does.
FILES = sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "__main__.py"})
ALIASES = ("torch", "functorch")
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
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in examples(path, vars(module)):
            runner.run(each)
            reset(torchshim)
    vars(builtins).pop("_", None)  # which doctest leaves, and `fx` would avoid
    assert not runner.failures, capsys.readouterr().out
