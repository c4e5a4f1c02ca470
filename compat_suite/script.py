"""Scripts written for PyTorch, and whether torchshim prints what PyTorch printed.

`cases/` has short scripts, each about a few functions; `scripts/` has programs as
people publish them: models, training loops, results. What PyTorch 2.13.0 prints for
either stands in `expected/`. The whole output must be the same, character for
character. A script whose numbers cannot be (many steps of float32 sums in another
order) says so in its first line, with the reason, and how many seconds of one
processor core it takes under torchshim, most of them spent compiling:

    # compat: rtol=1e-4 atol=1e-5 seconds=4 (twenty steps of training)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compat_suite.text import difference, text_close

PLACE = Path(__file__).resolve().parent
ROOT = PLACE.parent
FOLDERS = ("cases", "scripts")
TORCH_VERSION = "2.13.0"
TIME_LIMIT = 300  # seconds

_HEADER = re.compile(
    r"# compat:(?P<values>(?: +(?:rtol|atol|seconds)=[-+.\de]+)+) +\(\S.*\)$"
)


@dataclass(frozen=True)
class Script:
    """One script of the suite."""

    path: Path

    @property
    def name(self) -> str:
        """The name that `--match` is compared with."""
        return self.path.stem

    @property
    def expected_path(self) -> Path:
        """Where PyTorch's output stands."""
        return PLACE / "expected" / f"{self.name}.txt"

    @property
    def header(self) -> dict[str, float]:
        """What the script says of itself in its first line."""
        first = self.path.read_text().partition("\n")[0]
        if not first.startswith("# compat:"):
            return {}
        header = _HEADER.match(first)
        if header is None:
            raise ValueError(
                f"{self.path.name}: expected `# compat: rtol=... atol=... (reason)`"
            )
        parts = (part.split("=") for part in header["values"].split())
        return {name: float(value) for name, value in parts}

    @property
    def tolerance(self) -> tuple[float, float]:
        """The relative and the absolute tolerance that the script asks for."""
        header = self.header
        return header.get("rtol", 0.0), header.get("atol", 0.0)

    @property
    def seconds(self) -> float:
        """About how long the script takes under torchshim on one core."""
        return self.header.get("seconds", 1.0)

    def run(self, *, shim: bool) -> str:
        """The script's standard output; raises `Failure` if it does not end well."""
        command = [sys.executable, *(["-m", "torchshim"] if shim else [])]
        try:
            done = subprocess.run(
                [*command, str(self.path)],
                capture_output=True,
                text=True,
                timeout=TIME_LIMIT,
                env=environment(),
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {TIME_LIMIT} s") from None
        if done.returncode:
            expected = self.expected_path
            shown = ""
            if shim and expected.exists():
                shown = difference(expected.read_text(), done.stdout)
            raise Failure(f"exit status {done.returncode}\n{shown}\n{done.stderr}")
        return done.stdout

    def compare(
        self, expected: str, actual: str, rtol: float = 0.0, atol: float = 0.0
    ) -> None:
        """Raise `Failure` if the outputs differ beyond the larger of the tolerances."""
        own = self.tolerance
        if not text_close(expected, actual, max(rtol, own[0]), max(atol, own[1])):
            raise Failure(difference(expected, actual))

    def check(
        self, *, live: bool = False, rtol: float = 0.0, atol: float = 0.0
    ) -> None:
        """Compare torchshim's output with PyTorch's, or raise `Failure`."""
        if live:
            expected = self.run(shim=False)
        elif self.expected_path.exists():
            expected = self.expected_path.read_text()
        else:
            raise Failure(
                "no recorded output; record it with `python -m compat_suite scripts "
                f"--record` under an interpreter that has torch {TORCH_VERSION}"
            )
        self.compare(expected, self.run(shim=True), rtol, atol)


def environment() -> dict[str, str]:
    """That of the processes of scripts."""
    python_path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        "PYTHONHASHSEED": "0",
    }


class Failure(AssertionError):
    """The script did not end well, or printed something else."""


def scripts(match: str = "", seconds: float = float("inf")) -> list[Script]:
    """The scripts whose names match a regular expression and that take no longer."""
    paths = (path for folder in FOLDERS for path in (PLACE / folder).glob("*.py"))
    found = map(Script, sorted(paths))
    return [s for s in found if re.search(match, s.name) and s.seconds <= seconds]


def has_torch() -> bool:
    """Whether this interpreter has the PyTorch that is compared with."""
    command = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PLACE)
    return done.stdout.strip().split("+")[0] == TORCH_VERSION
