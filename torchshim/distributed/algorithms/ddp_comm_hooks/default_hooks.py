"""Gradients reduced, as they are or shortened: not supported."""

from torchshim._errors import unsupported
from torchshim.distributed.algorithms.ddp_comm_hooks import REASON

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

_PLACE = "distributed.algorithms.ddp_comm_hooks.default_hooks"
allreduce_hook = unsupported(f"{_PLACE}.allreduce_hook", REASON)
fp16_compress_hook = unsupported(f"{_PLACE}.fp16_compress_hook", REASON)
bf16_compress_hook = unsupported(f"{_PLACE}.bf16_compress_hook", REASON)
fp16_compress_wrapper = unsupported(f"{_PLACE}.fp16_compress_wrapper", REASON)
bf16_compress_wrapper = unsupported(f"{_PLACE}.bf16_compress_wrapper", REASON)
