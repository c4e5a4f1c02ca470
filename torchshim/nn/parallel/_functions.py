"""What moves tensors between devices: one device goes."""

from __future__ import annotations

from typing import Any

from torchshim._errors import unsupported
from torchshim.autograd.function import Function

__all__ = ["Broadcast", "Gather", "Scatter"]

_REASON = "there is one device"
Gather = unsupported("nn.parallel._functions.Gather", _REASON)
Scatter = unsupported("nn.parallel._functions.Scatter", _REASON)


class Broadcast(Function):
    """Copies of tensors on several GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> tuple[Any, ...]:
        """Refuses tensors on the CPU, and more than one device."""
        if any(tensor.device.type == "cpu" for tensor in inputs):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        raise NotImplementedError("torchshim computes on one device only")
