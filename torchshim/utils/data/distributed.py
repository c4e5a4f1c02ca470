"""A sampler that gives each process its own share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torchshim
from torchshim.utils.data.sampler import Sampler

__all__ = [
    "DistributedSampler",
]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from `rank` on, of one common shuffle.

    All processes shuffle alike, by `seed` plus the number given to `set_epoch`.
    Indices are repeated until the shares are equal, or cut off with `drop_last`.
    Follows ``torch.utils.data.distributed.DistributedSampler``.

    >>> from torchshim.utils.data import DistributedSampler
    >>> list(DistributedSampler("abcde", num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = torchshim.distributed.get_world_size()
        if rank is None:
            rank = torchshim.distributed.get_rank()
        assert num_replicas is not None and rank is not None
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, "
                f"{num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % num_replicas != 0:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            generator = torchshim.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torchshim.randperm(size, generator=generator).tolist()
        else:
            indices = list(range(size))
        if not self.drop_last and size < self.total_size:
            indices *= math.ceil(self.total_size / size)
        indices = indices[: self.total_size]
        if len(indices) != self.total_size:
            raise AssertionError(
                f"Number of indices ({len(indices)}) does not match total_size "
                f"({self.total_size})"
            )
        share = indices[self.rank : self.total_size : self.num_replicas]
        if len(share) != self.num_samples:
            raise AssertionError(
                f"Number of subsampled indices ({len(share)}) does not match "
                f"num_samples ({self.num_samples})"
            )
        return iter(share)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Give each epoch a shuffle of its own: call it before each pass."""
        self.epoch = epoch
