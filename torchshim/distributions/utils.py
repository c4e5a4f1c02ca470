"""Helpers of the distributions, as `torch.distributions.utils`.

https://docs.pytorch.org/docs/2.13/distributions.html
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.types import Number as Number

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060
NUMBERS = (int, float)


def is_number(*values: Any) -> bool:
    """Whether all are Python numbers, so that a distribution has no batch shape."""
    return all(isinstance(value, NUMBERS) for value in values)


def _like_tensor(value: Any) -> bool:
    """A tensor, or what overrides functions as one does."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers become tensors of the first tensor's dtype.

    ValueError for what is neither a number nor a tensor, or like one.

    >>> import torchshim as torch
    >>> broadcast_all(torch.zeros(2), 1)[1]
    tensor([1., 1.])
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        for value in values:
            if not (_like_tensor(value) or isinstance(value, NUMBERS)):
                raise ValueError(
                    "Input arguments must all be instances of Number, torch.Tensor or "
                    "objects implementing __torch_function__."
                )
        options: dict[str, Any] = {"dtype": torchshim.get_default_dtype()}
        if tensors:
            options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
        tensors = [
            value if _like_tensor(value) else torchshim.tensor(value, **options)
            for value in values
        ]
    return tuple(torchshim.broadcast_tensors(*tensors))


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """New normal numbers with the dtype and device of a tensor."""
    return torchshim.empty(shape, dtype=like.dtype, device=like.device).normal_()


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """As `standard_normal`; PyTorch's name, which subclasses of `Normal` import."""
    return torchshim.empty(shape, dtype=dtype, device=device).normal_()


def standard_uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    """New numbers in [0, 1) with the dtype and device of a tensor."""
    return torchshim.rand(shape, dtype=like.dtype, device=like.device)


def constant_like(shape: Sequence[int], value: float, like: Tensor) -> Tensor:
    """One number in a shape, with the dtype and device of a tensor."""
    return torchshim.full(shape, value, dtype=like.dtype, device=like.device)


def sum_rightmost(value: Any, dims: int) -> Any:
    """The sum over the last `dims` dimensions."""
    if dims == 0:
        return value
    return value.reshape((*value.shape[:-dims], -1)).sum(-1)


_sum_rightmost = sum_rightmost  # PyTorch's name, which other distributions import


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds, or from unnormalized log-probabilities."""
    if is_binary:
        return torchshim.sigmoid(logits)
    return torchshim.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved off 0 and 1 by the dtype's smallest relative step.

    >>> import torchshim as torch
    >>> clamp_probs(torch.tensor([0.0, 0.5, 1.0]))
    tensor([1.1921e-07, 5.0000e-01, 1.0000e+00])
    """
    eps = torchshim.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds, or log-probabilities, of probabilities that are clamped first."""
    inner = clamp_probs(probs)
    logits = inner.log()
    return logits - torchshim.log1p(-inner) if is_binary else logits


class lazy_property:
    """A property computed at the first use, with gradients, and then kept.

    >>> class Circle:
    ...     @lazy_property
    ...     def area(self):
    ...         return 3
    >>> circle = Circle()
    >>> circle.area, circle.__dict__
    (3, {'area': 3})
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _LazyPropertyOfClass(self.wrapped)
        with torchshim.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyPropertyOfClass(lazy_property, property):
    """What the class shows: a property too, for tools that list properties."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _lower_places(n: int, diagonal: int) -> list[int]:
    """The flat places of the entries on or below a diagonal, row by row."""
    return [
        i * n + j for i in range(n) for j in range(min(n, max(0, i + diagonal + 1)))
    ]


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on or below a diagonal, row by row, in the last dimension.

    ValueError for a diagonal that the matrix does not have.

    >>> import torchshim as torch
    >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = torchshim.tensor(
        _lower_places(n, diag), dtype=torchshim.int64, device=mat.device
    )
    return mat.reshape((*mat.shape[:-2], n * n))[..., places]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, zeros above the diagonal.

    ValueError for a length that no square matrix gives.

    >>> import torchshim as torch
    >>> vec_to_tril_matrix(torch.tensor([1.0, 3.0, 4.0]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    count = vec.shape[-1]
    shift = 1 + 2 * diag
    root = math.sqrt(shift**2 + 8 * count + 4 * abs(diag) * (diag + 1))
    side = (root - shift) / 2
    if round(side) - side > torchshim.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(side)
    held = len(_lower_places(n, diag))
    if held != count:
        batch = list(vec.shape[:-1])
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(vec.shape)} cannot be "
            f"broadcast to indexing result of shape {[*batch, held]}"
        )
    places = torchshim.tensor(
        _lower_places(n, diag), dtype=torchshim.int64, device=vec.device
    )
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    flat = flat.index_copy(-1, places, vec)
    return flat.reshape((*vec.shape[:-1], n, n))


def as_size(shape: Any) -> Size:
    """A shape as `torch.Size`."""
    return shape if isinstance(shape, Size) else Size(shape)
