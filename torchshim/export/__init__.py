"""Export of programs, which is refused.

https://docs.pytorch.org/docs/2.13/export.html
"""

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

_REASON = (
    "PyTorch's programs cannot be exported or loaded; jax.export writes programs of JAX"
)
AdditionalInputs = unsupported("export.AdditionalInputs", _REASON)
Constraint = unsupported("export.Constraint", _REASON)
CustomDecompTable = unsupported("export.CustomDecompTable", _REASON)
Dim = unsupported("export.Dim", _REASON)
ExportBackwardSignature = unsupported("export.ExportBackwardSignature", _REASON)
ExportGraphSignature = unsupported("export.ExportGraphSignature", _REASON)
ExportedProgram = unsupported("export.ExportedProgram", _REASON)
FlatArgsAdapter = unsupported("export.FlatArgsAdapter", _REASON)
ModuleCallEntry = unsupported("export.ModuleCallEntry", _REASON)
ModuleCallSignature = unsupported("export.ModuleCallSignature", _REASON)
ShapesCollection = unsupported("export.ShapesCollection", _REASON)
UnflattenedModule = unsupported("export.UnflattenedModule", _REASON)
default_decompositions = unsupported("export.default_decompositions", _REASON)
dims = unsupported("export.dims", _REASON)
draft_export = unsupported("export.draft_export", _REASON)
export = unsupported("export.export", _REASON)
load = unsupported("export.load", _REASON)
save = unsupported("export.save", _REASON)
unflatten = unsupported("export.unflatten", _REASON)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Makes objects of a dataclass nodes of trees: their fields are the children.

    The name is one for files of exported programs.
    """
    _pytree.register_dataclass(cls)
