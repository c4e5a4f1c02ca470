"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn.modules._base import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """The elements of all parameters, one after the other. Follows ``torch.nn.utils``.

    TypeError where they are on different devices.

    >>> import torchshim as torch
    >>> parameters_to_vector([torch.ones(2), torch.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    parameters = list(parameters)
    _check_devices(parameters)
    return torchshim.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Makes the parameters views of one vector's pieces. Follows ``torch.nn.utils``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.zeros(1, 2))
    >>> vector_to_parameters(torch.tensor([1.0, 2.0]), [p])
    >>> p.tolist()
    [[1.0, 2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    whole: Any = vec
    for param in parameters:
        end = start + param.numel()
        param.data = whole[start:end].view_as(param).data
        start = end


def _check_devices(parameters: list[Any]) -> None:
    if len({param.device for param in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not "
            "supported."
        )
