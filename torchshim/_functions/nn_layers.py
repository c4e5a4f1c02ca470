"""Normalization, embeddings, dropout and attention of `nn.functional`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from torchshim._core import host_random
from torchshim._core.meta import elementwise_strides
from torchshim._core.random import engine_of
from torchshim._derived import fns, public
from torchshim._functions.creation import _no_grad, place, zeros_like
from torchshim._functions.random import _in_memory_order
from torchshim._tensor import Tensor, from_array

# Normalization -----------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel normalized over the batch, or by running statistics.

    In training, `running_mean` and `running_var` move towards the batch's.
    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.batch_norm.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.nn.functional.batch_norm(x, None, None, training=True, eps=0.0)
    tensor([[-1.],
            [ 1.]])
    """
    if training:
        _verify_batch_size(input.shape)
    return _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _verify_batch_size(size: Any) -> None:
    count = size[0] if size else 0
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    if not training:
        for name, x in (("running_mean", mean), ("running_var", var)):
            if x is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        return fns.batch_norm_eval(input, weight, bias, mean, var, eps)
    out = fns.batch_norm_train(input, weight, bias, eps)
    _update(input, mean, var, momentum, False)
    return out


def _update(
    input: Tensor, mean: Any, var: Any, momentum: float, by_sample: bool
) -> None:
    if input.numel():
        factor = float(momentum)
        if mean is not None:
            fns.update_mean_(mean, input, factor, by_sample)
        if var is not None:
            fns.update_var_(var, input, factor, by_sample)


@public(name="batch_norm")
def _torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """As `nn.functional.batch_norm`, with every argument."""
    return _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


@public(name="layer_norm")
def _torch_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """As `nn.functional.layer_norm`."""
    return fns.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels of every sample normalized, then scaled by channel.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.group_norm.html
    """
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError(
            "Expected at least 2 dimensions for input tensor but received "
            f"{len(shape)}"
        )
    _verify_batch_size([shape[0] * shape[1] // num_groups, num_groups, *shape[2:]])
    return fns.group_norm(input, num_groups, weight, bias, eps)


@public(name="group_norm")
def _torch_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """As `nn.functional.group_norm`, without its check of the batch."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    return fns.group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Every channel of every sample normalized.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.instance_norm.html
    """
    if use_input_stats:
        _verify_spatial_size(input.size())
    return _instance_norm(
        input,
        weight,
        bias,
        running_mean,
        running_var,
        use_input_stats,
        momentum,
        eps,
    )


def _verify_spatial_size(size: Any) -> None:
    count = 1
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {size}"
        )


def _instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    if not use_input_stats:
        if mean is None or var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when "
                "use_input_stats is false"
            )
        return fns.instance_norm_eval(input, weight, bias, mean, var, eps)
    out = fns.instance_norm_train(input, weight, bias, eps)
    _update(input, mean, var, momentum, True)
    return out


@public(name="instance_norm")
def _torch_instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """As `nn.functional.instance_norm`, with every argument."""
    return _instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
    )


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: Any = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Vectors along a dimension divided by their norm.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.normalize.html

    >>> import torchshim as torch
    >>> torch.nn.functional.normalize(torch.tensor([3.0, 4.0]), dim=0)
    tensor([0.6000, 0.8000])
    """
    size = fns.vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)
    return input / size if out is None else fns.div(input, size, out=out)


# Embeddings --------------------------------------------------------------------------


def _shortened(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float
) -> None:
    with _no_grad():
        fns.embedding_renorm_(
            fns.detach(weight), input, float(max_norm), float(norm_type)
        )


@public
def embedding_renorm_(
    input: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """Makes the rows that are named no longer than a norm, in place.

    >>> import torchshim as torch
    >>> w = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> torch.embedding_renorm_(w, torch.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    return fns.embedding_renorm_(input, indices, float(max_norm), float(norm_type))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table by number.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.embedding.html

    >>> import torchshim as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx > 0:
        if padding_idx >= weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        if padding_idx < -weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = weight.size(0) + padding_idx
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    return fns.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of a table by number, added up, averaged or maximised bag by bag.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.embedding_bag.html

    >>> import torchshim as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), table)
    tensor([[2., 3.]])
    """
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not "
            f"None, then it must have the same shape as the input ({input.shape})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a "
                "mini-batch of fixed length sequences. However, found offsets of type "
                f"{type(offsets)}"
            )
        count, width = input.shape
        rows = np.arange(0, count * width, max(width, 1), dtype=np.int64)[:count]
        if not width:
            rows = np.zeros(count, np.int64)
        offsets = from_array(place(rows, input.device), device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        if include_last_offset:
            raise NotImplementedError(
                "embedding_bag(): include_last_offset=True with 2-D input is not "
                "supported"
            )
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError(
                "max mode does not support scaling the gradient by the frequency"
            )
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    if sparse:
        raise NotImplementedError(
            "embedding_bag(): sparse=True is not supported: gradients are dense"
        )
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            f"supported for mode='sum' (got mode='{mode}'). Please open a feature "
            "request on GitHub."
        )
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.size(0)
    return fns.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


