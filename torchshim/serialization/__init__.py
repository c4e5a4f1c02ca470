"""Checkpoints: `torch.save` and `torch.load` (``torch.serialization``).

Files are PyTorch's own, in both directions. What they are made of: an archive of
records (`_archive`), one of which is a pickle that mentions the others as storages
(`_pickling`, `_weights_only`), by PyTorch's names (`_names`).
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from torchshim.serialization._files import (
    SourceChangeWarning,
    check_module_version_greater_or_equal,
    get_unsafe_globals_in_checkpoint,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
)
from torchshim.serialization._loading import MAP_LOCATION, load
from torchshim.serialization._locations import (
    _package_registry,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from torchshim.serialization._names import StorageType, _get_layout
from torchshim.serialization._options import (
    LoadEndianness,
    add_safe_globals,
    clear_safe_globals,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    get_safe_globals,
    safe_globals,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from torchshim.serialization._saving import (
    DEFAULT_PROTOCOL,
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    open_zipfile_reader,
    open_zipfile_writer,
    save,
)

_open_zipfile_reader, _open_zipfile_writer = open_zipfile_reader, open_zipfile_writer
# Names of PyTorch's that are no part of its API.
assert callable(_get_layout) and MAP_LOCATION and _package_registry

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAGIC_NUMBER",
    "PROTOCOL_VERSION",
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]


def __getattr__(name: str) -> _Any:
    # Helpers that few programs call.
    if not name.startswith("__"):
        openers = _import_module("torchshim.serialization._openers")
        if name in openers.__all__:
            return getattr(openers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
