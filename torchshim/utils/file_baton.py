"""A lock between processes: a file that one of them makes."""

from __future__ import annotations

import os
import time

from torchshim import _warnings as warnings


class FileBaton:
    """The lock. Its file is there while somebody holds it.

    Those who wait look each `wait_seconds`, and warn after `warn_after_seconds`.
    """

    def __init__(
        self,
        lock_file_path: str,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.fd: int | None = None
        self.warn_after_seconds = warn_after_seconds

    def try_acquire(self) -> bool:
        """Whether the lock was free, and is ours now."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Returns when nobody holds the lock."""
        start, limit = time.time(), self.warn_after_seconds
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if limit is not None and time.time() - start > limit:
                warnings.warn(
                    f'Waited on lock file "{self.lock_file_path}" for {limit} seconds.',
                    stacklevel=2,
                )
                limit = None

    def release(self) -> None:
        """Gives the lock back."""
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)
