"""What moves tensors between devices: one device goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._device_index import _get_device_index
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.autograd.function import Function

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


def _refuse_cpu(name: str, tensors: Sequence[Any]) -> None:
    if any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError(f"{name} function not implemented for CPU tensors")


class Broadcast(Function):
    """Copies of tensors on several GPUs."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> tuple[Any, ...]:
        """Refuses tensors on the CPU, and more than one device."""
        _refuse_cpu("Broadcast", inputs)
        raise NotImplementedError("torchshim computes on one device only")


class ReduceAddCoalesced(Function):
    """Sums of tensors on several GPUs."""

    @staticmethod
    def forward(ctx: Any, destination: Any, num_inputs: int, *grads: Any) -> Any:
        """Refuses more than one device."""
        if len(grads) != num_inputs:
            raise NotImplementedError("torchshim computes on one device only")
        return grads


class Gather(Function):
    """Tensors of several GPUs joined on one: those of one GPU."""

    @classmethod
    def apply(cls, target_device: Any, dim: int, *inputs: Any) -> Tensor:
        _refuse_cpu("Gather", inputs)
        if all(each.dim() == 0 for each in inputs) and dim == 0:
            warn(
                "Was asked to gather along dimension 0, but all input tensors were "
                "scalars; will instead unsqueeze and return a vector."
            )
            inputs = tuple(each.view(1) for each in inputs)
        device = torchshim.device(target_device)
        return torchshim.cat(inputs, dim).to(device)


class Scatter(Function):
    """A tensor in pieces, one for each of several GPUs: for one."""

    @classmethod
    def apply(
        cls, target_gpus: Sequence[Any], chunk_sizes: Any, dim: int, input: Tensor
    ) -> tuple[Tensor, ...]:
        if len(target_gpus) != 1:
            raise NotImplementedError(
                f"scatter over {len(target_gpus)} devices: torchshim computes on one "
                "only"
            )
        device = torchshim.device("cuda", _get_device_index(target_gpus[0], True))
        return (input.to(device),)


def _get_stream(device: Any) -> Any:
    """A stream for copies to a device; None without accelerators and for the CPU."""
    if isinstance(device, int):
        device = torchshim.device("cuda", device)
    if device.type == "cpu" or not torchshim.accelerator.is_available():
        return None
    return torchshim.Stream(device)
