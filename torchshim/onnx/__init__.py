"""Export to ONNX, which is refused.

https://docs.pytorch.org/docs/2.13/onnx.html
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = [
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]


class OnnxExporterError(RuntimeError):
    """An error of exporting."""

    __module__ = "torch.onnx"


_NAME = re.compile(r"[\w-]*::[A-Za-z_-][\w-]*", re.ASCII)
# (name of an operator, opset) -> how packages would have it exported.
_SYMBOLIC: dict[tuple[str, int], Callable[..., Any]] = {}


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(model: Any, *args: Any, **options: Any) -> Any:
    """Refused."""
    raise NotImplementedError(
        "torch.onnx.export: programs cannot be exported to ONNX; jax2tf and tf2onnx "
        "write it for programs of JAX"
    )


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keeps how an operator would be exported; `OnnxExporterError` for a wrong name."""
    _check_name(symbolic_name)
    _SYMBOLIC[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undoes `register_custom_op_symbolic`."""
    _check_name(symbolic_name)
    _SYMBOLIC.pop((symbolic_name, opset_version), None)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the "
            "format domain::name, and should start with a letter and contain only "
            "alphanumeric characters"
        )
