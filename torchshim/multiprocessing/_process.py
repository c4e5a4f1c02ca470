"""Processes that may be forked from one that uses JAX."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

from torchshim.utils.data._utils.forked import leave_runtime, prepare


class Process(multiprocessing.Process):
    """Python's; where it is forked, tensors in it do not touch JAX's runtime."""

    _method: str | None = None

    def start(self) -> None:
        """Start the process."""
        method = self._method or multiprocessing.get_start_method()
        self._forked_from = os.getpid() if method == "fork" else None
        if self._forked_from is not None:
            prepare()
        super().start()

    def _bootstrap(self, *args: Any, **options: Any) -> Any:
        if self._forked_from not in (None, os.getpid()):
            leave_runtime()
        return super()._bootstrap(*args, **options)  # type: ignore[misc]


class ForkProcess(Process):
    """A process that is forked, whatever the usual way is."""

    _method = "fork"

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return multiprocessing.get_context("fork").Process._Popen(process_obj)  # type: ignore[attr-defined]
