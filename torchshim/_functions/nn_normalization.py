"""Normalization of `nn.functional`."""

from __future__ import annotations

from typing import Any

from torchshim._core.levels import FORWARD
from torchshim._core.record import local
from torchshim._derived import fns, public
from torchshim._functions._arguments import only_bools
from torchshim._ops._common import check_fixed
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


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
    if training.__class__ is not bool or not isinstance(momentum, float | int):
        held = (weight, bias, running_mean, running_var)
        refuse("torch", "batch_norm", (input, *held, training, momentum, eps, True), {})
    return normalized_batch(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _verify_running(mean: Tensor | None, var: Tensor | None) -> None:
    if (mean is None) is not (var is None):
        raise ValueError(
            "running_mean and running_var must either both be None or neither be None"
        )
    if mean is not None and var is not None:
        a, b = mean._tmeta, var._tmeta
        if a.requires_grad or b.requires_grad:
            check_fixed("native_batch_norm", running_mean=a, running_var=b)


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


def normalized_batch(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """`batch_norm` without its checks of the batch and of `eps`."""
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
        if local.rec.levels:
            _check_tangents((input, weight, bias), (mean, var))
        return fns.batch_norm_eval(input, weight, bias, mean, var, eps)
    _verify_running(mean, var)
    out = fns.batch_norm_train(input, weight, bias, eps)
    update_running(input, mean, var, momentum, False)
    return out


def _check_tangents(moving: tuple[Any, ...], fixed: tuple[Any, ...]) -> None:
    """Raises for tangents of running statistics, where the result has one."""

    def has(tensors: tuple[Any, ...], number: int) -> bool:
        given = (t for t in tensors if t is not None)
        return any(local.rec.tangent_of(t, number) is not None for t in given)

    for level in local.rec.levels:
        if level.kind in FORWARD and has(moving, level.number):
            if has(fixed, level.number):
                raise RuntimeError(
                    "batch_norm is not differentiable wrt running_mean and "
                    "running_var, they cannot have forward grad defined"
                )


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


def update_running(
    input: Tensor, mean: Any, var: Any, momentum: float, by_sample: bool
) -> None:
    """Running statistics move towards those of a batch."""
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
    """As `nn.functional.batch_norm`, with every argument and in another order.

    >>> import torchshim as torch
    >>> x, one = torch.tensor([[1.0], [3.0]]), torch.ones(1)
    >>> torch.batch_norm(x, None, None, one, one, False, 0.1, 0.0, False)
    tensor([[0.],
            [2.]])
    """
    only_bools(training, cudnn_enabled)
    return normalized_batch(
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
    """As `nn.functional.layer_norm`.

    >>> import torchshim as torch
    >>> torch.layer_norm(torch.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    only_bools(cudnn_enable)
    return fns.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels of every sample normalized, then scaled by channel.

    `input` is (batch, channels, ...); `weight` and `bias` have a value for each
    channel. RuntimeError if the groups do not divide the channels; ValueError for one
    sample whose groups have one element. By Wu and He, https://arxiv.org/abs/1803.08494

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.group_norm.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> torch.nn.functional.group_norm(x, 2, torch.tensor([1.0, 1.0, 2.0, 2.0]))
    tensor([[-1.0000,  1.0000, -2.0000,  2.0000]])
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
    """As `nn.functional.group_norm`, without its check of the batch.

    >>> import torchshim as torch
    >>> torch.group_norm(torch.tensor([[5.0, 7.0]]), num_groups=2)
    tensor([[0., 0.]])
    """
    only_bools(cudnn_enabled)
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

    `input` is (batch, channels, ...), and `weight`, `bias` and the running statistics
    have a value for each channel. ValueError if a channel is one element. By Ulyanov et
    al., https://arxiv.org/abs/1607.08022

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.instance_norm.html

    >>> import torchshim as torch
    >>> x, mean, var = torch.tensor([[[1.0, 3.0]]]), torch.zeros(1), torch.zeros(1)
    >>> torch.nn.functional.instance_norm(x, mean, var)
    tensor([[[-1.0000,  1.0000]]])
    >>> mean, var
    (tensor([0.2000]), tensor([0.2000]))
    """
    if use_input_stats:
        _verify_spatial_size(input.size())
    numbers = isinstance(momentum, float | int) and isinstance(eps, float | int)
    if not numbers or use_input_stats.__class__ is not bool:
        held = (weight, bias, running_mean, running_var)
        more = use_input_stats, momentum, eps, True
        refuse("torch", "instance_norm", (input, *held, *more), {})
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
    _verify_running(mean, var)
    out = fns.instance_norm_train(input, weight, bias, eps)
    update_running(input, mean, var, momentum, True)
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
    """As `nn.functional.instance_norm`, with every argument and in another order.

    >>> import torchshim as torch
    >>> x = torch.tensor([[[1.0, 3.0]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    only_bools(use_input_stats, cudnn_enabled)
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
