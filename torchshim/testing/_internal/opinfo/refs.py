"""Entries for operators that PyTorch has in Python, too: none is here."""

from __future__ import annotations

from torchshim.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    OpInfo,
    UnaryUfuncInfo,
)
from torchshim.testing._internal.opinfo.core import (
    ReductionPythonRefInfo as ReductionPythonRefInfo,
)


class PythonRefInfo(OpInfo):
    """An operator written in Python."""


class ElementwiseUnaryPythonRefInfo(UnaryUfuncInfo):
    """An element-wise operator of one operand, written in Python."""


class ElementwiseBinaryPythonRefInfo(BinaryUfuncInfo):
    """An element-wise operator of two operands, written in Python."""
