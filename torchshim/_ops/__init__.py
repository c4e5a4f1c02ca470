"""The operators, one file an area. Importing a file registers its operators."""

from torchshim._ops import (
    arithmetic,
    creation,
    index_dim,
    indexing,
    matmul,
    norm,
    reduction,
    scan,
    scatter,
    shape,
    sorting,
    splits,
    statistics,
    view_memory,
    views,
)

__all__ = [
    "arithmetic",
    "creation",
    "index_dim",
    "indexing",
    "matmul",
    "norm",
    "reduction",
    "scan",
    "scatter",
    "shape",
    "sorting",
    "splits",
    "statistics",
    "view_memory",
    "views",
]
