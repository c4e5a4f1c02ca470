"""Tensors from data: `tensor`, `as_tensor`, `from_numpy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._derived import public
from torchshim._tensor import Tensor, from_array


@public
def tensor(
    data: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`."""
    array = np.array(data)
    if dtype is None:
        if array.dtype == np.float64 and not isinstance(data, np.ndarray):
            dtype = dtypes.get_default_dtype()
        else:
            dtype = dtypes.from_array_dtype(array.dtype)
    return from_array(array.astype(dtype.np), requires_grad)
