"""Random small programs, run under torchshim and under PyTorch.

    python -m compat_suite fuzz --programs 100 --seed 0

A program is a list of lines. It is made while PyTorch runs it, so that most lines fit
the shapes at hand (those that fail must fail alike). torchshim then runs it several
times in one process: observed only at the end, three times over, so that the second
time meets what the first recorded; observed after each line; flushed after random lines
and after every one; some values read after random lines; interrupted while values are
read. What is compared: values, shapes, strides, `requires_grad`, `is_leaf`, the nodes'
names, versions, gradients, which tensors share memory, what was read on the way, and
the errors' types and texts.

A program that differs is reduced to the lines that it takes and printed. Some hundred
programs whose results are recorded are tests (`tests/test_fuzz.py`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.compiling import WAYS, run_by
from tests.fuzz_interrupts import interrupt, look
from tests.fuzz_left_out import (
    asks_of_results,
    bequeaths_gradient,
    flattens_gradient,
    frees_write,
    has_expanded,
    keeps_shape,
    multiplies_a_zero,
    overwrites_unseen,
    shared_gradients,
    takes_gradient_for_view,
    unordered,
    views_of_gradients,
)
from tests.fuzz_programs import Lines, Maker
from tests.fuzz_reduce import reduce
from tests.fuzz_scope import (
    code_of,
    make_scope,
    memory_of,
    reads_what_it_writes,
    tensors_of,
)

# Nodes that are one operator's in torchshim.
SAME_NODES = {"ZeroBackward0": "FillBackward"}
SAME_NODES |= {f"FillBackward{i}": "FillBackward" for i in range(3)}
# Errors of PyTorch's that torchshim does not raise (programs with them are left out).
KNOWN = (
    "to a single memory location. Please clone() the tensor before performing",
    "has been modified inplace. This view is the output",
    # Raised at the next read.
    "index out of range in self",
    # Raised too, but PyTorch has written some of the elements by then.
    "is out of bounds for dimension",
)


def error_of(error: BaseException) -> list[Any]:
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    text = re.sub(r"position \d", "position", text)
    return [type(error).__name__, text]


def facts(tensor: Any, values: bool) -> dict[str, Any]:
    """What is compared of one tensor."""
    node = tensor.grad_fn
    name = None if node is None else type(node).__name__
    found = {
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset(),
        "dtype": str(tensor.dtype),
        "grad": tensor.requires_grad,
        "leaf": tensor.is_leaf,
        "node": SAME_NODES.get(name, name),
        "nr": tensor.output_nr,
        "version": tensor._version,
        "base": tensor._is_view(),
    }
    if values:
        found["value"] = tensor.detach().tolist()
        grad = tensor.grad
        found[".grad"] = None
        if grad is not None:
            found[".grad"] = [grad.detach().tolist(), grad.requires_grad]
    return found


def snapshot(scope: dict[str, Any], torch: Any) -> dict[str, Any]:
    """The state of everything that a program has names for."""
    named = tensors_of(scope, torch)
    found: dict[str, Any] = {n: facts(t, True) for n, t in named.items()}
    for name, value in scope.items():
        if isinstance(value, np.ndarray):
            found[name] = {"value": value.tolist()}
    objects: dict[int, list[str]] = {}
    memory: dict[int, list[str]] = {}
    for name, tensor in named.items():
        objects.setdefault(id(tensor), []).append(name)
        if tensor.grad is not None:
            objects.setdefault(id(tensor.grad), []).append(name + ".grad")
    for name, tensor in named.items():
        if tensor.numel():
            memory.setdefault(memory_of(tensor), []).append(name)
    found["same"] = {"objects": sorted(objects.values())}
    found["memory"] = {"shared": sorted(memory.values())}
    found["gradients"] = {"shared": shared_gradients(named)}
    return found


def near(a: Any, b: Any) -> bool:
    """Whether two observations agree, numbers within a tolerance."""
    if isinstance(a, float) and isinstance(b, float):
        if a != a or b != b:
            return a != a and b != b
        return a == b or abs(a - b) <= 2e-4 * max(1.0, abs(a), abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b, strict=True))
    if a == "AsStridedBackward0" and isinstance(b, str):
        # PyTorch makes the node of a view anew after a write to its memory.
        return b.endswith("Backward0")
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def difference(a: Any, b: Any, where: str = "", skip: Sequence[str] = ()) -> str | None:
    """The first place where two observations differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key in skip:
                continue
            if key not in a or key not in b:
                return f"{where}.{key}: torch {a.get(key)} torchshim {b.get(key)}"
            mine, other = a[key], b[key]
            if key == "stride" and a["shape"] == b["shape"]:
                # Nothing is ever a step of a dimension of size 1 away, nor of nothing.
                empty = 0 in a["shape"]
                mine, other = (
                    [s for s, n in zip(x, a["shape"], strict=True) if n > 1 > empty]
                    for x in (mine, other)
                )
            found = difference(mine, other, f"{where}.{key}", skip)
            if found:
                return found
        return None
    if near(a, b):
        return None
    return f"{where}:\n    torch     {a}\n    torchshim {b}"


