"""Questions about files and modules (the rest of ``torch.serialization``)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim.serialization import _weights_only
from torchshim.serialization._archive import Reader, _is_path
from torchshim.serialization._scanning import globals_in


class SourceChangeWarning(Warning):
    """The source of a saved module's class is another today."""


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as path:
        yield path


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that ``weights_only=True`` would refuse.

    Nothing is loaded. ValueError for files that `torch.save` did not write.
    """
    if _is_path(f):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    start = f.read(4)
    f.seek(-len(start), os.SEEK_CUR)
    if start != b"PK\x03\x04":
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    reader = Reader(f)
    if "constants.pkl" in reader:
        raise ValueError(
            "Expected input to be a checkpoint returned by torch.save but got a "
            "torchscript checkpoint"
        )
    found = globals_in(reader.read("data.pkl"))
    known = {*_weights_only.allowed(), *_weights_only.allowed_by_user()}
    return list(found - known)


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least what is asked for."""
    try:
        parts = module.__version__.split(".")
        pairs = enumerate(req_version_tuple)
        return tuple(type(want)(parts[i]) for i, want in pairs) >= req_version_tuple
    except Exception as error:
        text = (
            f"'{module.__name__}' module version string is malformed "
            f"'{module.__version__}' and cannot be compared with tuple "
            f"{req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        warnings.warn(
            f"{text}, but continuing assuming that requirement is met", stacklevel=2
        )
        return True


def normalize_storage_type(storage_type: type) -> Any:
    """The class of storages that PyTorch has under this name."""
    return getattr(torchshim, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors that goes with a storage."""
    return getattr(torchshim, type(storage).__name__.replace("Storage", "Tensor"))
