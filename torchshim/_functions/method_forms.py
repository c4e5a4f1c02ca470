"""Methods of tensors that are functions of `torch` as well."""

from __future__ import annotations

from typing import Any

from torchshim._derived import public
from torchshim._functions import resizing, tensor_hooks
from torchshim._functions._arguments import tensor_argument
from torchshim._functions._family import described
from torchshim._tensor import Tensor

assert resizing and tensor_hooks  # whose methods these are


def _function(name: str) -> None:
    method = getattr(Tensor, name)

    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        """The tensor is the first argument, `input`.

        >>> import torchshim as torch
        >>> torch.get_device(torch.ones(1, device="cpu"))
        -1
        >>> torch.resize_as_(torch.arange(4), torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
        """
        return method(tensor_argument(name, "input", 1, input), *args, **kwargs)

    described(function, name, f"`Tensor.{name}` as a function.")
    public(function)


for _name in (
    "detach_",
    "get_device",
    "is_inference",
    "resize_as_",
):
    _function(_name)


@public(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> import torchshim as torch
    >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
    True
    """
    pair = ("input", input), ("other", other)
    a, b = (
        tensor_argument("is_same_size", name, i, t)
        for i, (name, t) in enumerate(pair, 1)
    )
    return a.shape == b.shape


@public(method=True)
def is_distributed(input: Tensor) -> bool:
    """Always False: a tensor is on one device.

    >>> import torchshim as torch
    >>> torch.is_distributed(torch.ones(2))
    False
    """
    tensor_argument("is_distributed", "input", 1, input)
    return False
