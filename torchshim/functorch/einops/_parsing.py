"""The patterns of `rearrange`, where PyTorch's tests import their parser from."""

from torchshim.func._parsing import ELLIPSIS as _ellipsis
from torchshim.func._parsing import (
    AnonymousAxis,
    ParsedExpression,
    comma_separate,
    parse_pattern,
    validate_rearrange_expressions,
)

__all__ = [
    "AnonymousAxis",
    "ParsedExpression",
    "_ellipsis",
    "comma_separate",
    "parse_pattern",
    "validate_rearrange_expressions",
]
