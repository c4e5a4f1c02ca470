"""Gradients in buckets, as communication hooks of `DistributedDataParallel` see them.

In the first backward there is one bucket with the parameters in their order, from then
on as many as their sizes ask for, in the order in which gradients came.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim import futures
from torchshim._tensor import Tensor

__all__ = ["GradBucket", "Reducer", "check_hook"]

# What the first bucket holds before it is closed.
FIRST_BUCKET_BYTES = 1024 * 1024


class GradBucket:
    """Gradients that travel together: one flat tensor, and views of it."""

    __module__ = "torch._C._distributed_c10d"

    def __init__(self, index: int, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._parameters, self._last = index, list(parameters), last
        grads = [_grad_of(p).reshape(-1) for p in self._parameters]
        self._buffer = torchshim.cat(grads)

    def index(self) -> int:
        """Which bucket it is."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, as one vector."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Puts another vector in the place of the gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The vector's parts, in the shapes of the parameters."""
        return self.split(self._buffer)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket of this backward follows."""
        return self._last

    def split(self, flat: Tensor) -> list[Tensor]:
        """Parts of a vector in the shapes of the parameters."""
        parts = flat.split([p.numel() for p in self._parameters])
        return [q.view(p.shape) for q, p in zip(parts, self._parameters, strict=True)]


def _grad_of(parameter: Any) -> Tensor:
    grad = parameter.grad
    assert grad is not None
    return grad


def check_hook(hook: Any) -> None:
    """TypeError or ValueError for what cannot be a communication hook."""
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook, eval_str=True)
    annotation = signature.parameters["bucket"].annotation
    if annotation not in (inspect.Parameter.empty, GradBucket):
        raise ValueError(
            "Communication hook: bucket annotation should be dist.GradBucket."
        )
    returned = signature.return_annotation
    if returned not in (inspect.Signature.empty, futures.Future[Tensor]):
        raise ValueError(
            "Communication hook: return annotation should be "
            "torch.futures.Future[torch.Tensor]."
        )
    if hook.__name__ in ("bf16_compress_hook", "bf16_compress_wrapper_hook"):
        raise TypeError(
            "BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or "
            "XPU and XCCL"
        )


def assigned(parameters: Sequence[Tensor], cap: float) -> list[list[Tensor]]:
    """Parameters in buckets: each is closed once it holds the bytes that it may."""
    open_: dict[Any, list[Tensor]] = {}
    limits: dict[Any, float] = {}
    closed: list[list[Tensor]] = []
    for parameter in parameters:
        key = parameter.dtype, parameter.device
        bucket = open_.setdefault(key, [])
        bucket.append(parameter)
        if sum(p.nbytes for p in bucket) >= limits.get(key, FIRST_BUCKET_BYTES):
            closed.append(open_.pop(key))
            limits[key] = cap
    closed += open_.values()
    place = {id(p): i for i, p in enumerate(parameters)}
    return sorted(closed, key=lambda bucket: min(place[id(p)] for p in bucket))


class Reducer:
    """Calls a communication hook for each bucket whose gradients are there."""

    def __init__(
        self, parameters: Sequence[Tensor], hook: Any, state: Any, cap: float
    ) -> None:
        self.hook, self.state, self.cap = hook, state, cap
        self.buckets = [list(parameters)]
        self.rebuilt = False
        self.armed = False
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def prepare(self, synced: bool) -> None:
        """Before a forward whose gradients are to travel, or stay."""
        self.armed = synced
        self.came: list[Tensor] = []
        self.next = 0
        self.sent: list[tuple[GradBucket, Any]] = []

    def _arrived(self, parameter: Tensor) -> None:
        if not self.armed:
            return
        self.came.append(parameter)
        here = {id(p) for p in self.came}
        with torchshim.no_grad():
            while self.next < len(self.buckets):
                bucket = self.buckets[self.next]
                if not all(id(p) in here for p in bucket):
                    return
                last = self.next == len(self.buckets) - 1
                self._send(GradBucket(self.next, bucket, last))
                self.next += 1
            self._finish()

    def _send(self, bucket: GradBucket) -> None:
        future = self.hook(self.state, bucket)
        kind = type(future)
        if not isinstance(future, futures.Future):
            name = "torch.Tensor" if isinstance(future, Tensor) else kind.__name__
            raise RuntimeError(
                f"Unable to cast Python instance of type {kind} to C++ type '?' "
                "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode "
                "for details). DDP communication hook's callback must return a "
                f"torch.futures.Future object, but got {name}"
            )
        self.sent.append((bucket, future))

    def _finish(self) -> None:
        for bucket, future in self.sent:
            parts = bucket.split(future.wait())
            for parameter, part in zip(bucket.parameters(), parts, strict=True):
                _grad_of(parameter).copy_(part)
        self.armed = False
        if not self.rebuilt:
            self.buckets = assigned(self.came, self.cap)
            self.rebuilt = True
