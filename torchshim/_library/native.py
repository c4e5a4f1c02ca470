"""The schemas of PyTorch's own operators, read when they are first asked for."""

from __future__ import annotations

import functools
from collections import defaultdict
from pathlib import Path

from torchshim._library.schema import FunctionSchema, parse_schema

SCHEMAS = Path(__file__).parents[1] / "_schemas.txt"


@functools.cache
def _lines() -> dict[str, list[str]]:
    """The schemas as text, by the operators' names."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in SCHEMAS.read_text().splitlines():
        if not line.startswith("#"):
            name = line.partition("(")[0].partition(".")[0]
            found[name].append(line)
    return dict(found)


@functools.cache
def schemas_of(name: str) -> tuple[FunctionSchema, ...]:
    """The forms of an operator; none for one that PyTorch does not have.

    >>> schemas_of("relu_")
    (aten::relu_(Tensor(a!) self) -> Tensor(a!),)
    """
    return tuple(parse_schema(f"aten::{line}") for line in _lines().get(name, ()))


def all_schemas() -> list[FunctionSchema]:
    """The forms of all operators."""
    return [schema for name in _lines() for schema in schemas_of(name)]
