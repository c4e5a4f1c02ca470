"""How a tensor lies on the members of a mesh.

https://docs.pytorch.org/docs/2.13/distributed.tensor.html
"""

from __future__ import annotations

from operator import index
from typing import Any, SupportsIndex

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each member has a piece (along `dim`)."""
        return type(self) is Shard and dim in (None, self._facts[0])

    def is_replicate(self) -> bool:
        """Whether each member has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether members have what is still to be reduced (by `reduce_op`)."""
        return isinstance(self, Partial) and reduce_op in (None, self._facts[0])

    _facts: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement) or type(self) is not type(other):
            return False
        return self._facts == other._facts

    def __hash__(self) -> int:
        return hash((type(self), self._facts))


class Shard(Placement):
    """Each member has a piece along a dimension of the tensor."""

    def __init__(self, dim: SupportsIndex) -> None:
        self._facts = (index(dim),)

    @property
    def dim(self) -> int:
        """The dimension."""
        return self._facts[0]

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """The length of a member's piece, and where it begins."""
        length = -(-curr_local_size // num_chunks)
        start = min(length * rank, curr_local_size)
        return min(length, curr_local_size - start), start

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class _StridedShard(Placement):
    """Each member has a piece of each of `split_factor` parts of a dimension."""

    def __init__(self, dim: SupportsIndex, split_factor: SupportsIndex = 1) -> None:
        self._facts = (index(dim), index(split_factor))

    @property
    def dim(self) -> int:
        """The dimension."""
        return self._facts[0]

    @property
    def split_factor(self) -> int:
        """The number of parts."""
        return self._facts[1]

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


class Replicate(Placement):
    """Each member has the whole tensor."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """The tensor is what the members' tensors give when they are reduced."""

    def __init__(self, reduce_op: str | None = None) -> None:
        if reduce_op is not None and not isinstance(reduce_op, str):
            raise TypeError("Partial: reduce_op must be the name of a reduction")
        self._facts = (reduce_op or "sum",)

    @property
    def reduce_op(self) -> str:
        """The reduction."""
        return self._facts[0]

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
