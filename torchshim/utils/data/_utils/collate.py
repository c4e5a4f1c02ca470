"""Making one batch of many samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim._tensor import Tensor, from_array
from torchshim.utils.data._utils import worker
from torchshim.utils.data._utils._containers import like_mapping, like_sequence

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
    "lists; found {}"
)

CollateMap = dict[Any, Callable[..., Any]]


def default_convert(data: Any) -> Any:
    """Turn NumPy arrays and scalars into tensors, inside containers as well.

    Everything else stays as it is; tuples become lists. Used where the loader
    makes no batches. Follows ``torch.utils.data.default_convert``.

    >>> import numpy as np
    >>> from torchshim.utils.data import default_convert
    >>> default_convert([np.array([1, 2]), "a"])
    [tensor([1, 2]), 'a']
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind.__name__ == "ndarray" and np_str_obj_array_pattern.search(
            data.dtype.str
        ):
            return data
        return torchshim.as_tensor(data)
    if isinstance(data, Mapping):
        return like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        converted = [default_convert(d) for d in data]
        return kind(*converted) if hasattr(data, "_fields") else converted
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return like_sequence(data, (default_convert(d) for d in data))
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make one batch of samples by the type of the first one.

    `collate_fn_map` gives the function for a type, or for a tuple of types;
    mappings, tuples and sequences are collated place by place. TypeError for a
    type that nothing is known about.

    >>> from torchshim.utils.data._utils.collate import collate
    >>> collate([1, 2, 3], collate_fn_map={int: lambda batch, collate_fn_map: batch})
    [1, 2, 3]
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, fn in collate_fn_map.items():
            if isinstance(first, known):
                return fn(batch, collate_fn_map=collate_fn_map)

    def together(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return like_mapping(
            first, {key: together([sample[key] for sample in batch]) for key in first}
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*map(together, zip(*batch, strict=False)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [together(samples) for samples in zip(*batch, strict=False)]
        if isinstance(first, tuple):
            return columns
        return like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The tensors stacked along a new first dimension."""
    first = batch[0]
    if first.is_nested:
        raise RuntimeError(_NO_BATCHES.format("nested"))
    if first.layout != torchshim.strided:
        raise RuntimeError(_NO_BATCHES.format("sparse"))
    if worker.get_worker_info() is not None:
        made = _stacked_by_numpy(batch)
        if made is not None:
            return made
    return torchshim.stack(batch, 0)


def _stacked_by_numpy(batch: Any) -> Any:
    """The stack of plain tensors, for workers, which do not run programs."""
    first = batch[0]
    if any(
        type(t) is not Tensor
        or t.requires_grad
        or t.dtype != first.dtype
        or t.shape != first.shape
        or t.device.type != "cpu"
        for t in batch
    ):
        return None
    return from_array(np.stack([t._host() for t in batch]), device=first.device)


_NO_BATCHES = (
    "Batches of {} tensors are not currently supported by the default collate_fn; "
    "please provide a custom collate_fn to handle them appropriately."
)


def collate_numpy_array_fn(
    batch: Any, *, collate_fn_map: CollateMap | None = None
) -> Any:
    """The arrays as tensors, stacked; TypeError for strings and objects."""
    first = batch[0]
    if np_str_obj_array_pattern.search(first.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    return collate(
        [torchshim.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map
    )


def collate_numpy_scalar_fn(
    batch: Any, *, collate_fn_map: CollateMap | None = None
) -> Any:
    """The scalars in a tensor of their dtype."""
    return torchshim.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The floats in a float64 tensor."""
    return torchshim.tensor(batch, dtype=torchshim.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The integers in an int64 tensor."""
    return torchshim.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The strings as they are."""
    return batch


# Programs add their own types here.
default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
_BUILT_IN_MAP = dict(default_collate_fn_map)


def collates_as_built_in(collate_fn: Any) -> bool:
    """Whether `collate_fn` is `default_collate` and no type was added to it."""
    return collate_fn is default_collate and default_collate_fn_map == _BUILT_IN_MAP


def default_collate(batch: Any) -> Any:
    """Stack samples into a batch, inside mappings, tuples and lists as well.

    Tensors and arrays are stacked, numbers put into a tensor, strings listed;
    a tuple of n places becomes a list of n batches. TypeError for other types.
    Follows ``torch.utils.data.default_collate``.

    >>> from torchshim.utils.data import default_collate
    >>> default_collate([("a", 1), ("b", 2)])
    [('a', 'b'), tensor([1, 2])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
