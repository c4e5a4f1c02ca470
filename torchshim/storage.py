"""Storages: the memory under tensors (`torch.storage`)."""

from torchshim._functions.legacy_storage import storagetype as _LegacyStorageMeta
from torchshim._functions.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """A name for what the old classes of storages have in common."""

    __slots__ = ()
