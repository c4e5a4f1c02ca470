"""`torch.gradient`: central differences of samples of a function.

https://docs.pytorch.org/docs/2.13/generated/torch.gradient.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._functions.pieces import piece
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor


@public
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Estimates of the partial derivatives, one tensor for each dimension.

    `spacing` is the distance of the samples (by default 1): one number, one for each
    dimension, or a tensor of coordinates for each. Raises RuntimeError for fewer than
    `edge_order` + 1 samples.

    >>> import torchshim as torch
    >>> torch.gradient(torch.tensor([1.0, 2.0, 4.0, 8.0]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    shape = input._tmeta.shape
    if input._tmeta.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError(
            "torch.gradient only supports edge_order=1 and edge_order=2."
        )
    dims = _dims(len(shape), dim)
    spaces = _spacing(spacing, len(dims), dim)
    for d in dims:
        if shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least "
                "edge_order+1"
            )
    device = input._tmeta.device
    for space in spaces:
        if isinstance(space, TensorBase) and space._tmeta.device != device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but "
                f"got devices {device} and {space._tmeta.device}!"
            )
    return tuple(
        _along(input, d, space, edge_order)
        for d, space in zip(dims, spaces, strict=True)
    )


def _dims(ndim: int, dim: Any) -> list[int]:
    given = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims: list[int] = []
    for d in given:
        d = wrap_dim(d, ndim)
        if d in dims:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        dims.append(d)
    return dims


def _spacing(spacing: Any, count: int, dim: Any) -> Sequence[Any]:
    if isinstance(spacing, TensorBase):
        raise TypeError(
            "gradient() received an invalid combination of arguments: spacing must be "
            "a number, a sequence of numbers or a sequence of tensors, not Tensor"
        )
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * count
    if len(spacing) != count:
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a "
                f"list of length equal to 'self.dim() = {count}', since dim argument "
                f"was not given, but got a list of length {len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's "
            "spacing and dim arguments to have the same length, but got a spacing "
            f"argument of length {len(spacing)} and a dim argument of length {count}."
        )
    return spacing


def _along(input: Tensor, dim: int, space: Any, edge_order: int) -> Tensor:
    n = input._tmeta.shape[dim]

    def part(start: int, length: int = 1) -> Any:
        return piece(input, dim, start, length)

    middle = max(n - 2, 0)
    if not isinstance(space, TensorBase):
        center = (part(2, middle) - part(0, middle)) / (space * 2)
        if edge_order == 1:
            first = (part(1) - part(0)) / space
            last = (part(n - 1) - part(n - 2)) / space
        else:
            first = (-1.5 * part(0) + 2 * part(1) - 0.5 * part(2)) / space
            last = (1.5 * part(n - 1) - 2 * part(n - 2) + 0.5 * part(n - 3)) / space
        return fns.cat((first, center, last), dim)
    if len(space._tmeta.shape) != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, "
            f"but got an element with {len(space._tmeta.shape)} dimensions!"
        )
    if space._tmeta.shape[0] != n:
        raise RuntimeError(
            f"torch.gradient expected each element of spacing to have {n} coordinates, "
            f"but got {space._tmeta.shape[0]}"
        )
    wide = (-1,) + (1,) * (len(input._tmeta.shape) - dim - 1)
    steps: Any = fns.diff(space)
    before = fns.reshape(piece(steps, 0, 0, middle), wide)
    after = fns.reshape(piece(steps, 0, 1, middle), wide) if middle else before
    center = (
        part(0, middle) * (-after / (before * (before + after)))
        + part(1, middle) * ((after - before) / (before * after))
        + part(2, middle) * (before / (after * (before + after)))
    )
    if edge_order == 1:
        first = (part(1) - part(0)) / steps[0]
        last = (part(n - 1) - part(n - 2)) / steps[n - 2]
    else:
        first = _edge([part(0), part(1), part(2)], steps[0], steps[1])
        last = -_edge(
            [part(n - 1), part(n - 2), part(n - 3)], steps[n - 2], steps[n - 3]
        )
    return fns.cat((first, center, last), dim)


def _edge(samples: list[Any], near: Any, far: Any) -> Any:
    """The derivative at the first of three samples, by the parabola through them."""
    both = near + far
    return (
        samples[0] * (-(both + near) / (near * both))
        + samples[1] * (both / (near * far))
        + samples[2] * (-near / (far * both))
    )
