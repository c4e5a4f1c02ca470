"""Tensors that lie on several processes: not supported.

What says how they would lie is there, as programs name it ahead of use.
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchshim._errors import Unsupported, unsupported
from torchshim._tensor import Tensor
from torchshim.distributed.device_mesh import DeviceMesh as DeviceMesh
from torchshim.distributed.device_mesh import init_device_mesh as init_device_mesh
from torchshim.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
)
from torchshim.distributed.tensor.placement_types import _StridedShard as _StridedShard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]

_REASON = "tensors are whole in each process"


class DTensor(Tensor):
    """A tensor that lies on several processes. There are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(
            f"torch.distributed.tensor.DTensor is not supported: {_REASON}"
        )

    from_local = classmethod(__new__)


distribute_module = unsupported("distributed.tensor.distribute_module", _REASON)
distribute_tensor = unsupported("distributed.tensor.distribute_tensor", _REASON)
empty = unsupported("distributed.tensor.empty", _REASON)
full = unsupported("distributed.tensor.full", _REASON)
ones = unsupported("distributed.tensor.ones", _REASON)
rand = unsupported("distributed.tensor.rand", _REASON)
randn = unsupported("distributed.tensor.randn", _REASON)
zeros = unsupported("distributed.tensor.zeros", _REASON)
