"""Programs and their code in one archive (`torch.package`): names that refuse use.

https://docs.pytorch.org/docs/2.13/package.html
"""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = [
    "Directory",
    "EmptyMatchError",
    "GlobGroup",
    "Importer",
    "ObjMismatchError",
    "ObjNotFoundError",
    "OrderedImporter",
    "PackageExporter",
    "PackageImporter",
    "PackagingError",
    "is_from_package",
    "sys_importer",
]


class PackagingError(Exception):
    """What could not be packaged."""


class EmptyMatchError(Exception):
    """A pattern that no module matches."""


class ObjNotFoundError(Exception):
    """An object that is not found by its name."""


class ObjMismatchError(Exception):
    """Another object that is found by the name of one."""


_REASON = "save state_dict() with torch.save, and keep the code beside it"
Directory = unsupported("package.Directory", _REASON)
GlobGroup = unsupported("package.GlobGroup", _REASON)
Importer = unsupported("package.Importer", _REASON)
OrderedImporter = unsupported("package.OrderedImporter", _REASON)
PackageExporter = unsupported("package.PackageExporter", _REASON)
PackageImporter = unsupported("package.PackageImporter", _REASON)
sys_importer = unsupported("package.sys_importer", _REASON)


def is_from_package(obj: object) -> bool:
    """Whether an object came from an archive: none does."""
    return False
