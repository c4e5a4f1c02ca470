"""Sizes of pooling: more windows than there is memory for, and what is no size."""

from __future__ import annotations

import math

from tests.oracle import attempt, case, evaluate


@case
def too_many_windows(torch):
    nn = torch.nn.functional
    line, image = torch.ones(2, 2, 2), torch.ones(2, 2, 2, 2)
    for size in (2**62 - 1, 2**62, 2**61, 2**60):
        yield attempt(nn.adaptive_max_pool1d, line, size)
        yield attempt(nn.adaptive_avg_pool1d, line, size)
        yield attempt(nn.adaptive_max_pool2d, image, size)
        yield attempt(nn.adaptive_avg_pool2d, image, (1, size))
        yield attempt(nn.adaptive_avg_pool3d, image, (1, 1, size))
        yield attempt(nn.adaptive_max_pool3d, image[None], size)


@case
def unpooled(torch):
    nn = torch.nn.functional
    for n in (1, 2, 3):
        pool, back = getattr(nn, f"max_pool{n}d"), getattr(nn, f"max_unpool{n}d")
        x = torch.zeros(0, 3, *[4] * n, requires_grad=True)
        found, at = pool(x, 2, stride=2, return_indices=True)
        wide = back(found, at, 2, stride=2)
        wide.sum().backward()
        yield wide, x.grad
        y, at = (
            torch.ones(1, 3, *[2] * n),
            torch.zeros(1, 3, *[2] * n, dtype=torch.long),
        )
        for count in (1, 2, 3, 4):
            yield attempt(back, y, at, [2] * count)
            yield attempt(back, y, at, 2, stride=[2] * count)
            yield attempt(back, y, at, 2, padding=[0] * count)


@case.lines("""
F.max_pool1d(x, 'a')
F.max_pool1d(x, 2.5)
F.max_pool2d(x, 2.5)
F.max_pool2d(x, 'a')
F.max_pool2d(x, None)
F.max_pool2d(x, (2, 2.5))
F.max_pool2d(x, 2, 2.5)
F.max_pool2d(x, 2, (1, 1, 1))
F.max_pool2d(x, 2, padding='same')
F.max_pool2d(x, 2, ceil_mode=3)
F.max_pool2d([1], 2)
F.max_pool3d(x, 2, (1, 2))
F.avg_pool2d(x, 2, (2, 2, 2))
F.avg_pool3d(x, (2, 2))
F.adaptive_avg_pool2d(x, 'a')
F.adaptive_avg_pool2d(x, 1.5)
F.adaptive_avg_pool2d(x, (1.5, 2))
F.adaptive_avg_pool2d(x, None)
F.adaptive_avg_pool2d(x, (1, 2, 3))
F.adaptive_avg_pool1d(x[0], (3, 2))
F.adaptive_max_pool1d(x[0], 'a')
F.adaptive_max_pool1d(x[0], (1, 2))
F.adaptive_max_pool2d(x, 'a')
F.adaptive_max_pool2d(x, (1, 2, 3))
F.adaptive_max_pool3d(x, (1, 2))
F.fractional_max_pool3d(x, 2, output_size=3)
F.fractional_max_pool3d(x, 1, output_size=(1, 2, 2)).shape
""")
def no_sizes(torch, line):
    return evaluate(torch, line, x=torch.arange(16.0).view(1, 1, 4, 4))


@case
def infinite_norms(torch):
    nn = torch.nn.functional
    x = torch.randn(2, 1, 4, 4, requires_grad=True)
    for norm in (math.inf, -math.inf):
        for pool, given in (
            (nn.lp_pool1d, x[0]),
            (nn.lp_pool2d, x),
            (nn.lp_pool3d, x),
        ):
            found = pool(given, norm, 2, ceil_mode=True)
            yield found, torch.autograd.grad(found.sum(), x)
            yield pool(given, norm, 2, 1)


@case(message=False)
def no_sizes_of_images(torch):
    resized, x = torch.nn.functional.interpolate, torch.arange(16.0).view(1, 1, 4, 4)
    for size in (2.5, (2.5, 2), (2, 2.0), torch.tensor(2)):
        yield attempt(resized, x, size)
    yield attempt(resized, x, 2.5, mode="bilinear")
