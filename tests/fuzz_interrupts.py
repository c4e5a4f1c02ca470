"""What comes between the lines that `tests.fuzz_core` runs: reads, and Ctrl-C."""

from __future__ import annotations

import ast
import functools
import random
import sys
from pathlib import Path
from typing import Any

from tests.fuzz_scope import code_of, tensors_of


@functools.cache
def cleaning_up(file: str) -> tuple[frozenset[int], frozenset[int]]:
    """The lines of a file that begin a `with` or a `try`, and those in a `finally`."""
    heads, finals = set(), set()
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, (ast.With, ast.Try)):
            heads.add(node.lineno)
        for each in getattr(node, "finalbody", ()):
            finals.update(range(each.lineno, each.end_lineno + 1))
    return frozenset(heads), frozenset(finals)


def may_interrupt(frame: Any) -> bool:
    """Whether an interrupt at this line is one that Python lets a program survive.

    A trace sees `with` again where its block ends, before `__exit__` is called, as no
    interrupt can; nor does one come at a `try`, of which no `with` around it would
    know; and within a `finally` the rest of that would not be done.
    """
    if frame.f_lineno in cleaning_up(frame.f_code.co_filename)[0]:
        return False
    while frame is not None and "torchshim" in (file := frame.f_code.co_filename):
        if not file.startswith("<") and frame.f_lineno in cleaning_up(file)[1]:
            return False
        frame = frame.f_back
    return True


def interrupt(
    line: str, scope: dict[str, Any], log: list[Any], rng: random.Random
) -> None:
    """Runs a line that only reads, with Ctrl-C at a random place in the core."""
    left = rng.choice([1, 3, 10, 30, 100, 300, 1000])

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        file = frame.f_code.co_filename
        if "torchshim" not in file or file.startswith("<"):
            return trace
        if event == "line" and (left > 1 or may_interrupt(frame)):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    size = len(log)
    sys.settrace(trace)
    try:
        exec(code_of(line), scope)
    except KeyboardInterrupt:
        pass
    except Exception:
        pass
    finally:
        sys.settrace(None)
        del log[size:]


def look(
    scope: dict[str, Any], torch: Any, rng: random.Random, arrays: list[Any]
) -> str | None:
    """Reads some values, or keeps arrays of them; says what torchshim refuses."""
    named = [*tensors_of(scope, torch).values()]
    for tensor in rng.sample(named, min(len(named), rng.choice([0, 0, 1, 2]))):
        try:
            array = tensor.detach().numpy()
        except NotImplementedError as error:
            return str(error)
        except Exception:
            continue  # an error that the program is told of itself
        if rng.random() < 0.3:
            arrays.append(array)
    return None
