"""How PyTorch computes `linear_cross_entropy` by chunks."""

from __future__ import annotations

import dataclasses
from typing import Any

import torchshim

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """Hints about memory for `LinearCrossEntropyLoss`: checked, and without effect.

    ValueError for what PyTorch does not know. Follows
    ``torch.nn.LinearCrossEntropyOptions``.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in {"auto", "accurate", "balanced", "compact"}:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method is not None and self.chunking_method != "auto":
            name, colon, factor = self.chunking_method.partition(":")
            factor = factor if colon else "1"
            if name != "aspect_ratio" or not factor.isdigit() or not int(factor):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(
                f"batch_chunk_size must be positive int or None, got {size!r}"
            )
        if self.acc_dtype not in (
            None,
            torchshim.float16,
            torchshim.bfloat16,
            torchshim.float32,
            torchshim.float64,
        ):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, "
                f"torch.float32, torch.float64}}, got {self.acc_dtype!r}. Pass "
                "acc_dtype=None to let the op pick automatically."
            )
