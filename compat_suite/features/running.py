"""Runs the tests of the features: `python -m compat_suite features`."""

from __future__ import annotations

import fnmatch
import gzip
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torchshim
from compat_suite.script import ROOT, TORCH_VERSION
from tests import oracle, outcome

DECLARED = Path(__file__).with_name("autograd.toml")
#: The last run that was kept in the repository.
RECORDED = Path(__file__).with_name("recorded.json.gz")
#: Test modules whose cases draw random numbers.
SAMPLED = (
    "functions.test_random",
    "distributions.test_samplers",
    "nn.test_init",
    "nn.test_sampling",
    "utils.test_data",
)
#: Where the random functions are written, and which of theirs draw no numbers.
_HOMES = re.compile(r"torchshim/(_functions/random\w*|nn/init)\.py$")
_OTHERS = re.compile(r"seed|rng_state|calculate_gain|constant|ones_|zeros_|eye|dirac")


@dataclass(frozen=True)
class Feature:
    """One feature, its tests, and what of it is not supported."""

    name: str
    tests: list[str]
    lacking: list[str] = field(default_factory=list)


@dataclass
class Sampler:
    """A random function, and how its numbers agree with PyTorch's."""

    name: str
    cases: int = 0
    #: Whether all of the cases give PyTorch's numbers bit for bit.
    exact: bool = True


@dataclass
class Run:
    """What came of the tests, by module and name, and of the samplers."""

    torch: str
    tests: dict[str, dict[str, str]]
    samplers: list[Sampler]

    def write(self, path: Path) -> None:
        """Keeps the run; the same run gives the same bytes."""
        text = json.dumps(asdict(self), separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def read(cls, path: Path) -> Run:
        """A run that was kept."""
        data = json.loads(gzip.decompress(path.read_bytes()))
        samplers = [Sampler(**s) for s in data["samplers"]]
        return cls(data["torch"], data["tests"], samplers)

    def of(self, feature: Feature) -> dict[str, str]:
        """The outcomes of a feature's tests."""
        found: dict[str, str] = {}
        for selector in feature.tests:
            module, pattern = parts(selector)
            for name, result in self.tests.get(module, {}).items():
                if fnmatch.fnmatchcase(name.partition("[")[0], pattern):
                    found[f"{module}::{name}"] = result
        return found


def features() -> list[Feature]:
    """What is declared."""
    return [Feature(**f) for f in tomllib.loads(DECLARED.read_text())["feature"]]


def parts(selector: str) -> tuple[str, str]:
    """A module of tests and a pattern for its functions."""
    module, _, pattern = selector.partition("::")
    return module, pattern or "*"


def functions(module: str) -> set[str]:
    """The names of a module's cases and tests."""
    made = importlib.import_module(f"tests.{module}")
    cases = {case.name.partition("[")[0] for case in oracle.cases_of(made)}
    return cases | {n for n in vars(made) if n.startswith("test_")}


def run() -> Run:
    """Runs the tests of all features, and the cases of the samplers."""
    modules = {parts(s)[0] for f in features() for s in f.tests}
    return Run(TORCH_VERSION, _outcomes(sorted(modules)), samplers())


def _outcomes(modules: list[str]) -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        paths = [f"tests/{m.replace('.', '/')}.py" for m in modules]
        options = ["-p", "no:cacheprovider", "-q", "--oracle=recorded"]
        command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}"]
        python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, python_path))}
        subprocess.run(
            [*command, *paths],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=sys.stderr,
            check=False,
        )
        found: dict[str, dict[str, str]] = {}
        for test in ElementTree.parse(report).iter("testcase"):
            module = (test.get("classname") or "").removeprefix("tests.")
            kinds = {child.tag for child in test}
            wrong = kinds & {"failure", "error"}
            state = "failed" if wrong else "skipped" if "skipped" in kinds else "passed"
            found.setdefault(module, {})[test.get("name") or ""] = state
    return found


# Samplers ---------------------------------------------------------------------------


def sampler_names() -> list[str]:
    """The public functions and methods that draw random numbers."""
    found: list[str] = []
    for prefix, owner in (
        ("torch.", torchshim),
        ("Tensor.", torchshim.Tensor),
        ("nn.init.", torchshim.nn.init),
    ):
        for name, value in vars(owner).items():
            code = getattr(inspect.unwrap(value), "__code__", None)
            if code is None or not _HOMES.search(code.co_filename):
                continue
            # `nn.init` has helpers, and old names without the underscore.
            helper = owner is torchshim.nn.init and not name.endswith("_")
            if not (helper or name.startswith("__") or _OTHERS.search(name)):
                found.append(prefix + name)
    return sorted(found)


def samplers() -> list[Sampler]:
    """Each with its cases, compared with PyTorch's results bit for bit.

    Where there are cases that ask for exact results, those alone: others compute.
    """
    same: dict[str, dict[bool, list[bool]]] = {n: {} for n in sampler_names()}
    for case, expected, text in _drawing():
        chosen = [name for name in same if _mentions(text, name)]
        if not chosen:
            continue
        actual = json.loads(json.dumps(case.observe(torchshim).record))
        options = replace(case.options, exact=True, warnings=False, message=False)
        agrees = not outcome.compare(expected, actual, options)
        for name in chosen:
            same[name].setdefault(case.options.exact, []).append(agrees)
    made = []
    for name, found in same.items():
        cases = found.get(True) or found.get(False) or []
        made.append(Sampler(name, len(cases), all(cases)))
    return made


def _drawing() -> Iterator[tuple[Any, Any, str]]:
    for name in SAMPLED:
        module = importlib.import_module(f"tests.{name}")
        records = oracle.expected_records(f"tests.{name}")
        for value in vars(module).values():
            if isinstance(value, oracle.Family) and value.__module__ == module.__name__:
                source = inspect.getsource(value.function).partition("def ")[2]
                for case in value.cases:
                    if case.name in records:
                        # The line that a case of several is about stands in its name.
                        line = case.name.partition("[")[2]
                        yield case, records[case.name], line or source


def _mentions(text: str, name: str) -> bool:
    owner, _, last = name.rpartition(".")
    before = {"torch": r"torch\.", "Tensor": r"(\)\.|\w\.|^)", "nn.init": r"init\."}
    return re.search(before[owner] + re.escape(last) + r"\b", text) is not None


# Shown ------------------------------------------------------------------------------


def table(run: Run) -> str:
    """The features with their tests, and the samplers."""
    lines = []
    for feature in features():
        found = run.of(feature)
        good = sum(state == "passed" for state in found.values())
        lines.append(f"{good}/{len(found)}  {feature.name}")
        wrong = [n for n, state in found.items() if state == "failed"]
        lines += [f"  FAILED {name}" for name in wrong]
    lines += [
        f"{'bit for bit' if s.exact else 'within tolerance'}: {s.name} ({s.cases})"
        for s in run.samplers
    ]
    return "\n".join(lines)
