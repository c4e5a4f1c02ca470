"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._transform import MODULE, Transform
from torchshim.distributions.utils import (
    lazy_property,
    sum_rightmost,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from torchshim.nn.functional import logsigmoid, pad, softplus


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid function, kept off 0 and 1."""
    finfo = torchshim.finfo(x.dtype)
    return torchshim.sigmoid(x).clamp(min=finfo.tiny, max=1.0 - finfo.eps)


def _at_least(shape: Sequence[int], count: int) -> None:
    if len(shape) < count:
        raise ValueError("Too few dimensions on input")


class ReshapeTransform(Transform):
    """Another shape for the last dimensions.

    ValueError for shapes with different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _reshaped(self, shape: Any, before: Size, after: Size) -> Any:
        _at_least(shape, len(before))
        cut = len(shape) - len(before)
        if shape[cut:] != before:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
        return shape[:cut] + after

    def forward_shape(self, shape: Any) -> Any:
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._reshaped(shape, self.out_shape, self.in_shape)


class CorrCholeskyTransform(Transform):
    """Vectors to the Cholesky factors of correlation matrices.

    Each number becomes, by tanh, a partial correlation: the part that an entry takes of
    what is left of its row's unit length.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = torchshim.tanh(x)
        eps = torchshim.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        n = partial.shape[-1]
        whole = partial + torchshim.eye(n, dtype=partial.dtype, device=partial.device)
        return whole * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - torchshim.cumsum(y * y, dim=-1)
        left = tril_matrix_to_vec(pad(left[..., :-1], [1, 0], value=1), diag=-1)
        t = tril_matrix_to_vec(y, diag=-1) / left.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(
        self, x: Tensor, y: Tensor, intermediates: Any = None
    ) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * left.log().sum(-1) + tanh

    def forward_shape(self, shape: Any) -> Any:
        _at_least(shape, 1)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)  # noqa: RUF005 - of the type that was given

    def inverse_shape(self, shape: Any) -> Any:
        _at_least(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return shape[:-2] + (n * (n - 1) // 2,)  # noqa: RUF005


class SoftmaxTransform(Transform):
    """Vectors to the simplex, by exp and normalizing; not bijective."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Tensor) -> Tensor:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _at_least(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors to the simplex of one more dimension: parts of what is left, in turn."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _offset(self, x: Tensor, count: int) -> Tensor:
        # count, …, 1: zeros go to the middle of the simplex.
        return torchshim.arange(count, 0, -1, dtype=x.dtype, device=x.device)

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._offset(x, x.shape[-1]).log())
        left = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=torchshim.finfo(y.dtype).tiny)
        return first.log() - left.log() + self._offset(y, first.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x, x.shape[-1]).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _at_least(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)  # noqa: RUF005

    def inverse_shape(self, shape: Any) -> Any:
        _at_least(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)  # noqa: RUF005


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torchshim.linalg.cholesky(y))


class _Parts(Transform):
    """Transforms for parts of a tensor along one dimension."""

    transforms: list[Any]

    def _take(self, tseq: Sequence[Any], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        Transform.__init__(self, cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _expected(self) -> tuple[int, str]:
        raise NotImplementedError

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _parts(self, z: Tensor, name: str, what: str = "tensor") -> Sequence[Tensor]:
        if not -z.dim() <= self.dim < z.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for {what} with {z.dim()} dimensions"
            )
        size, (length, named) = z.size(self.dim), self._expected()
        if size != length:
            raise AssertionError(
                f"{name}.size({self.dim}) = {size} must equal {named} {length}"
            )
        return self._split(z)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(x, "x"), strict=True)
        return self._join([t(part) for t, part in parts])

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(y, "y"), strict=True)
        return self._join([t.inv(part) for t, part in parts])

    def _terms(self, x: Tensor, y: Tensor) -> list[Any]:
        xs, ys = self._parts(x, "x", "x"), self._parts(y, "y", "y")
        triples = zip(self.transforms, xs, ys, strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in triples]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Transforms for parts of given lengths, as `torch.cat` puts them together."""

    def __init__(
        self,
        tseq: Sequence[Any],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        self._take(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms "
                f"({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        """The most of the parts' event dimensions."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _expected(self) -> tuple[int, str]:
        return self.length, "length"

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        return z.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return torchshim.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        terms = [
            sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._terms(x, y), strict=True)
        ]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torchshim.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        parts = [t.domain for t in self.transforms]
        return constraints.cat(parts, self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        parts = [t.codomain for t in self.transforms]
        return constraints.cat(parts, self.dim, self.lengths)


class StackTransform(_Parts):
    """Transforms for the slices along a dimension, as `torch.stack` makes them."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        self._take(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _expected(self) -> tuple[int, str]:
        return len(self.transforms), "len(transforms)"

    def _split(self, z: Tensor) -> Sequence[Tensor]:
        return z.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return torchshim.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return torchshim.stack(self._terms(x, y), dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


for _class in (
    ReshapeTransform,
    CorrCholeskyTransform,
    SoftmaxTransform,
    StickBreakingTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    CatTransform,
    StackTransform,
):
    _class.__module__ = MODULE
