"""Public functions written in Python over the operators.

Here belongs what cannot be one operator: what reads values (data-dependent shapes),
draws random numbers on the host, or takes arguments that are not a recording's.
Importing a file makes its functions public.
"""

from torchshim._functions import (
    assignment,
    autograd,
    construct,
    convert,
    creation,
    data_dependent,
    elementwise,
    indexing,
    interop,
    nn_activation,
    nn_layers,
    nn_loss,
    nn_pooling,
    pieces,
    products,
    query,
    random,
    ranges,
    scatter,
    shape,
    storage,
)

__all__ = [
    "assignment",
    "autograd",
    "construct",
    "convert",
    "creation",
    "data_dependent",
    "elementwise",
    "indexing",
    "interop",
    "nn_activation",
    "nn_layers",
    "nn_loss",
    "nn_pooling",
    "pieces",
    "products",
    "query",
    "random",
    "ranges",
    "scatter",
    "shape",
    "storage",
]
