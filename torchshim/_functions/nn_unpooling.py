"""The inverses of max pooling: `max_unpool1d` and its like of `nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.determinism import determinism
from torchshim._derived import fns
from torchshim._functions._family import described
from torchshim._functions.nn_pooling import Sizes
from torchshim._tensor import Tensor


def unpooled_size(
    n: int, output_size: Any, default: Sequence[int], steps: Sequence[int]
) -> list[int]:
    """The size that is asked for, if pooling it may give the input's."""
    shown = output_size[2:] if len(output_size) == n + 2 else output_size
    size = list(shown)
    if len(size) != n:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - steps[d], default[d] + steps[d]
        if not low < size[d] < high:
            raise ValueError(
                f'invalid output_size "{shown}" (dim {d} must be between '
                f"{low} and {high})"
            )
    return size


def _check_unpooling(
    n: int,
    input: Tensor,
    indices: Tensor,
    size: Sequence[int],
    steps: Sequence[int],
    around: Sequence[int],
) -> None:
    determinism.alert(f"max_unpooling{max(n, 2)}d_forward_out")
    if indices.dtype.name != "int64":
        but = "" if n == 3 else f" but got: {indices.dtype.scalar_name}"
        raise RuntimeError(f"elements in indices should be type int64{but}")
    read = {"output_size": size}
    which = "two elements (height, width)"
    if n == 3:
        read |= {"stride": steps, "padding": around}
        which = "three elements (depth, height, width)"
    for given, values in read.items():
        if len(values) != n:
            but = "but got" if given == "output_size" else "but got:"
            raise RuntimeError(
                f"There should be exactly {which} in {given}, {but} {len(values)} "
                "elements."
            )
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, "
            f"but got a tensor with {input.dim()} dimensions."
        )
    if indices.shape != input.shape:
        column = [1] * (n == 1)
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({[*input.shape, *column]}) but got indices tensor with shape: "
            f"{[*indices.shape, *column]}"
        )


def _unpool(n: int) -> Any:
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Any = None,
    ) -> Tensor:
        """`indices` are what pooling with `return_indices=True` gives.

        `output_size` chooses among the sizes that are pooled to the input's; ValueError
        for one that is not.

        >>> import torchshim as torch
        >>> x = torch.tensor([[1.0, 5.0, 2.0, 3.0]])
        >>> largest, at = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
        >>> torch.nn.functional.max_unpool1d(largest, at, 2)
        tensor([[0., 5., 0., 3.]])
        >>> torch.nn.functional.max_unpool1d(largest, at, 2, output_size=[5])
        tensor([[0., 5., 0., 3., 0.]])
        """

        def each(value: Any) -> list[int]:
            single = isinstance(value, (int, np.integer))
            return [int(value)] * n if single else list(value)

        kernel = each(kernel_size)
        steps = kernel if stride is None else each(stride)
        around = each(padding)
        if min(len(steps), len(around)) < len(kernel):
            raise IndexError("tuple index out of range")
        default = [
            (s - 1) * t + k - 2 * p
            for s, t, k, p in zip(input.shape[-n:], steps, kernel, around, strict=False)
        ]
        size = default
        if output_size is not None:
            size = unpooled_size(n, output_size, default, steps)
        _check_unpooling(n, input, indices, size, steps, around)
        return fns.max_unpool(input, indices, tuple(size))

    name = f"max_unpool{n}d"
    line = f"The maxima of `max_pool{n}d` where they stood, zeros elsewhere."
    described(max_unpool, name, line, f"torch.nn.functional.{name}")
    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)