# -- running --------------------------------------------------------------------------


class Outcome:
    """What a program showed."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.errors: dict[int, Any] = {}
        self.logged: list[int] = []
        self.snapshots: dict[int, Any] = {}
        # The first line that puts a view onto other memory.
        self.moved: int | None = None
        # Whether a line reads elements of the memory that it has written by then.
        self.entangled = False


def moves_view(line: str, scope: dict[str, Any]) -> bool:
    """Whether a line assigns to `.data` of a view, or of what has views."""
    found = re.match(r"(\w+)\.data = ", line)
    tensor = None if found is None else scope.get(found[1])
    if tensor is None:
        return False
    bases = [getattr(value, "_base", None) for value in scope.values()]
    return tensor._is_view() or any(base is tensor for base in bases)


def run(
    torch: Any,
    lines: Lines,
    observed: set[int],
    flushed: set[int] = frozenset(),  # type: ignore[assignment]
    interrupted: random.Random | None = None,
    looked: random.Random | None = None,
) -> Outcome:
    """Runs a program; observes its state after the lines asked for."""
    outcome, arrays = Outcome(), list[Any]()
    scope = make_scope(torch, outcome.log)
    torch.set_grad_enabled(True)
    asked = torch.__name__ != "torchshim"
    if not asked:
        unstick()
    for at, line in enumerate(lines):
        if outcome.moved is None and moves_view(line, scope):
            outcome.moved = at
        if asked and reads_what_it_writes(line, scope, torch):
            outcome.entangled = True
        try:
            if interrupted is not None and line.startswith("read("):
                interrupt(line, scope, outcome.log, interrupted)
            exec(code_of(line), scope)
        except Exception as error:
            outcome.errors[at] = error_of(error)
        outcome.logged.append(len(outcome.log))
        if looked is not None and (text := look(scope, torch, looked, arrays)):
            outcome.errors[at] = ["NotImplementedError", text]
        if at in flushed:
            try:
                flush()
            except Exception as error:
                outcome.errors[at] = ["flush", *error_of(error)]
        if at in observed:
            try:
                outcome.snapshots[at] = snapshot(scope, torch)
            except Exception as error:
                outcome.snapshots[at] = {"failed": error_of(error)}
    scope["leave"]()
    return outcome


def flush() -> None:
    from torchshim._core.record import local

    local.rec.flush()


def unstick() -> None:
    """Leaves a recording that cannot be run behind: one program must not fail all."""
    from torchshim._core.record import local

    rec = local.rec
    try:
        rec.flush()
    except Exception:
        rec._start_anew()


# Differences that the order of an engine's nodes may make: of two errors that are due,
# the one that comes first, too.
_OF_ORDER = re.compile(r"\.grad:|: read|: error\n +torch +\[.*\n +torchshim \[")
# What PyTorch fails to do with its zeros without memory: give a hook their values, add
# to a `.grad` that is one.
_ZEROS = re.compile("tensor with unallocated storage|ZeroTensors are immutable")


def compare(expected: Outcome, found: Outcome, lines: Lines) -> str | None:
    """The first difference between two runs, but for what no program relies on."""
    text = _compare(expected, found, lines)
    if text and (
        views_of_gradients(expected, lines)
        or flattens_gradient(expected, lines)
        or bequeaths_gradient(expected, lines)
        or asks_of_results(expected, lines)
        or multiplies_a_zero(text, expected, lines)
        or _ZEROS.search(text)
        or (".grad" in text and overwrites_unseen(lines))
        or (_OF_ORDER.search(text) and unordered(expected, lines))
    ):
        return None
    return text


def _compare(expected: Outcome, found: Outcome, lines: Lines) -> str | None:
    """The first difference between two runs, earliest line first."""
    # Whether PyTorch's engine copies a gradient is its own affair.
    grads = any(re.match(r"t\d+ ?[,=].*grad", n) for n in lines)
    skip: tuple[str, ...] = ("gradients",)
    if grads:
        skip = ("version", "base", "memory", "offset", "stride", "gradients")
    if grads and any(has_expanded(s, lines) for s in expected.snapshots.values()):
        return None  # a gradient that is one element in PyTorch's memory
    if any("create_graph" in n for n in lines):
        # Which node of a formula's is the last is not known, nor which of its outputs.
        skip = (*skip, "node", "nr")
    # Nor do programs rely on the version of what stays on memory that was left.
    left = any(".data = " in line for line in lines)
    if left:
        skip = (*skip, "version")
    # What becomes of a view that is put onto other memory is PyTorch's own affair.
    last = len(lines) if expected.moved is None else expected.moved
    for at in range(last):
        a, b = expected.errors.get(at), found.errors.get(at)
        if b and "NotImplementedError" in b:
            return None
        if grads and takes_gradient_for_view(a, b):
            return None
        if left and a and b is None and "by an inplace operation" in a[1]:
            return None  # views of the memory that was left count these writes, too
        if a and "INTERNAL ASSERT FAILED" in a[1]:
            return None  # a bug of PyTorch's
        if a and b is None:
            if keeps_shape(expected, at, lines) or frees_write(expected, at, lines):
                return None
        if (grads or left) and a and b:
            # PyTorch's engine adds to some gradients in place.
            known = re.compile(r"version \d+|a view of ")
            a, b = ([known.sub("", t) for t in e] for e in (a, b))
        if a and b and " of AsStrided," in a[1] + b[1]:
            # PyTorch makes the node of a view anew when somebody looks at it.
            a, b = (
                [re.sub(r"output \d+ of [\w:]+", "output", t) for t in e]
                for e in (a, b)
            )
        if a != b:
            return (
                f"line {at} `{lines[at]}`: error\n    torch     {a}\n    torchshim {b}"
            )
        mine, other = expected.log[: expected.logged[at]], found.log[: found.logged[at]]
        if grads or left:
            # Only versions are read as integers, and names of nodes as texts.
            texts = any("create_graph" in n for n in lines)
            kinds = (int, str) if texts else (int,)
            mine = [v for v in mine if type(v) not in kinds]
            other = [v for v in other if type(v) not in kinds]
        if not near(mine, other):
            return (
                f"line {at} `{lines[at]}`: read\n    torch     {mine[-3:]}"
                f"\n    torchshim {other[-3:]}"
            )
        if at in found.snapshots:
            if "NotImplementedError" in found.snapshots[at].get("failed", ()):
                return None  # refused, too, but at the read
            text = difference(expected.snapshots[at], found.snapshots[at], "", skip)
            if text:
                return f"after line {at} `{lines[at]}`: {text}"
    return None


def modes(lines: Lines, rng: random.Random, thorough: bool) -> list[tuple[str, Any]]:
    """The ways in which torchshim runs a program."""
    last = {len(lines) - 1}
    all_lines = set(range(len(lines)))
    some = {i for i in all_lines if rng.random() < 0.3}
    found: list[tuple[str, Any]] = [
        ("first", (last, set())),
        ("second", (last, set())),
        ("third", (last, set())),
        ("observed", (all_lines, set())),
        ("observed again", (all_lines, set())),
        ("flushed", (last, all_lines)),
        ("flushed again", (last, all_lines)),
        ("flushed sometimes", (last, some)),
        ("observed sometimes", (some | last, set())),
        ("first again", (last, set())),
    ]
    if thorough:
        for at in all_lines:
            found.append((f"flushed at {at}", (last, {at})))
    found.append(("interrupted", (last, set(), random.Random(rng.random()))))
    for _ in range(3):
        found.append(("looked at", (last, set(), None, random.Random(rng.random()))))
    return found


_LEAF = re.compile(r"torch\.tensor\(\[(-?\d+\.\d+(?:, -?\d+\.\d+)*)\]\)\.reshape")


def changed(lines: Lines) -> Lines:
    """The same program, begun with other numbers."""

    def other(found: re.Match[str]) -> str:
        values = [0.125 - float(value) for value in found[1].split(", ")]
        return f"torch.tensor({values}).reshape"

    return [_LEAF.sub(other, line) for line in lines]


def judge(
    torch: Any, shim: Any, lines: Lines, rng: random.Random, thorough: bool = False
) -> tuple[str, str] | None:
    """(mode, text) of the first difference, or None."""
    # What is known by the end is known of other numbers than the last program's.
    other = [("other numbers", ({len(lines) - 1}, set[int]()))]
    return _differing(torch, shim, lines, modes(lines, rng, thorough)) or _differing(
        torch, shim, changed(lines), other
    )


def _differing(
    torch: Any, shim: Any, lines: Lines, ways: list[tuple[str, Any]]
) -> tuple[str, str] | None:
    expected = run(torch, lines, set(range(len(lines))))
    if not sane(expected):
        return None
    for name, how in ways:
        found = run(shim, lines, *how)
        text = compare(expected, found, lines)
        # (Who looks at a view's node in PyTorch makes another tensor of it.)
        if text and compare(run(torch, lines, how[0]), found, lines):
            return name, text
    return None


def sane(expected: Outcome) -> bool:
    """Whether the numbers stay where both sides can be compared."""

    def numbers(value: Any) -> Any:
        if isinstance(value, float):
            yield value
        elif isinstance(value, dict):
            for v in value.values():
                yield from numbers(v)
        elif isinstance(value, (list, tuple)):
            for v in value:
                yield from numbers(v)

    if expected.entangled:
        return False
    texts = [str(e) for e in expected.errors.values()]
    texts += [str(s["failed"]) for s in expected.snapshots.values() if "failed" in s]
    return all(
        x == x and abs(x) < 1e6 for x in numbers([expected.snapshots, expected.log])
    ) and not any(known in text for known in KNOWN for text in texts)


# Recorded programs ------------------------------------------------------------------

RECORDED = Path(__file__).parent / "expected" / "fuzz.json.gz"


def record(seeds: Iterable[int]) -> int:
    """Writes what PyTorch gives for the programs of these seeds; returns how many."""
    import torch

    warnings.simplefilter("ignore")
    found = []
    for seed in seeds:
        made = program_of(torch, seed)
        if made is not None:
            dtype, lines = made
            outcome = run(torch, lines, {len(lines) - 1})
            found.append([seed, dtype, lines, vars(outcome)])
    text = json.dumps(found, separators=(",", ":"))
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(found)


def recorded() -> list[tuple[int, str, Lines, Outcome]]:
    """The recorded programs, and what PyTorch gave."""
    found = []
    for seed, dtype, lines, fields in json.loads(
        gzip.decompress(RECORDED.read_bytes())
    ):
        outcome = Outcome()
        outcome.log, outcome.logged = fields["log"], fields["logged"]
        outcome.moved = fields.get("moved")
        outcome.errors = {int(k): v for k, v in fields["errors"].items()}
        outcome.snapshots = {int(k): v for k, v in fields["snapshots"].items()}
        found.append((seed, dtype, lines, outcome))
    return found


def check(
    shim: Any, dtype: str, lines: Lines, expected: Outcome, flush: bool = True
) -> str | None:
    """The first difference of torchshim's runs from what is recorded."""
    shim.set_default_dtype(getattr(shim, dtype))
    last = {len(lines) - 1}
    for flushed in (set(), set(range(len(lines))))[: 1 + flush]:
        found = run(shim, lines, last, flushed)
        plain = json.loads(json.dumps([found.log, found.snapshots[len(lines) - 1]]))
        found.log, found.snapshots[len(lines) - 1] = plain
        text = compare(expected, found, lines)
        if text:
            return text
    return None


