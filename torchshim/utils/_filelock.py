"""`filelock`'s lock, under PyTorch's name."""

from __future__ import annotations

from filelock import FileLock as base_FileLock


class FileLock(base_FileLock):
    """A lock that a file stands for."""
