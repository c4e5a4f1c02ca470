"""The operators, one file an area. Importing a file registers its operators."""

from torchshim._ops import (
    arithmetic,
    creation,
    matmul,
    norm,
    reduction,
    scan,
    sorting,
    statistics,
    views,
)

__all__ = [
    "arithmetic",
    "creation",
    "matmul",
    "norm",
    "reduction",
    "scan",
    "sorting",
    "statistics",
    "views",
]