class Difference(NamedTuple):
    """A program that differs, as short as it was made."""

    seed: int
    dtype: str
    mode: str
    text: str
    lines: Lines

    def script(self) -> str:
        """The program as a script, for `python` and `python -m torchshim`."""
        return "\n".join(
            [
                "import torch",
                "from tests.fuzz_scope import make_scope",
                f"torch.set_default_dtype(torch.{self.dtype})",
                "globals().update(make_scope(torch, log := []))",
                *self.lines,
                "print(log)",
            ]
        )


def program_of(torch: Any, seed: int) -> tuple[str, Lines] | None:
    """The default dtype and the lines of a program; None if it cannot be compared."""
    rng = random.Random(seed)
    dtype = "float32" if rng.random() < 0.5 else "float64"
    torch.set_default_dtype(getattr(torch, dtype))
    lines = Maker(torch, rng).make()
    if not sane(run(torch, lines, set(range(len(lines))))):
        return None
    return dtype, lines


def fuzz(
    seeds: Iterable[int], thorough: bool = False, seconds: float = 15.0
) -> Iterator[tuple[int, Difference | None]]:
    """Compares the programs of these seeds; makes those that differ shorter."""
    import torch

    import torchshim

    for seed in seeds:
        made = program_of(torch, seed)
        if made is None:
            yield seed, None
            continue
        dtype, lines = made
        torchshim.set_default_dtype(getattr(torchshim, dtype))
        found = judge(torch, torchshim, lines, random.Random(seed), thorough)
        if found is None:
            yield seed, None
            continue
        small = reduce(
            lines, lambda c: judge(torch, torchshim, c, random.Random(1)), seconds
        )
        mode, text = judge(torch, torchshim, small, random.Random(1)) or found
        yield seed, Difference(seed, dtype, mode, text, small)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What `report` looks at, beside the seeds."""
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--by", choices=WAYS, default="numpy", help="what runs them")
    parser.add_argument("--keep-going", type=int, default=5, help="differences")
    parser.add_argument("--reduce", type=float, default=15.0, help="seconds")


def report(seed: int, count: int, options: argparse.Namespace) -> int:
    """Compares programs and prints what differs; 1 if something does."""
    warnings.simplefilter("ignore")
    run_by(options.by)
    bad = done = 0
    began = time.time()
    seeds = range(seed, seed + count)
    for at, found in fuzz(seeds, options.thorough, options.reduce):
        done = at + 1 - seed
        if found is None:
            continue
        bad += 1
        print(f"\n== seed {at}, {found.mode}: {found.text}", found.script(), sep="\n")
        sys.stdout.flush()
        if bad >= options.keep_going:
            break
    print(f"{done} programs, {bad} bad, {time.time() - began:.0f} s")
    return bool(bad)
