"""Storages: the memory under tensors (`torch.storage`)."""

from torchshim._functions.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
