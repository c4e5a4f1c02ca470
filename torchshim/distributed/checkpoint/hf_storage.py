"""Files of safetensors as checkpoints of several processes: not supported."""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_REASON = "torch.save and torch.load keep what one process has"
_MODULE = "distributed.checkpoint.hf_storage"
HuggingFaceStorageReader = unsupported(f"{_MODULE}.HuggingFaceStorageReader", _REASON)
HuggingFaceStorageWriter = unsupported(f"{_MODULE}.HuggingFaceStorageWriter", _REASON)
