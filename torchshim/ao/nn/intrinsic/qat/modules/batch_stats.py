"""What layers that train with a batch normalization folded into their weight share."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim.nn import init


class FoldedNorm(nn.Module):
    """A layer with the batch normalization `bn`, which can be frozen."""

    training: bool
    bn: Any
    freeze_bn: bool

    def _start(self, frozen: bool) -> None:
        """Resets the normalization and says whether it is frozen."""
        self.reset_bn_parameters()
        if frozen or not self.training:
            self.freeze_bn_stats()
        else:
            self.update_bn_stats()

    def reset_running_stats(self) -> None:
        """Forgets the statistics of the normalization."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Draws the normalization's weight anew; its bias becomes zero."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Any:
        """Has the normalization follow its batches from now on."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Keeps the normalization's statistics as they are from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> Any:
        """As `Module.train`; a frozen normalization stays frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _check_running(self) -> None:
        if self.bn.running_var is None:
            raise AssertionError("self.bn.running_var must not be None")

    def _check_fusible(self) -> None:
        if self.bn.running_var is None or self.bn.running_mean is None:
            raise AssertionError(
                "self.bn.running_var and self.bn.running_mean must not be None"
            )

    def _statistics(self) -> tuple[Any, ...]:
        """What `fuse_conv_bn_weights` takes of the normalization."""
        bn = self.bn
        return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias

    def _adopt(self, layer: Any, bn: Any) -> Any:
        """Takes the parameters and statistics of layers of floating point."""
        self.weight = layer.weight
        self.bias = layer.bias
        names = "weight bias running_mean running_var num_batches_tracked".split()
        for name in names:
            setattr(self.bn, name, getattr(bn, name))
        return self
