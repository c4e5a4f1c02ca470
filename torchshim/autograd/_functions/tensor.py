"""A view of another size as a custom function."""

from __future__ import annotations

import math
from typing import Any

from torchshim.autograd.function import Function


class Resize(Function):
    """The same elements in another shape; RuntimeError where their number differs."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: tuple[int, ...]) -> Any:
        """The tensor in the new shape."""
        count = math.prod(sizes)
        if tensor.numel() != count:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in "
                f"total), but the given tensor has a size of "
                f"{'x'.join(map(str, tensor.size()))} ({tensor.numel()} elements). "
                "autograd's resize can only change the shape of a given tensor, while "
                "preserving the number of elements. "
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().view(sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, None]:
        """The gradient in the old shape."""
        return grad_output.contiguous().view(ctx.input_sizes), None
