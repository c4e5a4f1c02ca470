"""Errors of a program that `torchrun` started, for what started it.

https://docs.pytorch.org/docs/2.13/elastic/errors.html
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from torchshim import _warnings as warnings

__all__ = ["ErrorHandler", "get_error_handler", "record"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class ErrorHandler:
    """Writes an exception to the file that ``TORCHELASTIC_ERROR_FILE`` names."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Before the program: tracebacks of crashes are printed."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:
            warnings.warn(
                f"Unable to enable fault handler. {type(error).__name__}: {error}",
                stacklevel=2,
            )

    def record_exception(self, e: BaseException) -> None:
        """Writes what an exception says, with its traceback and the time, as JSON."""
        path = self._get_error_file_path()
        if not path:
            return
        more = {
            "py_callstack": traceback.format_exc(),
            "timestamp": str(int(time.time())),
        }
        message = {"message": f"{type(e).__name__}: {e}", "extraInfo": more}
        with open(path, "w") as file:
            json.dump({"message": message}, file)


def get_error_handler() -> ErrorHandler:
    """A handler for `record`."""
    return ErrorHandler()


def record(
    fn: Callable[_P, _R], error_handler: ErrorHandler | None = None
) -> Callable[_P, _R | None]:
    """A decorator for the main function: its exceptions are recorded, and raised.

    >>> import torchshim as torch
    >>> from torchshim.distributed.elastic.multiprocessing.errors import record
    >>> record(lambda: 3)()
    3
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code == 0:
                return None
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
