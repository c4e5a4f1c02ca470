"""Setters of defaults that the running recordings must hear of."""

from __future__ import annotations

from typing import Any

from torchshim._core import device, dtypes, record


def set_default_dtype(d: Any, /) -> None:
    """Sets the dtype of tensors made from Python floats, for all threads.

    >>> import torchshim as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor(1.0)
    tensor(1.)
    >>> torch.set_default_dtype(torch.float32)
    """
    dtypes.set_default_dtype(d)
    record.refresh_modes()


def set_default_tensor_type(t: Any, /) -> None:
    """Sets the default dtype by a legacy tensor type; deprecated.

    >>> import torchshim as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.set_default_tensor_type(torch.FloatTensor)
    """
    device.set_default_tensor_type(t)
    record.refresh_modes()
