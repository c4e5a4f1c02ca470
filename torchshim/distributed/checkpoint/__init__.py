"""Checkpoints of several processes: not supported, `torch.save` makes those of one."""

from __future__ import annotations

from torchshim._errors import unsupported
from torchshim.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)

__all__ = [
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]

_REASON = "torch.save and torch.load keep what one process has"
FileSystemReader = unsupported("distributed.checkpoint.FileSystemReader", _REASON)
FileSystemWriter = unsupported("distributed.checkpoint.FileSystemWriter", _REASON)
async_save = unsupported("distributed.checkpoint.async_save", _REASON)
load = unsupported("distributed.checkpoint.load", _REASON)
load_state_dict = unsupported("distributed.checkpoint.load_state_dict", _REASON)
save = unsupported("distributed.checkpoint.save", _REASON)
save_state_dict = unsupported("distributed.checkpoint.save_state_dict", _REASON)
