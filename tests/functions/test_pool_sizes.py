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
