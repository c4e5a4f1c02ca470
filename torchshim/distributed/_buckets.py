"""How `DistributedDataParallel` averages gradients, and hooks that do so instead.

Hooks see gradients in buckets. In the first backward there is one bucket with the
parameters in their order, from then on as many as their sizes ask for, in the order in
which gradients came.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim import futures
from torchshim._core.dtypes import array_dtype
from torchshim._functions.creation import placed
from torchshim._tensor import Tensor
from torchshim.autograd import Variable
from torchshim.autograd.grad_mode import no_grad
from torchshim.distributed._checks import host
from torchshim.distributed._reductions import RedOpType

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
    """Averages gradients at the end of a backward, or has a communication hook do so.

    Without a hook all gradients of a dtype are one exchange, whatever the buckets: the
    values are read, which ends the recording, and there is nothing to overlap with.
    """

    def __init__(
        self, parameters: Sequence[Tensor], group: Any, cap: float, unused: bool
    ) -> None:
        self.parameters, self.group = list(parameters), group
        self.hook: Any = None
        self.state: Any = None
        self.cap, self.unused = cap, unused
        self.buckets = [self.parameters]
        self.rebuilt = False
        self.armed = self.unfinished = False
        # By what sums are divided, if not by the number of members (see `Join`).
        self.divisor: int | None = None
        self.came: list[Tensor] = []
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def prepare(self, synced: bool) -> None:
        """After a forward whose gradients are to travel, or stay."""
        if synced and self.unfinished:
            raise RuntimeError(self._told_of_unused())
        # Nothing is asked of a forward whose result nobody differentiates.
        self.armed, self.came, self.unfinished = synced, [], False

    def _told_of_unused(self) -> str:
        here = {id(p) for p in self.came}
        places = enumerate(self.parameters)
        missing = " ".join(str(i) for i, p in places if id(p) not in here)
        return (
            "Expected to have finished reduction in the prior iteration before "
            "starting a new one. This error indicates that your module has parameters "
            "that were not used in producing loss. You can enable unused parameter "
            "detection by passing the keyword argument `find_unused_parameters=True` "
            "to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all "
            "`forward` function outputs participate in calculating loss. \nIf you "
            "already have done the above, then the distributed data parallel module "
            "wasn't able to locate the output tensors in the return value of your "
            "module's `forward` function. Please include the loss function and the "
            "structure of the return value of `forward` of your module when reporting "
            "this issue (e.g. list, dict, iterable).\nParameter indices which did not "
            f"receive grad for rank {self.group.rank()}: {missing}\n In addition, you "
            "can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO "
            "or DETAIL to print out information about which particular parameters did "
            "not receive gradient on this rank as part of this error"
        )

    def _arrived(self, parameter: Tensor) -> None:
        if not self.armed:
            return
        if not self.came:
            self.unfinished = True
            Variable._execution_engine.queue_callback(self._finish)
        self.came.append(parameter)

    @no_grad()
    def _finish(self) -> None:
        """At the end of the backward: all gradients that come are there."""
        whole = len(self.came) == len(self.parameters)
        if not self.armed or not (whole or self.unused):
            return  # the next forward says so
        self.armed = self.unfinished = False
        if self.hook is not None:
            self._by_hook()
        elif self.group.size() > 1:
            self._average()

    def _average(self) -> None:
        here = {id(p) for p in self.came}
        used = self._used([id(p) in here for p in self.parameters])
        flags = zip(self.parameters, used, strict=True)
        for parameters in _by_dtype([p for p, there in flags if there]):
            grads = [_values(p) for p in parameters]
            flat = np.concatenate([grad.reshape(-1) for grad in grads])
            mean = placed(self._mean(flat), parameters[0].device)
            parts = mean.split([p.numel() for p in parameters])
            for parameter, part in zip(parameters, parts, strict=True):
                part = part.view(parameter.shape)
                if parameter.grad is None:
                    parameter.grad = part.clone()
                else:
                    parameter.grad.copy_(part)

    def _used(self, here: list[bool]) -> list[bool]:
        """Which parameters have a gradient in any process."""
        if not self.unused:
            return here
        channel = self.group._channel
        counts = np.array(here, np.int32)
        total = channel.all_reduce(channel.ticket(), RedOpType.SUM, counts)
        return [bool(count) for count in total]

    def _mean(self, flat: np.ndarray) -> np.ndarray:
        channel = self.group._channel
        divided = flat / flat.dtype.type(self.divisor or self.group.size())
        return channel.all_reduce(channel.ticket(), RedOpType.SUM, divided)

    def match(self) -> None:
        """Takes part in the others' averages, with zeros: this process has no data."""
        used = self._used([False] * len(self.parameters))
        if not self.unused:
            used = [True] * len(used)
        flags = zip(self.parameters, used, strict=True)
        for parameters in _by_dtype([p for p, there in flags if there]):
            count = sum(p.numel() for p in parameters)
            self._mean(np.zeros(count, array_dtype(parameters[0].dtype)))

    def _by_hook(self) -> None:
        sent = []
        for index, parameters in enumerate(self.buckets):
            bucket = GradBucket(index, parameters, index == len(self.buckets) - 1)
            sent.append((bucket, self._called(bucket)))
        for bucket, future in sent:
            parts = bucket.split(future.wait())
            for parameter, part in zip(bucket.parameters(), parts, strict=True):
                _grad_of(parameter).copy_(part)
        if not self.rebuilt:
            self.buckets = assigned(self.came, self.cap)
            self.rebuilt = True

    def _called(self, bucket: GradBucket) -> Any:
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
        return future


def _values(parameter: Tensor) -> np.ndarray:
    """A gradient's values: zeros where there is none."""
    if parameter.grad is None:
        return np.zeros(tuple(parameter.shape), array_dtype(parameter.dtype))
    return host(parameter.grad)


def _by_dtype(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Parameters that are exchanged together."""
    found: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        found.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    return list(found.values())
