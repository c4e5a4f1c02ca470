"""Where the pieces of distributed tensors begin: there are no such tensors."""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = ["compute_local_shape_and_global_offset"]

compute_local_shape_and_global_offset = unsupported(
    "distributed.tensor._utils.compute_local_shape_and_global_offset",
    "tensors are whole in each process",
)
