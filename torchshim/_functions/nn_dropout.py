"""Dropout of `nn.functional`, which draws a mask."""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._core.meta import elementwise_strides, is_contiguous
from torchshim._core.random import engine_of
from torchshim._core.threefry import Threefry
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions._family import described
from torchshim._functions.creation import filled, place, zeros_like
from torchshim._functions.draws import Draw, drawn, in_memory_order
from torchshim._functions.random_examples import examples
from torchshim._refusal import refuse
from torchshim._tensor import Tensor, from_array

# Dropout -----------------------------------------------------------------------------


def _mask(input: Tensor, shape: Any, kept: float) -> Tensor:
    """What is kept, in the order of the input's memory.

    On the CPU the generator's bits are drawn on the host and compared in the program,
    see docs/random.md; on accelerators the program draws, too.
    """
    meta, shape = input._tmeta, tuple(shape)
    engine = engine_of(None, "dropout", meta.device)
    if isinstance(engine, Threefry):
        draw = Draw("bernoulli", (kept,))
        return drawn(draw, shape, dtypes.bool_, meta.device, engine)
    batch = examples()
    full = (*(size for _, size in batch), *shape)
    if meta.device.type == "meta":
        zeros = filled("dropout", full, 0, dtypes.uint64, meta.device)
        return fns._bits_below(zeros, kept)
    bits = engine.draw64(math.prod(full))
    if batch or shape != tuple(meta.shape) or is_contiguous(shape, meta.strides):
        bits = bits.reshape(full)
    else:
        strides = elementwise_strides(shape, [(shape, meta.strides)])
        bits = in_memory_order(bits, shape, strides)
    held = from_array(place(bits, meta.device), device=meta.device, batch=batch)
    return fns._bits_below(held, kept)


