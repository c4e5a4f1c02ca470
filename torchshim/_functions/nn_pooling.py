"""Pooling of `nn.functional`."""

from __future__ import annotations

import math
from typing import Any

from torchshim._derived import fns, public
from torchshim._functions._arguments import wrong
from torchshim._functions._family import described
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

Sizes = Any  # an integer, or one for each dimension


def _static(value: Any) -> Any:
    """Sizes as a recording holds them."""
    return tuple(value) if isinstance(value, list) else value


def _max_pool(n: int) -> Any:
    plain, both = (
        getattr(fns, f"max_pool{n}d"),
        getattr(fns, f"max_pool{n}d_with_indices"),
    )

    def max_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """`input` is (batch, channels, *sizes), or without the batch.

        The windows are `stride` apart, by default their own size. `padding` counts as
        -inf, and is half a window at most, else RuntimeError. With `ceil_mode` a last
        window may reach beyond the end.

        >>> import torchshim as torch
        >>> x = torch.tensor([[1.0, 5.0, 2.0, 3.0, 4.0]])
        >>> torch.nn.functional.max_pool1d(x, 2)
        tensor([[5., 3.]])
        >>> torch.nn.functional.max_pool1d(x, 2, ceil_mode=True, return_indices=True)
        (tensor([[5., 3., 4.]]), tensor([[1, 3, 4]]))
        """
        if return_indices:
            return with_indices(
                input, kernel_size, stride, padding, dilation, ceil_mode
            )
        try:
            if isinstance(kernel_size, bool):
                raise TypeError("a size is wanted")
            return plain(input, kernel_size, stride, padding, dilation, ceil_mode)
        except (TypeError, RuntimeError):
            given = (input, kernel_size, stride or (), padding, dilation, ceil_mode)
            refuse("torch", name, given, {})
            raise

    def with_indices(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """They are int64: positions in a channel, as if it had one dimension.

        >>> import torchshim as torch
        >>> x = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]])
        >>> torch.nn.functional.max_pool2d_with_indices(x, 2)
        (tensor([[[4.]]]), tensor([[[2]]]))
        """
        try:
            if isinstance(kernel_size, bool):
                raise TypeError("a size is wanted")
            return both(input, kernel_size, stride, padding, dilation, ceil_mode)
        except (TypeError, RuntimeError):
            given = (input, kernel_size, stride or (), padding, dilation, ceil_mode)
            refuse("torch" if n == 1 else "nn", f"{name}_with_indices", given, {})
            raise

    def only_values(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        """There is no `return_indices`.

        >>> import torchshim as torch
        >>> torch.max_pool1d(torch.tensor([[1.0, 5.0, 2.0, 3.0]]), kernel_size=2)
        tensor([[5., 3.]])
        """
        return plain(input, kernel_size, stride, padding, dilation, ceil_mode)

    name = f"max_pool{n}d"
    page = f"torch.nn.functional.{name}"
    line = f"The largest element of each window in {n} dimensions."
    described(max_pool, name, line, page)
    line = f"`{name}`, and where they stand."
    described(with_indices, f"{name}_with_indices", line, page)
    described(only_values, name, f"As `nn.functional.{name}`, the values alone.")
    public(only_values)
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)
public(max_pool1d_with_indices)


def _sizes(pool: str, input: Tensor, output_size: Sizes) -> Any:
    """The sizes asked for; one for each dimension needs a batch or channels before."""
    if isinstance(output_size, bool):
        raise TypeError(wrong(pool, "output_size", 2, "tuple of ints", output_size))
    if isinstance(output_size, int):
        return output_size
    if len(input._tmeta.shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = tuple(output_size)
    for i, size in enumerate(sizes):
        no_int = isinstance(size, bool) and not i
        if no_int or not (size is None or hasattr(size, "__index__")):
            raise TypeError(
                f"{pool}(): argument 'output_size' (position 2) must be tuple of ints, "
                f"but found element of type {type(size).__name__} at pos {i}"
            )
    return sizes


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Means of as many windows as asked for in each dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.adaptive_avg_pool2d.html

    >>> import torchshim as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 2, 5, 7), 1).shape
    torch.Size([1, 2, 1, 1])
    """
    return fns.adaptive_avg_pool2d(
        input, _sizes("adaptive_avg_pool2d", input, output_size)
    )


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Means of as many windows as asked for in each dimension.

    `input` is (batch, channels, depth, height, width), or without the batch; None in
    `output_size` keeps the size of that dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.adaptive_avg_pool3d.html

    >>> import torchshim as torch
    >>> x = torch.ones(2, 4, 6, 8)
    >>> torch.nn.functional.adaptive_avg_pool3d(x, (1, None, 3)).shape
    torch.Size([2, 1, 6, 3])
    """
    return fns.adaptive_avg_pool3d(
        input, _sizes("adaptive_avg_pool3d", input, output_size)
    )


