"""Adaptive pooling to more windows than there is memory for."""

from tests.oracle import attempt, case


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
