"""`torch.utils._foreach_utils`: lists of tensors by device and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim as torch
from torchshim._errors import check_tensors

TensorListList = list[list[Any]]
Indices = list[int]
_foreach_supported_types = [torch.Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: Sequence[Any], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[TensorListList, Indices]]:
    """The lists, each with the places where the first has one device and dtype.

    The other lists have as many tensors, or None in their place.
    """
    check_tensors("nested_tensorlist", tensorlistlist)
    check_tensors("nested_tensorlist[0]", tensorlistlist[0])
    places: dict[tuple[Any, Any], Indices] = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        places.setdefault((tensor.device, tensor.dtype), []).append(place)
    return {
        kind: (
            [[each[place] for place in found] for each in tensorlistlist],
            found if with_indices else [],
        )
        for kind, found in places.items()
    }
