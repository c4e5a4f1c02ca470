"""Batch normalization."""

from __future__ import annotations

import sys
from typing import Any

import torchshim
from torchshim._counter import advance, count_of
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.modules import _functions
from torchshim.nn.modules._base import weight_and_bias
from torchshim.nn.modules._own import of_each
from torchshim.nn.modules.lazy import LazyModuleMixin
from torchshim.nn.modules.linear import new_parameter
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter as Parameter
from torchshim.nn.parameter import UninitializedBuffer, UninitializedParameter

sync_batch_norm = _functions.SyncBatchNorm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch and instance normalization share: affine part and running stats."""

    _version = 2
    __constants__ = [  # noqa: RUF012
        "track_running_stats",
        "momentum",
        "eps",
        "num_features",
        "affine",
    ]

    # Numbers of dimensions that the input may have.
    _input_dims: tuple[int, ...] = ()

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    @of_each
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, there in (("weight", affine), ("bias", affine and bias)):
            value = new_parameter(num_features, device, dtype) if there else None
            self.register_parameter(name, value)
        mean = var = seen = None
        if track_running_stats:
            mean = torchshim.zeros(num_features, device=device, dtype=dtype)
            var = torchshim.ones(num_features, device=device, dtype=dtype)
            seen = torchshim.tensor(0, dtype=torchshim.long, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", seen)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Puts the running mean to 0, the variance to 1 and the count to 0."""
        if self.track_running_stats:
            stats: Any = self
            stats.running_mean.zero_()
            stats.running_var.fill_(1)
            stats.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Puts the running stats and the affine part back to their initial values."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if not self._input_dims:
            raise NotImplementedError
        if input.ndim not in self._input_dims:
            expected = " or ".join(f"{n}D" for n in self._input_dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        *args: Any,
    ) -> None:
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Older versions did not count batches.
            seen = self.num_batches_tracked
            if seen is None:
                seen = torchshim.tensor(0, dtype=torchshim.long)
            state_dict.setdefault(prefix + "num_batches_tracked", seen)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        tracked = self.track_running_stats
        seen = self.num_batches_tracked
        if self.training and tracked and seen is not None:
            advance((seen,))
            if self.momentum is None:
                # A plain average of all batches.
                momentum = 1.0 / count_of(seen)
        mean, var = self.running_mean, self.running_var
        # In evaluation mode without running stats, those of the batch are used.
        of_batch = self.training or (mean is None and var is None)
        if self.training and not tracked:
            mean = var = None
        weight, bias = weight_and_bias(self)
        return F.batch_norm(
            input, mean, var, weight, bias, of_batch, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Each channel of (N, C) or (N, C, L) to mean 0 and variance 1 over the batch.

    Then scaled and shifted. In evaluation mode the running statistics are used.
    Follows ``torch.nn.BatchNorm1d``.

    >>> import torchshim as torch
    >>> m = torch.nn.BatchNorm1d(2, affine=False)
    >>> m(torch.tensor([[1.0, 2.0], [3.0, 6.0]])).round()
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """As `BatchNorm1d`, for images (N, C, H, W). Follows ``torch.nn.BatchNorm2d``.

    >>> import torchshim as torch
    >>> torch.nn.BatchNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    """As `BatchNorm1d`, for volumes (N, C, D, H, W). Follows ``nn.BatchNorm3d``.

    >>> import torchshim as torch
    >>> torch.nn.BatchNorm3d(3)(torch.zeros(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over all processes; with one process, over its own batch.

    Follows ``torch.nn.SyncBatchNorm``.

    >>> import torchshim as torch
    >>> m = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    >>> type(torch.nn.SyncBatchNorm.convert_sync_batchnorm(m)[0]).__name__
    'SyncBatchNorm'
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
            device,
            dtype,
            bias=bias,
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError(
                "SyncBatchNorm number of input channels should be non-zero"
            )

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input. ValueError for training on the CPU within a group."""
        # Not imported before a program uses it.
        distributed = sys.modules.get(f"{torchshim.__name__}.distributed")
        if self.training and distributed is not None and distributed.is_initialized():
            if input.device.type != "cuda":
                raise ValueError(
                    "SyncBatchNorm expected input tensor to be on GPU or XPU or "
                    "privateuseone"
                )
            if distributed.get_world_size(self.process_group) > 1:
                raise NotImplementedError(
                    "SyncBatchNorm: statistics over several processes are not supported"
                )
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """`module` with every batch normalization in it replaced by this kind."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
            if hasattr(module, "qconfig"):  # how it is to be quantized
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        kind = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**kind)
            if bias:
                self.bias = UninitializedParameter(**kind)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kind)
            self.running_var = UninitializedBuffer(**kind)
            self.num_batches_tracked = torchshim.tensor(
                0, dtype=torchshim.long, device=device
            )

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives parameters and buffers the number of channels as their shape."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        waiting: list[Any] = []
        if self.affine:
            waiting += [self.weight, self.bias]
        if self.track_running_stats:
            waiting += [self.running_mean, self.running_var]
        for value in waiting:
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input.

    >>> import torchshim as torch
    >>> m = torch.nn.LazyBatchNorm1d()
    >>> m(torch.zeros(2, 5)).shape, m.num_features
    (torch.Size([2, 5]), 5)
    """

    cls_to_become = BatchNorm1d
    _input_dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input.

    >>> import torchshim as torch
    >>> torch.nn.LazyBatchNorm2d()(torch.zeros(2, 5, 3, 3)).shape
    torch.Size([2, 5, 3, 3])
    """

    cls_to_become = BatchNorm2d
    _input_dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input.

    >>> import torchshim as torch
    >>> torch.nn.LazyBatchNorm3d()(torch.zeros(2, 5, 3, 3, 3)).shape
    torch.Size([2, 5, 3, 3, 3])
    """

    cls_to_become = BatchNorm3d
    _input_dims = (5,)
