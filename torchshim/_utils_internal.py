"""Paths of files beside PyTorch's own tests."""

from __future__ import annotations

import os


def get_file_path(*path_components: str) -> str:
    """A path beside the package."""
    return os.path.join(os.path.dirname(__file__), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """A path made of these components."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path itself where it may be written."""
    return path
