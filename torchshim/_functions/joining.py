"""`cat` and `stack` of tensors that have their values already.

Programs that sample from a memory (replay buffers, hand-made batches) join other
tensors every time. Recorded, each pattern of tensors that are in the recording and
tensors that enter it would be another path, and another program. Where all operands are
small, known (or zeros and the like) and without history, they are joined on the host,
and the result enters as one input.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from torchshim._core.call import Call
from torchshim._core.meta import Meta
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._tensor import Tensor, from_array, host_value

# Elements up to which joining on the host costs less than a program's input each.
SMALL = 1 << 16


def known(tensors: Any, limit: float = SMALL) -> bool:
    """Whether all operands have small values at hand, alike and without history."""
    if tensors.__class__ not in (list, tuple) or not tensors:
        return False
    if not all(issubclass(kind, TensorBase) for kind in {t.__class__ for t in tensors}):
        return False
    missing = [t for t in tensors if not _has_value(t)]
    if len(missing) == len(tensors) > 1:
        return False  # as usual: they are all of this recording
    total = 0
    # There may be hundreds of operands, but few kinds of them.
    for meta, count in Counter([t._tmeta for t in tensors]).items():
        if (
            meta.requires_grad
            or meta.inference
            or meta.batch
            or meta.dtype is not tensors[0]._tmeta.dtype
            or meta.device.type != "cpu"
        ):
            return False
        total += math.prod(meta.shape) * count
    rec = local.rec
    if total > limit or rec.inference or rec.recording.duals:
        return False
    return all(_constant(t) is not None for t in missing)


def _has_value(tensor: TensorBase) -> bool:
    storage = tensor._storage
    return (tensor._array if storage is None else storage.array) is not None


def _constant(tensor: TensorBase) -> Call | None:
    """The call that made a pending tensor, if it depends on nothing: zeros, say."""
    if tensor._storage is not None or tensor._slot < 0:
        return None
    event = local.rec.state.maker(tensor._slot)
    call = None if event is None else event.call
    if isinstance(call, Call) and not call.n_arrays and not call.n_scalars:
        return call
    return None


@functools.lru_cache(256)
def _computed(call: Call) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(call.apply((), ())[0])


def known_value(tensor: TensorBase) -> np.ndarray:
    """The value of a tensor for which `known` holds; not to be written to."""
    if _has_value(tensor):
        return host_value(tensor)
    call = _constant(tensor)
    # (None: another thread has used it since.)
    return host_value(tensor) if call is None else _computed(call)


def _known_values(tensors: Sequence[Any]) -> list[np.ndarray]:
    """`known_value` of each, and at once for those that NumPy holds."""
    local.rec.raise_failed_checks()
    arrays = [t._array if t._storage is None else None for t in tensors]
    return [
        array if isinstance(array, np.ndarray) else known_value(t)
        for array, t in zip(arrays, tensors, strict=True)
    ]


def _metas(tensors: Sequence[Any]) -> list[Meta]:
    """The kinds of tensors that there are among these."""
    return list({t._tmeta for t in tensors})


@public(aliases=("concat", "concatenate"))
def cat(tensors: Any, dim: int = 0, *, out: Any = None, **named: Any) -> Tensor:
    """The tensors one after the other along a dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.cat.html

    >>> import torchshim as torch
    >>> torch.cat([torch.ones(2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    if out is None and not named and known(tensors):
        metas = _metas(tensors)
        shapes = {(*m.shape[:dim], *m.shape[dim + 1 :]) for m in metas}
        ndims = {len(m.shape) for m in metas}
        if dim.__class__ is int and ndims != {0} and len(ndims) == len(shapes) == 1:
            plain = all(m.contiguous for m in metas)
            if plain and 0 <= dim < tensors[0].ndim:
                array = np.concatenate(_known_values(tensors), dim)
                return from_array(array, device=tensors[0].device)
    return fns.cat(tensors, dim, out=out, **named)


@public
def stack(tensors: Any, dim: int = 0, *, out: Any = None, **named: Any) -> Tensor:
    """The tensors one after the other along a new dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.stack.html

    >>> import torchshim as torch
    >>> torch.stack([torch.ones(2), torch.zeros(2)]).shape
    torch.Size([2, 2])
    """
    if out is None and not named and known(tensors):
        metas = _metas(tensors)
        if len({m.shape for m in metas}) == 1 and dim.__class__ is int:
            ndim = tensors[0].ndim
            # Images may be in channels last, and their stack is, too.
            plain = ndim < 3 or all(m.contiguous for m in metas)
            if plain and 0 <= dim <= ndim:
                array = np.stack(_known_values(tensors), dim)
                return from_array(array, device=tensors[0].device)
    return fns.stack(tensors, dim, out=out, **named)
