"""Export of programs, which is refused.

https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchshim._errors import unsupported
from torchshim.utils import _pytree

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

_REASON = "PyTorch's programs cannot be exported or loaded"
AdditionalInputs = unsupported("export.AdditionalInputs", _REASON)
Constraint = unsupported("export.Constraint", _REASON)
CustomDecompTable = unsupported("export.CustomDecompTable", _REASON)
ExportBackwardSignature = unsupported("export.ExportBackwardSignature", _REASON)
ExportGraphSignature = unsupported("export.ExportGraphSignature", _REASON)
ExportedProgram = unsupported("export.ExportedProgram", _REASON)
FlatArgsAdapter = unsupported("export.FlatArgsAdapter", _REASON)
ModuleCallEntry = unsupported("export.ModuleCallEntry", _REASON)
ModuleCallSignature = unsupported("export.ModuleCallSignature", _REASON)
ShapesCollection = unsupported("export.ShapesCollection", _REASON)
UnflattenedModule = unsupported("export.UnflattenedModule", _REASON)
default_decompositions = unsupported("export.default_decompositions", _REASON)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.export.{name}: PyTorch's programs cannot be exported or loaded; "
        "jax.export writes programs of JAX"
    )


def export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Refused."""
    _refuse("export")


def draft_export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Refused."""
    _refuse("draft_export")


def save(ep: Any, f: Any, **options: Any) -> None:
    """Refused."""
    _refuse("save")


def load(f: Any, **options: Any) -> Any:
    """Refused."""
    _refuse("load")


def unflatten(module: Any, flat_args_adapter: Any = None) -> Any:
    """Refused."""
    _refuse("unflatten")


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Makes objects of a dataclass nodes of trees: their fields are the children.

    The name is one for files of exported programs.
    """
    _pytree.register_dataclass(cls)


def Dim(name: str, **bounds: Any) -> Any:
    """Refused."""
    _refuse("Dim")


def dims(*names: str, **bounds: Any) -> Any:
    """Refused."""
    _refuse("dims")
