"""Which kernels attention may use, masks and scores as functions: `torch.nn.attention`.

XLA chooses how attention is computed, so that the kernels change no result here; where
none of those allowed could serve on the CPU, PyTorch's error is raised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchshim._functions.nn_attention import sdp_switches
from torchshim.backends.cuda import SDPBackend
from torchshim.nn.attention._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

#: Whether PyTorch says why it does not use a fused kernel. Nothing is said here.
WARN_FOR_UNFUSED_KERNELS = False

_SWITCHES = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "overrideable": SDPBackend.OVERRIDEABLE,
}


# In this order PyTorch asks them.
_order = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
]


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[dict[str, Any]]:
    """Only these kernels within a block; `set_priority`: the first are preferred.

    AssertionError for anything but a `SDPBackend` or a list. Follows
    ``torch.nn.attention.sdpa_kernel``.

    >>> import torchshim as torch
    >>> q = torch.ones(1, 1, 2, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 2])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend "
            f"instances, got {type(backends).__name__}"
        )
    allowed = [backends] if isinstance(backends, SDPBackend) else backends
    before, order = {name: sdp_switches[name] for name in _SWITCHES}, _order[:]
    try:
        if set_priority:
            _order[:] = [*allowed, *(kind for kind in order if kind not in allowed)]
        sdp_switches.update({n: kind in allowed for n, kind in _SWITCHES.items()})
        yield {}
    finally:
        sdp_switches.update(before)
        _order[:] = order


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that are allowed; `with_priority`: in the order they are asked."""
    allowed = [kind for name, kind in _SWITCHES.items() if sdp_switches[name]]
    return sorted(allowed, key=_order.index) if with_priority else allowed
