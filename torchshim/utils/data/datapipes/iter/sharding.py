"""Pipes that leave samples to other processes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Who divides samples first: machines, then the workers of each."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any
    ) -> Any:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th sample, where n processes read the same pipe."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: Any = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Which of how many processes this one is.

        ValueError for a number that is too large, RuntimeError where groups are mixed.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than "
                f"num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (default in self.groups) != (sharding_group == default):
            raise RuntimeError(
                "ShardingFilter cannot mix DEFAULT and non DEFAULT groups"
            )
        self.groups[sharding_group] = num_of_instances, instance_id
        self.num_of_instances, self.instance_id = 1, 0
        for key in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, key):
                count, number = self.groups[key]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        (length,) = length_of(self, self.source_datapipe)
        return len(range(self.instance_id, length, self.num_of_instances))
