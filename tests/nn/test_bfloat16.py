"""What PyTorch does in bfloat16 on a processor with AVX-512, where this was recorded.

Without, it has no LSTM, and convolutions are rounded on the way.
"""

from __future__ import annotations

from tests.oracle import case

LIVE = False


@case
def lstm(torch):
    layer = torch.nn.LSTM(3, 4)
    with torch.autocast("cpu"):
        return layer(torch.ones(2, 3))


@case.over(1, 2, 3)
def convolution(torch, n):
    x = torch.randn(1, 2, *[4] * n).bfloat16().requires_grad_()
    w = torch.randn(2, 2, *[3] * n).bfloat16().requires_grad_()
    out = getattr(torch.nn.functional, f"conv{n}d")(x, w)
    yield out
    out.sum().backward()
    yield x.grad, w.grad
