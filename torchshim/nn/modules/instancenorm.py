"""Instance normalization."""

from __future__ import annotations

from typing import Any

from torchshim import _warnings as warnings
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    # Unbatched and batched inputs.
    _input_dims: tuple[int, ...]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
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

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            # Old checkpoints may hold statistics that are not tracked any more.
            stale = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if stale:
                kind = type(self).__name__
                names = " and ".join(f'"{name}"' for name in stale)
                error_msgs.append(
                    "Unexpected running stats buffer(s) "
                    f"{names} for {kind} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved "
                    f"before 0.4.0, this may be expected because {kind} does not track "
                    "running stats by default since 0.4.0. Please remove these keys "
                    "from state_dict. If the running stats are actually needed, "
                    f"instead set track_running_stats=True in {kind} to enable them. "
                    f"See the documentation of {kind} for details."
                )
                for name in stale:
                    del state_dict[name]
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def forward(self, input: Any) -> Tensor:
        self._check_input_dim(input)
        unbatched = self._input_dims[0]
        dim = input.ndim - unbatched
        size = input.shape[dim]
        if size != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {size}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can "
                "silence this warning by not passing in num_features, which is not "
                "used because affine=False",
                stacklevel=2,
            )
        if input.ndim == unbatched:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _normalized(self, input: Any) -> Any:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sequence to mean 0 and variance 1: (N, C, L) or (C, L).

    Follows ``torch.nn.InstanceNorm1d``.

    >>> import torchshim as torch
    >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[1.0, 3.0]])).round()
    tensor([[-1.,  1.]])
    """

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image to mean 0 and variance 1: (N, C, H, W) or (C, H, W).

    >>> import torchshim as torch
    >>> torch.nn.InstanceNorm2d(3)(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each volume to mean 0 and variance 1.

    >>> import torchshim as torch
    >>> torch.nn.InstanceNorm3d(3)(torch.zeros(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _input_dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm1d
    _input_dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm2d
    _input_dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
    _input_dims = (4, 5)
