"""Random numbers whose parameters are tensors: `normal`, `bernoulli`, `multinomial`.

https://docs.pytorch.org/docs/2.13/torch.html#random-sampling. Parameters that are known
are used on the host, so that what is wrong with them is said at once. Those that are
pending would have to be waited for: the program takes plain draws and makes the same
numbers of them, bit for bit.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from torchshim._core import dtypes, host_integers, host_random
from torchshim._core.host_dtypes import check_floating, check_kernel
from torchshim._core.meta import contiguous_strides, elementwise_strides
from torchshim._core.mt19937 import MT19937
from torchshim._core.random import engine_of
from torchshim._core.record import local, untracked
from torchshim._core.storage import set_version, version_of
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    as_index,
    check_room,
    is_known,
    only_bools,
    tensor_argument,
    unfit,
    wrong,
)
from torchshim._functions.creation import into, place
from torchshim._functions.draws import NORMAL, UNIFORM, Draw, drawn
from torchshim._functions.random_examples import (
    check_no_out,
    check_parameters,
    examples,
    whole,
)
from torchshim._functions.resizing import resize_output, take_size
from torchshim._ops.matmul import broadcast_shapes
from torchshim._out import followed, refuse_followed
from torchshim._tensor import Tensor, from_array


def by_host(engine: Any, *parameters: Tensor) -> TypeGuard[MT19937]:
    """Whether the host draws, from parameters that it knows."""
    if any(p._tmeta.device.type == "meta" for p in parameters):
        return False
    return isinstance(engine, MT19937) and all(map(is_known, parameters))


def normal_of(mean: Any, std: Any, generator: Any) -> Tensor:
    """Normal numbers with tensors as parameters."""
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not tensors:
        raise unfit("normal")
    device, dtype = tensors[0]._tmeta.device, tensors[0]._tmeta.dtype
    engine = engine_of(generator, "normal", device)
    shape = broadcast_shapes(tensors[0]._tmeta.shape, tensors[-1]._tmeta.shape)
    check_parameters(*tensors)
    check_room(tuple(shape), dtype, device)
    if by_host(engine, *tensors):
        batch = examples()
        values = [
            whole(v, batch)._host() if isinstance(v, Tensor) else float(v)
            for v in (mean, std)
        ]
        array = host_random.normal_tensors(engine, *values)
        result = from_array(place(array, device), device=device, batch=batch)
    elif std is tensors[-1]:
        if std._tmeta.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        plain = drawn(NORMAL, shape, dtype, device, engine)
        shift = mean if mean is tensors[0] else float(mean)
        scaled = fns._draw_scaled(plain, std, 0.0)
        result = fns._draw_shifted(scaled, shift, 0.0)
    else:
        draw = Draw("normal", (0.0, float(std)))
        plain = drawn(draw, shape, dtype, device, engine)
        result = fns._draw_shifted(plain, mean, 0.0)
    if followed(local.rec, tensors):
        result = fns._draw_normal_of(mean, std, result)
    return result


def normal_into(out: Any, mean: Any, std: Any, generator: Any) -> Tensor:
    """`out=` of `normal_of`: plain numbers in its dtype, in its memory's order.

    They are scaled and shifted there. With a number for `std`, `out` and `mean`
    broadcast.
    """
    tensor_argument("normal", "out", 0, out)
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not tensors:
        raise unfit("normal")
    refuse_followed(local.rec, "normal", (mean, std, out))
    check_parameters(*tensors)
    if not isinstance(std, Tensor):
        if std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        resize_output(out, broadcast_shapes(mean._tmeta.shape, out._tmeta.shape))
        with untracked():
            return out.normal_(0.0, std, generator=generator).add_(mean)
    if std._tmeta.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if is_known(std) and std._tmeta.shape.numel() and not (std._host() >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    resize_output(out, broadcast_shapes(tensors[0]._tmeta.shape, std._tmeta.shape))
    before = version_of(out)
    with untracked():
        out.normal_(generator=generator)
        out.copy_(fns._draw_scaled(out, std, 0.0)).add_(mean)
    set_version(out, before + 1)
    return out


@public(method=True)
def bernoulli(
    input: Any, p: Any = None, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Ones with the probabilities in `input` (or all with `p`), zeros otherwise.

    >>> import torchshim as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    tensor_argument("bernoulli", "input", 1, input)
    meta = input._tmeta
    shape = tuple(meta.shape)
    engine = engine_of(generator, "bernoulli", meta.device)
    if out is not None:
        check_no_out()
    if p is None:
        check_parameters(input)
        if out is not None:
            return _ones_into(out, input, generator)
    if p is not None:
        draw = Draw("bernoulli", (float(p),))
        result = drawn(draw, shape, meta.dtype, meta.device, engine)
    elif by_host(engine, input):
        batch, kind = examples(), dtypes.array_dtype(meta.dtype)
        chances = whole(input, batch)._host()
        flat = chances.reshape(-1)
        values = host_random.bernoulli(engine, flat.size, kind, flat)
        made = place(values.reshape(chances.shape), meta.device)
        result = from_array(made, device=meta.device, batch=batch)
    else:
        result = below(input, shape, meta, engine)
    if followed(local.rec, (input,)):
        # A node that passes zeros on, as PyTorch's graph has it.
        result = fns._draw_bernoulli0(fns.clone(input), result)
    return result


def _ones_into(out: Any, chances: Tensor, generator: Any) -> Tensor:
    """`out=` of `bernoulli`: drawn in the order of its memory, in any dtype."""
    tensor_argument("bernoulli", "out", 0, out)
    refuse_followed(local.rec, "bernoulli", (chances, out))
    take_size(out, chances._tmeta.shape)
    with untracked():
        return out.bernoulli_(chances, generator=generator)


def below(
    chance: Tensor, shape: Any, meta: Any, engine: Any, strides: Any = None
) -> Tensor:
    """Ones with the chances in a tensor, compared in the program."""
    check_kernel(dtypes.array_dtype(meta.dtype), "bernoulli_tensor_cpu_self_")
    if not chance._tmeta.dtype.is_floating_point:
        check_floating(dtypes.array_dtype(chance.dtype), "bernoulli_tensor_cpu_p_")
    wide = dtypes.float64 if chance.dtype is dtypes.float64 else dtypes.float32
    uniform = drawn(UNIFORM, shape, wide, meta.device, engine, strides)
    return fns._draw_below(uniform, chance, meta.dtype)


@public(method=True)
def multinomial(
    input: Any,
    num_samples: Any,
    replacement: bool = False,
    *,
    generator: Any = None,
    out: Any = None,
) -> Tensor:
    """Indices drawn with the weights in each row of `input`.

    >>> import torchshim as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 1)
    tensor([1])
    """
    only_bools(replacement)
    tensor_argument("multinomial", "input", 1, input)
    if out is not None:
        check_no_out()
    count = as_index(num_samples)
    if count is None:
        raise TypeError(wrong("multinomial", "num_samples", 2, "int", num_samples))
    meta = input._tmeta
    if not 0 < len(meta.shape) <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not meta.dtype.is_floating_point:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{meta.dtype.scalar_name}"
        )
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}"
        )
    if not replacement and count > meta.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if meta.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if replacement and not meta.shape[-1]:
        if meta.shape[0]:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the "
                "operation has no identity."
            )
        raise RuntimeError(
            "invalid multinomial distribution (sum of probabilities <= 0)"
        )
    engine = engine_of(generator, "multinomial", meta.device)
    check_parameters(input)
    order = elementwise_strides(meta.shape, [(meta.shape, meta.strides)])
    if by_host(engine, input):
        batch = examples()
        weights = whole(input, batch)._host()
        rows = weights.reshape(-1, weights.shape[-1]) if batch else weights
        turned = not batch and order != contiguous_strides(meta.shape)
        chosen = host_integers.multinomial(
            engine, rows, count, bool(replacement), turned
        )
        chosen = np.ascontiguousarray(chosen, np.int64)
        if batch:
            chosen = chosen.reshape(*weights.shape[:-1], count)
        made = place(chosen, meta.device)
        result = from_array(made, device=meta.device, batch=batch)
    else:
        result = _chosen(input, count, bool(replacement), engine, order)
    return result if out is None else into(out, result)


def _chosen(
    weights: Tensor, count: int, replacement: bool, engine: Any, order: Any
) -> Tensor:
    """What `multinomial` draws, in the program."""
    shape, device = tuple(weights._tmeta.shape), weights._tmeta.device
    if replacement and count > 1:
        shape = (*shape[:-1], count)
        uniform = drawn(UNIFORM, shape, dtypes.float64, device, engine)
        return fns._draw_chosen(weights, uniform, isinstance(engine, MT19937))
    race = Draw("exponential", (1.0,))
    noise = drawn(race, shape, weights._tmeta.dtype, device, engine, order)
    return fns._draw_race(weights, noise, count)
