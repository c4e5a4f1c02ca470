"""Comparing what two programs print."""

from __future__ import annotations

import difflib
import re

#: A number as programs print it.
NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?=j?(?!\w))|\bnan\b|[-+]?\binf\b"
)


def text_close(expected: str, actual: str, rtol: float, atol: float) -> bool:
    """Whether two texts agree but for their numbers, and those within a tolerance.

    Without tolerance they must be equal. With one, whole numbers (no point, no
    exponent) must still be the same, and so must the spaces between words; how many
    spaces there are may differ, since a number's sign and digits move columns.
    """
    if expected == actual:
        return True
    if rtol == atol == 0 or _frame(expected) != _frame(actual):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=True)
    return all(_number_close(left, right, rtol, atol) for left, right in pairs)


def _frame(text: str) -> str:
    """The text with its numbers replaced and runs of spaces made one."""
    return re.sub(r"(?<=\[) +| +(?= )", "", NUMBER.sub("#", text))


def _number_close(left: str, right: str, rtol: float, atol: float) -> bool:
    if left == right:
        return True
    if not ("." in left or "e" in left) or not ("." in right or "e" in right):
        return False
    a, b = float(left), float(right)
    return abs(a - b) <= atol + rtol * abs(a)


def difference(expected: str, actual: str) -> str:
    """A unified diff of two texts."""
    lines = difflib.unified_diff(
        expected.splitlines(),
        actual.splitlines(),
        "PyTorch",
        "torchshim",
        "",
        "",
        2,
        "",
    )
    return "\n".join(lines)
