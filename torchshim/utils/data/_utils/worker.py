"""What a worker process knows of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker of how many this process is; see `get_worker_info`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


# Set in a worker process only.
_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The `WorkerInfo` of this process, or None outside a loader's worker.

    Follows ``torch.utils.data.get_worker_info``.

    >>> from torchshim.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info
