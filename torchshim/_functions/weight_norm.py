"""What weight normalization is made of."""

from __future__ import annotations

from typing import Any

from torchshim._derived import fns, public
from torchshim._tensor import Tensor


@public
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, which are kept with length 1.

    Over all of them for `dim` -1. Follows ``torch.norm_except_dim``.

    >>> import torchshim as torch
    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[5.],
            [2.]])
    """
    x: Any = v
    if dim == -1:
        return fns.vector_norm(x, pow, None, False)
    count = x.dim()
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, "
            f"{count - 1}], but got {dim})"
        )
    axes = tuple(d for d in range(count) if d != dim % count)
    return fns.vector_norm(x, pow, axes, True)


@public
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` with the norms `g` along all dimensions but one."""
    x: Any = v
    if dim in (0, x.dim() - 1):
        if x.is_complex():
            kind = v._tmeta.dtype.scalar_name
            raise NotImplementedError(
                f"\"weight_norm_kernel\" not implemented for '{kind}'"
            )
        return fns.weight_norm_interface(x, g, dim)
    return x * (g / norm_except_dim(x, 2, dim))
