"""Pipes that begin: iterables, files and what they hold."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from torchshim import _warnings as warnings
from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
    length_of,
    no_length,
)

__all__ = [
    "FileListerIterDataPipe",
    "FileOpenerIterDataPipe",
    "IterableWrapperIterDataPipe",
    "StreamReaderIterDataPipe",
]


class IterableWrapperIterDataPipe(IterDataPipe[Any]):
    """The items of an iterable; of a copy of it, unless that is not wanted."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of "
                    "in-place modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)[0]


class _OfLength(IterDataPipe[Any]):
    length: int

    def __len__(self) -> int:
        return no_length(self) if self.length == -1 else self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_OfLength):
    """The paths of files in folders whose names match patterns."""

    def __init__(
        self,
        root: Any = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        super().__init__()
        if not isinstance(root, IterDataPipe):
            roots = [root] if isinstance(root, str) else root
            root = IterableWrapperIterDataPipe(roots)
        self.datapipe = root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        how = self.masks, self.recursive, self.abspath, self.non_deterministic
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(path, *how)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_OfLength):
    """Pairs of a path and its opened file."""

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(
            self.datapipe, self.mode, self.encoding
        )


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """Pairs of a path and a piece of its file, of `chunk` bytes or all of it."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield path, piece
            stream.close()
