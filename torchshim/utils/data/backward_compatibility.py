"""What older programs give to a loader of pipes."""

from __future__ import annotations

from typing import Any

from torchshim import _warnings as warnings


def worker_init_fn(worker_id: Any) -> None:
    """Nothing: pipes are split among workers without it."""
    warnings.warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated"
        " as DataLoader automatically applies sharding in every worker",
        FutureWarning,
        stacklevel=2,
    )
