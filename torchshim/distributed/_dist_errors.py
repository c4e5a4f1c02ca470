"""What distributed programs raise."""

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "QueueEmptyError",
]


class DistError(RuntimeError):
    """What distributed programs raise."""


class DistBackendError(DistError):
    """What carries messages failed."""


class DistNetworkError(DistError):
    """A network failed."""


class DistStoreError(DistError):
    """What a store raises."""


class QueueEmptyError(DistStoreError):
    """A queue has nothing to give."""


for _kind in (
    DistError,
    DistBackendError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
):
    _kind.__module__ = "torch.distributed"
