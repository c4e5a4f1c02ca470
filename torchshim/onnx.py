"""Export to ONNX, which is refused.

https://docs.pytorch.org/docs/2.13/onnx.html
"""

from __future__ import annotations

from typing import Any

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(model: Any, *args: Any, **options: Any) -> Any:
    """Refused."""
    raise NotImplementedError(
        "torch.onnx.export: programs cannot be exported to ONNX; jax2tf and tf2onnx "
        "write it for programs of JAX"
    )
