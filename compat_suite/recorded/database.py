"""The entries of PyTorch's operator database that were recorded."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from compat_suite.operators.results import left_out, namespace_of
from compat_suite.recorded.packing import Pack

SAMPLES = Path(__file__).with_name("samples.npz")


@functools.cache
def read(path: Path = SAMPLES) -> tuple[Pack, Any]:
    """The tensors and what is told of entries."""
    return Pack.read(path)


def torch_version() -> str:
    """The version of PyTorch that was recorded."""
    return read()[1]["torch"]


def name_of(entry: dict[str, Any]) -> str:
    """An entry's name: the operator's, and the variant's after a point."""
    return entry["name"]


def entries(match: str = "") -> list[dict[str, Any]]:
    """The entries whose names match a regular expression."""
    return [e for e in read()[1]["entries"] if re.search(match, name_of(e))]


@functools.cache
def by_name() -> dict[str, dict[str, Any]]:
    """All entries."""
    return {name_of(e): e for e in entries()}


def dtypes(entry: dict[str, Any]) -> list[str]:
    """The dtypes that were recorded."""
    return list(dict.fromkeys(c["dtype"] for c in entry["cases"] if c["dtype"]))


__all__ = ["by_name", "dtypes", "entries", "left_out", "name_of", "namespace_of"]