# Dropout -----------------------------------------------------------------------------


def _mask(input: Tensor, shape: Any, kept: float) -> Tensor:
    """What is kept: drawn on the host, in the order of the input's memory."""
    meta = input._meta
    engine = engine_of(None, "dropout", meta.device)
    flat = host_random.bernoulli(engine, math.prod(shape), "bool", kept)
    if tuple(shape) != tuple(meta.shape):
        array = flat.reshape(shape)
    else:
        strides = elementwise_strides(tuple(shape), [(tuple(shape), meta.strides)])
        array = _in_memory_order(flat, tuple(shape), strides)
    return from_array(place(array, meta.device), device=meta.device)


def _dropped(
    input: Tensor, p: float, training: bool, inplace: bool, feature: bool, alpha: bool
) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(
            f"dropout probability has to be between 0 and 1, but got {p:g}"
        )
    if p == 0 or not training or not input.numel():
        return input
    if p == 1:
        zero = zeros_like(input)
        return fns.mul_(input, zero) if inplace else fns.mul(input, zero)
    shape = list(input._meta.shape)
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type "
            f"{input.dtype.scalar_name}"
        )
    if feature:
        if len(shape) < 2:
            raise RuntimeError(
                "Feature dropout requires at least 2 dimensions in the input"
            )
        shape[2:] = [1] * (len(shape) - 2)
    kept = 1 - float(p)
    mask = _mask(input, shape, kept)
    if alpha:
        op = fns.masked_affine_ if inplace else fns.masked_affine
    else:
        op = fns.masked_scale_ if inplace else fns.masked_scale
    return op(input, mask, kept)


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(
            f"dropout probability has to be between 0 and 1, but got {p}"
        )


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
    return _dropped(input, p, training, inplace, False, False)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what `selu` gives.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.alpha_dropout.html
    """
    _check_probability(p)
    return _dropped(input, p, training, inplace, False, True)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.feature_alpha_dropout.html
    """
    _check_probability(p)
    return _dropped(input, p, training, inplace, True, True)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of signals made 0 at random.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout1d.html
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
        return _dropped(input, p, training, inplace, True, False)
    # The batch dimension that is missing is put before the channels and taken away.
    batched = _dropped(input.unsqueeze(0), p, training, inplace, True, False)
    return input if inplace else batched.squeeze(0)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of images made 0 at random.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout2d.html
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and "
            "will result in an error in a future release. To retain the behavior and "
            "silence this warning, please use dropout instead. Note that dropout2d "
            "exists to provide channel-wise dropout on inputs with 2 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 3D "
            "or 4D inputs).",
            stacklevel=2,
        )
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), "
            "where C is the channel dim. This behavior will change in a future release "
            "to interpret the input as one without a batch dimension, i.e. shape (C, H, "
            "W). To maintain the 1D channel-wise dropout behavior, please switch to "
            "using dropout1d instead.",
            stacklevel=2,
        )
    return _dropped(input, p, training, inplace, True, False)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of volumes made 0 at random.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.dropout3d.html
    """
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and "
            "will result in an error in a future release. To retain the behavior and "
            "silence this warning, please use dropout instead. Note that dropout3d "
            "exists to provide channel-wise dropout on inputs with 3 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 4D "
            "or 5D inputs).",
            stacklevel=2,
        )
    return _by_channel(input, ndim == 4, p, training, inplace)


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
                return _dropped(input, p, train, *how)

            drop.__name__ = drop.__qualname__ = name + suffix
            drop.__doc__ = f"As `nn.functional.{name}`, with every argument."
            public(drop)


_register_dropouts()


# Attention ---------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Values averaged by how well their keys match each query.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.scaled_dot_product_attention.html

    >>> import torchshim as torch
    >>> q, v = torch.zeros(1, 1, 2), torch.tensor([[[1.0], [3.0]]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, torch.ones(1, 2, 2), v)
    tensor([[[2.]]])
    """
    mask = None
    if dropout_p > 0:
        batch = _batch_of(query, key)
        shape = (*batch, query.size(-2), key.size(-2))
        engine = engine_of(None, "dropout", query.device)
        flat = host_random.bernoulli(
            engine, math.prod(shape), "bool", 1 - float(dropout_p)
        )
        array = place(flat.reshape(shape), query.device)
        mask = from_array(array, device=query.device)
    return fns.attention(
        query,
        key,
        value,
        attn_mask,
        float(dropout_p),
        is_causal,
        scale,
        enable_gqa,
        mask,
    )


def _batch_of(query: Tensor, key: Tensor) -> tuple[int, ...]:
    """The batch dimensions of the scores of two tensors."""
    return tuple(np.broadcast_shapes(query.shape[:-2], key.shape[:-2]))
