"""Files by their names or as they are, as `torch.serialization` opens them."""

from __future__ import annotations

import io
from typing import Any

from torchshim.serialization._archive import _is_path
from torchshim.serialization._loading import _check_seekable, _is_zipfile
from torchshim.serialization._loading import decoded as _maybe_decode_ascii

__all__ = [
    "_check_seekable",
    "_is_compressed_file",
    "_is_path",
    "_is_zipfile",
    "_maybe_decode_ascii",
    "_open_file_like",
    "_should_read_directly",
]


def _is_compressed_file(f: Any) -> bool:
    """Whether this is a file of `gzip`."""
    return getattr(f, "__module__", None) == "gzip"


def _should_read_directly(f: Any) -> bool:
    """Whether a file's bytes are those on the disk."""
    if _is_compressed_file(f):
        return False
    try:
        return f.fileno() >= 0
    except (io.UnsupportedOperation, AttributeError):
        return False


class _opener:
    """A block that gives a file."""

    def __init__(self, file_like: Any) -> None:
        self.file_like = file_like

    def __enter__(self) -> Any:
        return self.file_like

    def __exit__(self, *args: Any) -> None:
        pass


class _open_file(_opener):
    """A block with a file that it opens and closes."""

    def __init__(self, name: Any, mode: str) -> None:
        super().__init__(open(name, mode))

    def __exit__(self, *args: Any) -> None:
        self.file_like.close()


class _open_buffer_reader(_opener):
    """A block with a buffer, which has to be seekable."""

    def __init__(self, buffer: Any) -> None:
        super().__init__(buffer)
        _check_seekable(buffer)


class _open_buffer_writer(_opener):
    """A block with a buffer that is flushed at its end."""

    def __exit__(self, *args: Any) -> None:
        self.file_like.flush()


def _open_file_like(name_or_buffer: Any, mode: str) -> _opener:
    """A block with the file of a name, or with a buffer."""
    if _is_path(name_or_buffer):
        return _open_file(name_or_buffer, mode)
    if "w" in mode:
        return _open_buffer_writer(name_or_buffer)
    if "r" in mode:
        return _open_buffer_reader(name_or_buffer)
    raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
