"""Where storages were, and where they go: location tags and `map_location`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._core.device import device
from torchshim._core.dtypes import uint8
from torchshim._core.storage import Storage
from torchshim._functions.storage import UntypedStorage, untyped_of
from torchshim._functions.typed_storage import TypedStorage

_package_registry: list[tuple[int, Callable[..., Any], Callable[..., Any]]] = []


def register_package(
    priority: int,
    tagger: Callable[[Any], str | None],
    deserializer: Callable[[Any, str], Any],
) -> None:
    """Adds a way to tag storages when saving and to place them when loading.

    Those with the lowest priority are asked first, until one does not return None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def _tag(backend: str, storage: Any) -> str | None:
    where = storage.device
    if where.type != backend:
        return None
    return backend if where.index is None else str(where)


def _restore_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _restore_meta(storage: Any, location: str) -> Any:
    if location == "meta":
        return storage.to(device=device("meta"))
    return None


def _restore(backend: str, storage: Any, location: str) -> Any:
    if location == backend or re.match(f"{backend}(:|[0-9]+)", location):
        return storage.to(device=_validated(location, backend))
    return None


def _validated(location: str, backend: str) -> device:
    advice = (
        "If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') to map your storages to the CPU."
    )
    module = getattr(torchshim, backend, None)
    if module is None or not hasattr(module, "is_available"):
        raise RuntimeError(
            f"The {backend.upper()} device module is not registered. {advice}"
        )
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {backend.upper()} device but "
            f"torch.{backend}.is_available() is False. {advice}"
        )
    wanted = device(location)
    index, count = wanted.index or 0, module.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {backend.upper()} device {index} but "
            f"torch.{backend}.device_count() is {count}. Please use torch.load with "
            "map_location to map your storages to an existing device."
        )
    return device(backend, index)


def validate_cuda_device(location: str) -> int:
    """The index of the GPU that a tag names; RuntimeError where there is none."""
    return _validated(location, "cuda").index or 0


def validate_hpu_device(location: str) -> int:
    """The index of the HPU that a tag names; RuntimeError as there is none."""
    return _validated(location, "hpu").index or 0


register_package(10, functools.partial(_tag, "cpu"), _restore_cpu)
for _priority, _backend in ((20, "cuda"), (21, "mps")):
    register_package(
        _priority,
        functools.partial(_tag, _backend),
        functools.partial(_restore, _backend),
    )
register_package(22, functools.partial(_tag, "meta"), _restore_meta)
for _priority, _backend in ((24, "hpu"), (25, "xpu"), (26, "mtia")):
    register_package(
        _priority,
        functools.partial(_tag, _backend),
        functools.partial(_restore, _backend),
    )
_BUILT_IN = len(_package_registry)


def location_tag(storage: Any) -> str:
    """The tag that says where a storage is, such as ``cpu`` or ``cuda:0``."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(
        f"don't know how to determine data location of {_typename(storage)}"
    )


def location_of(where: device, source: Any) -> str:
    """The tag of what a storage is read from."""
    if len(_package_registry) == _BUILT_IN and where.type in ("cpu", "cuda"):
        return str(where)
    if isinstance(source, UntypedStorage):
        return location_tag(source)
    if isinstance(source, Storage):
        source = source.tensors()[0]
    return location_tag(source.untyped_storage())


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage where its tag says; RuntimeError where nothing knows the tag."""
    for _, _, deserializer in _package_registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {_typename(storage)} (tagged with "
        f"{location})"
    )


def _typename(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def restorer(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    """What `load` asks where a storage goes, for each kind of `map_location`."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, bytes, device)):
        fixed = str(map_location)
        return lambda storage, location: default_restore_location(storage, fixed)

    def asked(storage: UntypedStorage, location: str) -> Any:
        result = map_location(storage, location)
        if result is None:
            result = default_restore_location(storage, location)
        if isinstance(result, TypedStorage):
            return result.untyped()
        if not isinstance(result, UntypedStorage):
            TypedStorage(wrap_storage=result, dtype=uint8)  # raises what it says
        return result

    return asked


def cpu_storage(data: Any) -> UntypedStorage:
    """A storage on the CPU over bytes that nobody will write to."""
    return untyped_of(data, device("cpu"))
