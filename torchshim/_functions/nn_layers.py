"""Normalization, embeddings, dropout and attention of `nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions.creation import placed
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

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
    >>> torch.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        _verify_batch_size(input.shape)
    if training and eps <= 0.0:
        raise ValueError(
            f"batch_norm eps must be positive during training, but got {eps}"
        )
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if training and (running_mean is None) is not (running_var is None):
        raise ValueError(
            "running_mean and running_var must either both be None or neither be None"
        )
    if training.__class__ is not bool or momentum is None:
        held = (weight, bias, running_mean, running_var)
        refuse("torch", "batch_norm", (input, *held, training, momentum, eps, True), {})
    return _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _verify_batch_size(size: Any) -> None:
    count = size[0]
    for s in size[2:]:
        count *= s
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size "
            f"{size}"
        )


# In the order in which PyTorch looks at their sizes.
_OPERANDS = ("running_mean", "running_var", "weight", "bias")


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
    if not input.numel():
        return _of_nothing(input, weight, bias)
    shape = input._tmeta.shape
    features = shape[1] if len(shape) > 1 else 0
    for name, x in zip(_OPERANDS, (mean, var, weight, bias), strict=True):
        if x is None:
            if not training and name.startswith("running"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif x._tmeta.numel != features:
            raise RuntimeError(
                f"{name} should contain {features} elements not {x.numel()}"
            )
    if len(shape) < 2:
        input.size(1)  # raises
    if not training:
        return fns.batch_norm_eval(input, weight, bias, mean, var, eps)
    out = fns.batch_norm_train(input, weight, bias, eps)
    _update(input, mean, var, momentum, False)
    return out


def _of_nothing(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """What PyTorch makes of an empty batch, by the first element of each parameter."""
    out = input.clone()
    if weight is not None:
        out = out * weight.select(0, 0)
    return out if bias is None else out + bias.select(0, 0)


_MAPPED_INPUT = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, "
    "which will be updated in place, were not batched.\nIf you are using a module and "
    "do not need eval mode, please set `track_running_stats` to be False.If you are "
    "using a prebuilt module and do not need eval mode, please see the functorch "
    "website for resources on how to patch your module to work with vmap"
)


def _update(
    input: Tensor, mean: Any, var: Any, momentum: float, by_sample: bool
) -> None:
    if input._tmeta.batch:
        levels = dict(input._tmeta.batch)
        for x in (mean, var):
            if x is not None and not levels.keys() <= dict(x._tmeta.batch).keys():
                raise RuntimeError(_MAPPED_INPUT)
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
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
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
            f"Expected at least 2 dimensions for input tensor but received "
            f"{input.dim()}"
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
    if not use_input_stats and (mean is None or var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when "
            "use_input_stats is false"
        )
    # In PyTorch the channels of a batch normalization, those of each sample apart.
    samples, channels = input.size(0), input.size(1)
    if not input.numel():
        scale, shift = (
            None if x is None else x.repeat(samples) for x in (weight, bias)
        )
        return _of_nothing(input, scale, shift)
    for name, x in zip(_OPERANDS, (mean, var, weight, bias), strict=True):
        if x is not None and x._tmeta.numel != channels:
            raise RuntimeError(
                f"{name} should contain {samples * channels} elements not "
                f"{samples * x.numel()}"
            )
    if not use_input_stats:
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
    if isinstance(p, str):
        size = input.norm(p, dim, True)
    else:
        size = fns.vector_norm(input, p, dim, True)
    size = size.clamp_min(eps).expand_as(input)
    return input / size if out is None else fns.div(input, size, out=out)


# Embeddings --------------------------------------------------------------------------


def _shortened(
    weight: Tensor, input: Tensor, max_norm: float, norm_type: float
) -> None:
    with untracked():
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
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not "
            f"None, then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        include_last_offset = False
    input, offsets, per_sample_weights = _flat_bags(input, offsets, per_sample_weights)
    _check_mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _shortened(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is "
            "only "
            f"supported for mode='sum' (got mode='{mode}'). Please open a feature "
            "request on GitHub."
        )
    padding_idx = _row_left_out(weight, padding_idx)
    if mode == "max":
        return fns.embedding_bag_max(
            weight,
            input,
            offsets,
            scale_grad_by_freq,
            include_last_offset,
            padding_idx,
        )
    return fns.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding_idx,
        sparse,
    )


def _flat_bags(
    input: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Bags of one length, the rows of a matrix, as bags one after another."""
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
        offsets = placed(rows, input.device)
        if input.dtype not in (dtypes.int64, dtypes.int32):
            offsets = fns.to_copy(offsets, input.dtype)  # which is refused with it
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{input.dim()}"
        )
    return input, offsets, per_sample_weights


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError(
                "max mode does not support scaling the gradient by the frequency"
            )
        if sparse:
            raise ValueError("max mode does not support sparse weights")


def _row_left_out(weight: Tensor, padding_idx: int | None) -> int:
    """The row that takes no part in its bags, counted from 0; -1 for none."""
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            "padding_idx must be within the number of embeddings, "
            f"{-rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows


# Convolutions -------------------------------------------------------------------------


@public
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """The operator that all convolutions are, with its lists of numbers.

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
    >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2., 2.]]])
    """
    ndim, given = weight.dim(), {"stride": (4, stride), "padding": (5, padding)}
    given |= {"dilation": (6, dilation), "output_padding": (8, output_padding)}
    for name, (position, value) in given.items():
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"convolution(): argument '{name}' (position {position}) must be tuple "
                f"of ints, not {type(value).__name__}"
            )
    if input.dim() != ndim:
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight "
            f"{list(weight.shape)}, but got {input.dim()}-dimensional input of size "
            f"{list(input.shape)} instead"
        )
    kind, other = input._tmeta.dtype, weight._tmeta.dtype
    if kind is not other:
        raise RuntimeError(
            f"expected scalar type {kind.scalar_name} but found {other.scalar_name}"
        )
    if transposed:
        function = getattr(fns, f"conv_transpose{ndim - 2}d")
        shift = padding, output_padding
        return function(input, weight, bias, stride, *shift, groups, dilation)
    function = getattr(fns, f"conv{ndim - 2}d")
    return function(input, weight, bias, stride, padding, dilation, groups)
