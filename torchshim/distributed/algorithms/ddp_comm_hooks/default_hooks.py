"""Gradients reduced, as they are or as half types.

https://docs.pytorch.org/docs/2.13/ddp_comm_hooks.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._core.dtypes import dtype
from torchshim._tensor import Tensor
from torchshim.distributed import _collectives, _group
from torchshim.distributed._buckets import GradBucket
from torchshim.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _reduced(group: Any, tensor: Tensor) -> Future[Any]:
    """The sum over the group of a tensor divided by its size, which is changed."""
    tensor.div_(_group.chosen(group).size())
    work: Any = _collectives.all_reduce(tensor, group=group, async_op=True)
    return work.get_future()


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """What happens without a hook: gradients are averaged."""
    found = _reduced(process_group, bucket.buffer())
    return found.then(lambda future: future.value()[0])


def _compressed(kind: dtype, group: Any, bucket: GradBucket) -> Future[Tensor]:
    found = _reduced(group, bucket.buffer().to(kind))
    return found.then(lambda future: bucket.buffer().copy_(future.value()[0]))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Gradients are averaged in float16."""
    return _compressed(torchshim.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Gradients are averaged in bfloat16; modules on the CPU refuse the hook."""
    return _compressed(torchshim.bfloat16, process_group, bucket)


def _wrapped(hook: Hook, kind: dtype) -> Hook:
    def wrapped(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        bucket.set_buffer(bucket.buffer().to(kind))
        found = hook(hook_state, bucket)
        return found.then(lambda future: bucket.buffer().copy_(future.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees gradients in float16."""
    made: Any = _wrapped(hook, torchshim.float16)
    made.__name__ = made.__qualname__ = "fp16_compress_wrapper_hook"
    return made


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees gradients in bfloat16; modules on the CPU refuse it."""
    made: Any = _wrapped(hook, torchshim.bfloat16)
    made.__name__ = made.__qualname__ = "bf16_compress_wrapper_hook"
    return made