def dropped(
    input: Tensor, p: float, training: bool, inplace: bool, feature: bool, alpha: bool
) -> Tensor:
    """Dropout of every kind, as `torch.dropout` and its relatives."""
    usual = training.__class__ is bool and isinstance(input, Tensor)
    if not usual or not isinstance(p, (float, int)):
        name = f"{'feature_' * feature}{'alpha_' * alpha}dropout{'_' * inplace}"
        refuse("torch", name, (input, p, training), {})
    if not 0 <= p <= 1:
        raise RuntimeError(
            f"dropout probability has to be between 0 and 1, but got {p:g}"
        )
    if p == 0 or not training or not input.numel():
        return input
    if p == 1:
        zero = zeros_like(input)
        return fns.mul_(input, zero) if inplace else fns.mul(input, zero)
    shape, dtype = list(input._tmeta.shape), input.dtype
    if feature:
        if len(shape) < 2:
            raise RuntimeError(
                "Feature dropout requires at least 2 dimensions in the input"
            )
        shape[2:] = [1] * (len(shape) - 2)
    if dtype.is_complex:
        raise NotImplementedError(
            f"\"bernoulli_scalar_cpu_\" not implemented for '{dtype.scalar_name}'"
        )
    kept = 1 - float(p)
    mask = _mask(input, shape, kept)
    if not dtype.is_floating_point:
        # Of bools PyTorch's alpha dropout first makes integers.
        name = "Long" if alpha and dtype is dtypes.bool_ else dtype.scalar_name
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {name}"
        )
    if alpha:
        op = fns.masked_affine_ if inplace else fns.masked_affine
    else:
        op = fns.masked_scale_ if inplace else fns.masked_scale
    return op(input, mask, kept)


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Elements made 0 at random, the others larger for it.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.dropout(torch.ones(4))
    tensor([0., 0., 2., 0.])
    """
    _check_probability(p)
    return dropped(input, p, training, inplace, False, False)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what `selu` gives.

    What is dropped becomes selu's value at -inf, before all is scaled and moved. `p` is
    the probability of that, else ValueError. By Klambauer et al.,
    https://arxiv.org/abs/1706.02515

    https://arxiv.org/abs/1706.02515
    https://arxiv.org/abs/1706.02515
    https://arxiv.org/abs/1706.02515
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.alpha_dropout.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.alpha_dropout(torch.zeros(4), training=True)
    tensor([-0.7792, -0.7792,  0.7792, -0.7792])
    """
    _check_probability(p)
    return dropped(input, p, training, inplace, False, True)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels.

    Channels are the second dimension; RuntimeError if there is none.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.feature_alpha_dropout.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> x = torch.zeros(1, 3, 2)
    >>> torch.nn.functional.feature_alpha_dropout(x, training=True)
    tensor([[[-0.7792, -0.7792],
             [-0.7792, -0.7792],
             [ 0.7792,  0.7792]]])
    """
    _check_probability(p)
    return dropped(input, p, training, inplace, True, True)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of signals made 0 at random.

    `input` is (batch, channels, length) or (channels, length), else RuntimeError. The
    others are divided by `1 - p`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout1d.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.dropout1d(torch.ones(3, 2))
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.]])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note "
            "that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            "spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    return _by_channel(input, ndim == 2, p, training, inplace)


def _by_channel(
    input: Tensor, single: bool, p: float, training: bool, inplace: bool
) -> Tensor:
    if not single:
        return dropped(input, p, training, inplace, True, False)
    # The batch dimension that is missing is put before the channels and taken away.
    batched = dropped(input.unsqueeze(0), p, training, inplace, True, False)
    return input if inplace else batched.squeeze(0)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of images made 0 at random.

    `input` is (batch, channels, height, width). The others are divided by `1 - p`.
    Three dimensions are taken as (batch, channels, length), with a warning.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout2d.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.dropout2d(torch.ones(1, 3, 1, 1)).flatten()
    tensor([0., 0., 2.])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated "
            "and "
            "will result in an error in a future release. To retain the behavior and "
            "silence this warning, please use dropout instead. Note that dropout2d "
            "exists to provide channel-wise dropout on inputs with 2 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 3D "
            "or 4D inputs).",
        )
    if ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that "
            "channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), "
            "where C is the channel dim. This behavior will change in a future release "
            "to interpret the input as one without a batch dimension, i.e. shape (C, "
            "H, "
            "W). To maintain the 1D channel-wise dropout behavior, please switch to "
            "using dropout1d instead.",
        )
    return dropped(input, p, training, inplace, True, False)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of volumes made 0 at random.

    `input` is (batch, channels, depth, height, width), or without the batch. The others
    are divided by `1 - p`.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout3d.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(0)
    >>> torch.nn.functional.dropout3d(torch.ones(3, 1, 1, 1)).flatten()
    tensor([0., 0., 2.])
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated "
            "and "
            "will result in an error in a future release. To retain the behavior and "
            "silence this warning, please use dropout instead. Note that dropout3d "
            "exists to provide channel-wise dropout on inputs with 3 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 4D "
            "or 5D inputs).",
        )
    return _by_channel(input, ndim != 5, p, training, inplace)


def _register_dropouts() -> None:
    kinds = {
        "dropout": (False, False),
        "feature_dropout": (True, False),
        "alpha_dropout": (False, True),
        "feature_alpha_dropout": (True, True),
    }
    for name, (feature, alpha) in kinds.items():
        for suffix in ("", "_"):

            def drop(
                input: Tensor,
                p: float,
                train: bool,
                *,
                how: tuple[bool, bool, bool] = (bool(suffix), feature, alpha),
            ) -> Tensor:
                """A name that ends in an underscore is the function in place.

                >>> import torchshim as torch
                >>> generator, x = torch.manual_seed(0), torch.ones(4)
                >>> torch.dropout_(x, 0.5, train=True)
                tensor([0., 0., 2., 0.])
                >>> x
                tensor([0., 0., 2., 0.])
                """
                return dropped(input, p, train, *how)

            line = f"As `nn.functional.{name}`, with every argument."
            described(drop, name + suffix, line)
            public(drop)


_register_dropouts()
