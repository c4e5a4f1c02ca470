"""What makes masked tensors."""

from __future__ import annotations

from typing import Any

from torchshim.masked.maskedtensor.core import MaskedTensor, checked

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> Any:
    """A masked tensor that is a leaf, as `torch.tensor` gives one.

    https://docs.pytorch.org/docs/2.13/masked.html

    >>> import torchshim as torch
    >>> torch.masked.masked_tensor(torch.arange(3), torch.tensor([True, False, True]))
    MaskedTensor(
      [0,       --, 2]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> Any:
    """A masked tensor of data with their history: gradients flow to `data`.

    https://docs.pytorch.org/docs/2.13/masked.html

    >>> import torchshim as torch
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> chosen = torch.tensor([True, False])
    >>> torch.masked.as_masked_tensor(x * x, chosen).sum().backward()
    >>> x.grad
    tensor([6., 0.])
    """
    made = MaskedTensor(data, mask)
    return checked(data.clone(), made._mask) if data.requires_grad else made
