"""What XLA compiled, kept on disk from one run of a script to the next.

JAX's persistent compilation cache, in a directory of the user's own. `python -m
torchshim` turns it on; a program that imports torchshim decides for itself.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import stat
import sys
from pathlib import Path

import jax
import jaxlib.version

from torchshim import _warnings as warnings

VARIABLE = "TORCHSHIM_CACHE_DIR"
# Bytes on disk, beyond which what was used longest ago is deleted.
BOUND = 512 * 2**20


def keep_programs() -> None:
    """Keep compiled programs in ``$TORCHSHIM_CACHE_DIR``, or a cache of the user's.

    Nothing is kept where that variable is empty, nor where the directory could have
    been written to by somebody else: programs are code. JAX's own settings
    (``JAX_COMPILATION_CACHE_DIR``, ``JAX_ENABLE_COMPILATION_CACHE``) come first.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    root = os.environ.get(VARIABLE)
    if root == "":
        return
    try:
        directory = Path(root) if root else _users_cache() / "torchshim"
        directory /= f"{jaxlib.version.__version__}-{_machine()}"
        str(directory).encode()  # XLA takes no other names
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(directory):
            return
        before = directory.stat().st_mtime_ns
    except (OSError, RuntimeError, UnicodeError):  # no home, place or permission
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # Two runs may write and read one entry at a time; then it is compiled again.
    for what in ("reading", "writing"):
        text = f"Error {what} persistent compilation cache entry"
        warnings.filterwarnings("ignore", text)
    atexit.register(_prune_after, directory, before, os.getpid())


def prune(directory: Path, bound: int = BOUND) -> None:
    """Delete the files used longest ago, down to three quarters of the bound."""
    files: list[tuple[float, int, str]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode):
                used = max(facts.st_atime, facts.st_mtime)
                files.append((used, facts.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    if total <= bound:
        return
    for _, size, path in sorted(files):
        if total <= bound * 3 // 4:
            break
        os.unlink(path)
        total -= size


def _prune_after(directory: Path, before: int, process: int) -> None:
    """Prunes where this process, and not its child, may have added something."""
    try:
        if os.getpid() == process and directory.stat().st_mtime_ns != before:
            prune(directory)
    except OSError:
        pass  # another process does the same, or took the directory away


def _users_cache() -> Path:
    """Where the user's programs cache files."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _machine() -> str:
    """A name for what code was compiled for: a home may be many machines'."""
    facts = platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            facts += next((x for x in file if x.startswith(("flags", "Features"))), "")
    except OSError:
        facts += platform.processor()
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def _is_private(directory: Path) -> bool:
    """Whether nobody but the user can put files into a directory."""
    if sys.platform == "win32":
        return True
    facts = directory.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return facts.st_uid == os.getuid() and not facts.st_mode & others
