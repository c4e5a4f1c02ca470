"""Storages: the memory under tensors (`torch.storage`)."""

import io as _io
from importlib import import_module as _import_module
from typing import Any as _Any

from torchshim._core.dtypes import dtype as _dtype
from torchshim._functions import typed_storage as _typed
from torchshim._functions.legacy_storage import storagetype as _LegacyStorageMeta
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


_StorageBase = UntypedStorage


def _storage_type_to_dtype_map() -> dict[str, _dtype]:
    """The dtypes by the names of the old classes of storages."""
    return dict(_typed.KINDS)


def _dtype_to_storage_type_map() -> dict[_dtype, str]:
    """The names of the old classes of storages by their dtypes."""
    return {dtype: name for name, dtype in _typed.KINDS.items()}


def _load_from_bytes(b: bytes) -> _Any:
    """A storage that PyTorch pickled without `torch.save`: a file of its own."""
    load = _import_module("torchshim.serialization").load
    return load(_io.BytesIO(b), weights_only=False)


def _get_always_warn_typed_storage_removal() -> bool:
    """Whether the warning about typed storages is given every time."""
    return _typed.always_warn[0]


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Whether the warning about typed storages is given every time."""
    if not isinstance(always_warn, bool):
        raise AssertionError(
            f"always_warn must be a bool, got {type(always_warn).__name__}"
        )
    _typed.always_warn[0] = always_warn


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Gives the warning about typed storages."""
    _typed.warn_of_removal(stacklevel)


def _reset_warn_typed_storage_removal() -> None:
    """Has the warning about typed storages given once more."""
    _typed.has_warned[0] = False


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """A name for what the old classes of storages have in common."""

    __slots__ = ()
