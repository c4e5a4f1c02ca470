"""Arguments for the replicas of a module, and their results: for one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._functions._arguments import warn
from torchshim._tensor import Tensor
from torchshim.nn.parallel._functions import Gather, Scatter

__all__ = ["gather", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Whether this is a named tuple; deprecated."""
    text = "`is_namedtuple` is deprecated, please use the python checks instead"
    warn(text, FutureWarning)
    return _is_namedtuple(obj)


def _is_namedtuple(obj: Any) -> bool:
    return (
        isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")
    )


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device what `inputs` has for it: tensors in pieces, the rest as it is.

    NotImplementedError for tensors where there is more than one device. Follows
    ``torch.nn.parallel.scatter_gather.scatter``.
    """
    if isinstance(inputs, Tensor):
        return Scatter.apply(target_gpus, None, dim, inputs)
    if isinstance(inputs, (tuple, list, dict)) and len(inputs):
        held = inputs.items() if isinstance(inputs, dict) else inputs
        rows = zip(*(scatter(each, target_gpus, dim) for each in held), strict=False)
        if _is_namedtuple(inputs):
            return [type(inputs)(*row) for row in rows]
        if isinstance(inputs, dict):
            return [type(inputs)(row) for row in rows]
        return [tuple(row) if isinstance(inputs, tuple) else list(row) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Arguments by position and by name for each device."""
    given = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(given), len(named))
    given += [()] * (count - len(given))
    named += [{}] * (count - len(named))
    return tuple(given), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """What the replicas gave, joined along `dim`.

    AssertionError for tensors on the CPU. Follows
    ``torch.nn.parallel.scatter_gather.gather``.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return Gather.apply(target_device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (k, gather([each[k] for each in outputs], target_device, dim))
            for k in first
        )
    rows = (gather(row, target_device, dim) for row in zip(*outputs, strict=True))
    return type(first)._make(rows) if _is_namedtuple(first) else type(first)(rows)