def _adaptive_max(n: int) -> Any:
    name = f"adaptive_max_pool{n}d"
    op = getattr(fns, name)

    def pool(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
        """`input` is (batch, channels, *sizes), or without the batch.

        None in `output_size` keeps the size of that dimension. Windows overlap where
        the sizes are not multiples.

        >>> import torchshim as torch
        >>> x = torch.tensor([[1.0, 5.0, 2.0]])
        >>> torch.nn.functional.adaptive_max_pool1d(x, 2)
        tensor([[5., 5.]])
        """
        found = with_indices(input, output_size)
        return found if return_indices else found[0]

    def with_indices(
        input: Tensor, output_size: Sizes, return_indices: bool = False
    ) -> Any:
        """They are int64: positions in a channel, as if it had one dimension.

        >>> import torchshim as torch
        >>> x = torch.tensor([[1.0, 5.0, 2.0]])
        >>> torch.nn.functional.adaptive_max_pool1d_with_indices(x, 1)
        (tensor([[5.]]), tensor([[1]]))
        """
        if n > 1:
            return op(input, _sizes(name, input, output_size))
        try:
            if output_size == (None,) or isinstance(output_size, bool):
                raise TypeError("a number of windows is wanted")
            return op(input, _static(output_size))
        except (TypeError, RuntimeError):
            refuse("torch", name, (input, output_size), {})
            raise

    page = f"torch.nn.functional.{name}"
    line = "The largest elements of as many windows as asked for."
    described(pool, name, line, page)
    line = f"`{name}`, and where they stand."
    described(with_indices, f"{name}_with_indices", line, page)
    return pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3)
public(adaptive_max_pool1d_with_indices, name="adaptive_max_pool1d")


def _lp_pool(n: int) -> Any:
    average = getattr(fns, f"avg_pool{n}d")
    largest = (max_pool1d, max_pool2d, max_pool3d)[n - 1]

    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """`(sum of x**norm_type) ** (1 / norm_type)`, without absolute values.

        So a sum below 0 gives NaN. With `norm_type=inf` it is the largest absolute
        value.

        >>> import torchshim as torch
        >>> x = torch.tensor([[[3.0, 4.0, 0.0, -1.0]]])
        >>> torch.nn.functional.lp_pool1d(x, norm_type=2, kernel_size=2)
        tensor([[[5., 1.]]])
        >>> torch.nn.functional.lp_pool1d(x, norm_type=3, kernel_size=2)
        tensor([[[4.4979,    nan]]])
        """
        if isinstance(norm_type, (int, float)) and math.isinf(norm_type):
            if norm_type > 0:
                return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
            return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        if n == 1:
            count = kernel_size
        else:
            sizes = (kernel_size,) * n if isinstance(kernel_size, int) else kernel_size
            count = math.prod(sizes)
        mean = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (mean.sign() * fns.relu(mean.abs())).mul(count).pow(1.0 / norm_type)

    line = f"The norm of each window in {n} dimensions."
    described(lp_pool, f"lp_pool{n}d", line, f"torch.nn.functional.lp_pool{n}d")
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)
