"""Distances of pairs of vectors."""

from __future__ import annotations

from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of differences, over the last dimension.

    Follows ``torch.nn.PairwiseDistance``.

    >>> import torchshim as torch
    >>> torch.nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]  # noqa: RUF012

    def __init__(
        self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors. Follows ``nn.CosineSimilarity``.

    >>> import torchshim as torch
    >>> torch.nn.CosineSimilarity()(torch.ones(1, 2), -torch.ones(1, 2)).round()
    tensor([-1.])
    """

    __constants__ = ["dim", "eps"]  # noqa: RUF012

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
