"""Functions of linear algebra that choose among operators."""

from __future__ import annotations

from typing import Any

from torchshim._derived import fns, public
from torchshim._tensor import Tensor


@public(method=True)
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse matrix; `linalg.inv` by its older name.

    https://docs.pytorch.org/docs/2.13/generated/torch.inverse.html

    >>> import torchshim as torch
    >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return fns.linalg_inv(input, out=out)


@public(namespaces=("linalg",))
def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """A norm of vectors or, where two dimensions are given or there, of matrices.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.norm.html

    >>> import torchshim as torch
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if dim is not None:
        axes = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(axes) not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                f"[{', '.join(map(str, axes))}]"
            )
    elif ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or "
            f"2D. Got {A.dim()}D."
        )
    else:
        axes = (-2, -1) if A.dim() == 2 else ()
    matrix = isinstance(ord, str) or (
        ord is not None and (len(axes) == 2 if dim is not None else A.dim() == 2)
    )
    if matrix:
        x = A if dtype is None else A.to(dtype)
        result = fns.matrix_norm(x, ord, axes if dim is not None else (-2, -1), keepdim)
    else:
        order = 2.0 if ord is None else float(ord)
        result = fns.vector_norm(
            A, order, axes if dim is not None else None, keepdim, dtype=dtype
        )
    return result if out is None else out.copy_(result)
