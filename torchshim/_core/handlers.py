"""Lines of the user's program that expect errors: checks there are not deferred.

A program finds out about an index out of range or a singular matrix when it runs. In
the body of a `try` whose handler may want that error, or under `assertRaises`, it runs
at once. Such lines are found in the source, and only for operators with checks.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import sys
import threading
from collections.abc import Iterator
from typing import Any

from torchshim._core.callers import GENERATED, INLINE, is_own

# Of the errors that checks raise, with their bases.
_RAISED = frozenset(
    base.__name__
    for error in (IndexError, RuntimeError, ValueError, NotImplementedError)
    for base in error.__mro__
)
# Modules whose calls of an operator expect it to raise.
_EXPECTING = ("unittest.", "_pytest.")
_FILES = 4096

# Python 3.11 fails where two threads make syntax trees at once.
_parsing = threading.RLock()  # (a finalizer may come in between)

Lines = tuple[tuple[int, int], ...]


def error_expected() -> bool:
    """Whether the line that called an operator expects errors of checks.

    A line that called a lambda, or a module's `forward` through this package, counts
    like one in it.
    """
    frame: Any = sys._getframe(1)
    own = True
    while frame is not None:
        code = frame.f_code
        lines = _files.get(code.co_filename)
        if lines is None:
            lines = _lines_of(frame)
        if lines is _OWN:
            own = True
        elif not own:
            break
        else:
            if lines:
                line = frame.f_lineno
                for first, last in lines:
                    if first <= line <= last:
                        return True
            own = code.co_name in INLINE
        frame = frame.f_back
    return False


# File -> its lines that expect errors; a mark for files of this package.
_files: dict[str, Lines] = {}
_OWN: Lines = ((0, 0),)


def _lines_of(frame: Any) -> Lines:
    filename = frame.f_code.co_filename
    module = frame.f_globals.get("__name__", "")
    if is_own(frame):
        lines = _OWN
    elif module.startswith(_EXPECTING):
        lines = ((0, sys.maxsize),)
    else:
        lines = expecting_lines(filename)
    # Code without a file of its own: others have the same name.
    if not filename.startswith("<") or module == GENERATED:
        if len(_files) >= _FILES:
            _files.clear()
        _files[filename] = lines
    return lines


@functools.lru_cache(256)
def expecting_lines(filename: str) -> Lines:
    """(first, last) line of the parts of a file that expect errors of checks."""
    source = "".join(linecache.getlines(filename))
    if "try" not in source and "raises" not in source.lower():
        return ()
    try:
        with _parsing:
            try:
                tree = ast.parse(source)
            except SystemError:
                tree = ast.parse(source)  # the script's own threads may parse, too
    except (SyntaxError, SystemError):
        return ()
    return tuple(_parts(tree))


def _parts(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, ast.TryStar)):
            if any(map(_catches, node.handlers)):
                yield node.body[0].lineno, node.body[-1].end_lineno or sys.maxsize
        elif isinstance(node, ast.With):
            if any(_expects(item.context_expr) for item in node.items):
                yield node.lineno, node.end_lineno or sys.maxsize
        elif isinstance(node, ast.Call) and _expects(node):
            yield node.lineno, node.end_lineno or sys.maxsize


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may be for errors of checks: unknown names may be anything."""
    kinds = handler.type
    if kinds is None:
        return True
    each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    names = [_last_name(kind) for kind in each]
    return any(name in _RAISED or not hasattr(builtins, name) for name in names)


def _expects(node: ast.AST) -> bool:
    """Whether this is a call like `assertRaises(…)`, `raises(…)` or `suppress(…)`."""
    if not isinstance(node, ast.Call):
        return False
    name = _last_name(node.func)
    return name.startswith("assertRaises") or name in ("raises", "suppress")


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
