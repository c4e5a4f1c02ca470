"""Custom functions behind layers, as `torch.nn.modules._functions`."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.autograd.function import Function, once_differentiable
from torchshim.nn import functional as F


class SyncBatchNorm(Function):
    """Batch normalization over the batches of a group of processes: of one."""

    @classmethod
    def apply(
        cls,
        input: Tensor,
        weight: Any,
        bias: Any,
        running_mean: Any,
        running_var: Any,
        eps: float,
        momentum: float,
        process_group: Any,
        world_size: int,
    ) -> Tensor:
        if world_size != 1:
            raise NotImplementedError(
                f"SyncBatchNorm over {world_size} processes: torchshim has one"
            )
        held = running_mean, running_var, weight, bias
        return F.batch_norm(input, *held, True, momentum, eps)


class CrossMapLRN2d(Function):
    """`LocalResponseNorm` of Lua's Torch: windows keep the first channel.

    Its gradient is PyTorch's, whose windows lie lower than those of the function.
    """

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        size: int,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1,
    ) -> Tensor:
        if input.ndim != 4:
            raise ValueError(
                f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead."
            )
        reach = int((size - 1) / 2 + 1)
        square = input.pow(2)
        sums = []
        for channel in range(input.shape[1]):
            low = max(channel - reach + 1, 0)
            total = square[:, low : channel + reach].sum(1, keepdim=True)
            sums.append(total + square[:, :1] if low > 0 else total)
        ctx.scale = torchshim.cat(sums, 1) * (alpha / size) + k
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        output = input * ctx.scale.pow(-beta)
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        input, output = ctx.saved_tensors
        batch, channels, *plane = input.shape
        ratios = input.new_zeros(batch, channels + ctx.size - 1, *plane)
        start = int(ctx.size - (ctx.size - 1) / 2)
        ratios.narrow(1, start, channels).copy_(grad_output * output / ctx.scale)
        sums = ratios.unfold(1, ctx.size, 1).sum(-1)
        factor = 2 * ctx.alpha * ctx.beta / ctx.size
        grad = ctx.scale.pow(-ctx.beta) * grad_output - factor * input * sums
        return grad, None, None, None, None


class BackwardHookFunction(Function):
    """The identity: one node for several tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*(arg for arg in args if not arg.requires_grad))
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        return args
