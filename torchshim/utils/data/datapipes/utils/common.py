"""What pipes share: checks of functions, files, streams that close themselves."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import inspect
import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn

from torchshim import _warnings as warnings

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
    "validate_pathname_binary_tuple",
]


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """ValueError where a function cannot be called with so many columns."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # a function of C that does not tell
        return
    wanted = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    parameters = signature.parameters.values()
    by_place = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    inner = fn.func if isinstance(fn, functools.partial) else fn
    start = f"The function {getattr(inner, '__name__', repr(inner))} takes "
    if named:
        raise ValueError(
            f"{start}{len(named)} non-default keyword-only parameters, which is not "
            "allowed."
        )
    if len(parameters) < wanted:
        if not any_number:
            raise ValueError(
                f"{start}{len(parameters)} parameters, but {wanted} are required."
            )
        return
    missing = [p for p in by_place[wanted:] if p.default is p.empty]
    if missing or (len(by_place) < wanted and not any_number):
        raise ValueError(
            f"{start}{len(by_place)} positional parameters, but {wanted} are required."
        )


def _is_local(fn: Any) -> bool:
    if hasattr(fn, "__code__"):
        return bool(fn.__code__.co_flags & inspect.CO_NESTED)
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return "<locals>" in named.__qualname__


def check_picklable(fn: Any) -> None:
    """TypeError for what cannot be called; a warning where workers won't get it."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner = fn.func if isinstance(fn, functools.partial) else fn
    if _is_local(inner):
        kind = "Local"
    elif getattr(inner, "__name__", None) == "<lambda>":
        kind = "Lambda"
    else:
        return
    warnings.warn(
        f"{kind} function is not supported by pickle, please use regular python "
        "function or functools.partial instead.",
        stacklevel=2,
    )


def no_length(pipe: Any) -> NoReturn:
    """Raises what `len` does for a pipe that does not know."""
    raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def length_of(pipe: Any, *sources: Any) -> list[int]:
    """The lengths of what a pipe reads; a TypeError where one has none."""
    if not all(hasattr(type(source), "__len__") for source in sources):
        no_length(pipe)
    return [len(source) for source in sources]


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a file's name matches one of the patterns (none: all do)."""
    if not masks:
        return True
    given = [masks] if isinstance(masks, str) else masks
    return any(fnmatch.fnmatch(name, mask) for mask in given)


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:
    """The files in a folder whose names match, in order where that is wanted."""

    def failed(error: OSError) -> NoReturn:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, inner, files in os.walk(root, onerror=failed):
        if not non_deterministic:
            files.sort()
            inner.sort()
        where = os.path.abspath(folder) if abspath else folder
        yield from (os.path.join(where, f) for f in files if match_masks(f, masks))
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Any, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Pairs of a path and its opened file."""
    for path in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        whole = f"r{mode}" if mode in ("b", "t") else mode
        yield path, StreamWrapper(open(path, whole, encoding=encoding))


class StreamWrapper:
    """A file that closes when nobody uses it, nor what was made of it."""

    session_streams: ClassVar[dict[Any, int]] = {}
    debug_unclosed_streams: bool = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: Any = None):
        self.file_obj = file_obj
        self.child_counter = 0
        self.close_on_last_child = False
        self.name = name
        self.closed = False
        self.parent_stream = parent_stream
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(
                    "Parent stream should be StreamWrapper, "
                    f"{type(parent_stream)} was given"
                )
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the streams in containers, up to ten deep."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for item in v.values() if isinstance(v, dict) else v:
                cls.close_streams(item, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Closes the file, and the parent if this was its last child."""
        if self.__dict__.get("closed", True):
            return
        StreamWrapper.session_streams.pop(self, None)
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        with contextlib.suppress(AttributeError):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Closes when the last child is closed, or now if there is none."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __dir__(self) -> list[str]:
        own = [*self.__dict__, *StreamWrapper.__dict__]
        return list({*own, *dir(self.file_obj)})

    def __del__(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        shown = (
            f"{self.file_obj!r}"
            if self.name is None
            else (f"{self.name},{self.file_obj!r}")
        )
        return f"StreamWrapper<{shown}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.file_obj = obj


def validate_pathname_binary_tuple(data: Any) -> None:
    """TypeError for what is not a pair of a path and an open file."""
    if not isinstance(data, tuple):
        raise TypeError(
            f"pathname binary data should be tuple type, but it is type {type(data)}"
        )
    if len(data) != 2:
        raise TypeError(
            f"pathname binary stream tuple length should be 2, but got {len(data)}"
        )
    if not isinstance(data[0], str):
        raise TypeError(
            "pathname within the tuple should have string type pathname, but it is "
            f"type {type(data[0])}"
        )
    if not isinstance(data[1], (io.IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase orits subclasses as "
            f"type, but it is type {type(data[1])}"
        )
