"""`grid_sample`, `affine_grid`, fractional pooling and `ctc_loss`."""

from __future__ import annotations

import itertools

import pytest

import torchshim
from tests.oracle import attempt, case

MODES = list(
    itertools.product(
        ("bilinear", "nearest", "bicubic"),
        ("zeros", "border", "reflection"),
        (False, True),
    )
)


def gradients(torch, result, *inputs):
    weight = torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape)
    return torch.autograd.grad((result * (weight % 7 - 3)).sum(), inputs)


@case.over("bilinear", "nearest", "bicubic")
def grids_of_images(torch, mode):
    sample = torch.nn.functional.grid_sample
    image = torch.randn(2, 2, 3, 4, dtype=torch.float64)
    points = torch.randn(2, 3, 2, 2, dtype=torch.float64) * 1.3
    points[0, 0] = torch.tensor([[-1.0, 1.0], [0.0, 3.5]])
    image.requires_grad_()
    points.requires_grad_()
    for _, padding, corners in (m for m in MODES if m[0] == mode):
        out = sample(image, points, mode, padding, corners)
        yield padding, corners, out, gradients(torch, out, image, points)


@case
def grids_of_volumes(torch):
    sample = torch.nn.functional.grid_sample
    image = torch.randn(1, 2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    points = torch.randn(1, 2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    for mode, padding, corners in MODES:
        if mode != "bicubic":
            out = sample(image, points, mode, padding, corners)
            yield mode, padding, corners, out, gradients(torch, out, image, points)


@case
def grids_twice(torch):
    image = torch.randn(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    points = (torch.rand(1, 2, 2, 2, dtype=torch.float64) - 0.5).requires_grad_()
    out = torch.nn.functional.grid_sample(image, points, align_corners=True)
    first = torch.autograd.grad((out**2).sum(), (image, points), create_graph=True)
    yield torch.autograd.grad(sum((g**2).sum() for g in first), (image, points))


@case
def grids_at_the_edge_of_numbers(torch):
    sample = torch.nn.functional.grid_sample
    image = torch.arange(4.0).reshape(1, 1, 2, 2)
    far = [1e10, -1e10, float("inf"), float("-inf"), float("nan")]
    points = torch.tensor([[[[v, 0.0] for v in far]]])
    for mode, padding, corners in MODES:
        if padding == "zeros" and mode != "bicubic":
            yield sample(image, points, mode, padding, corners)
    volume, more = image[None], torch.cat([points[None], points[None, ..., 1:]], -1)
    yield sample(volume, more, align_corners=True)
    one = torch.ones(1, 1, 1, 1)
    for mode, padding, corners in MODES:
        yield sample(one, points[:, :, :2] * 1e-10, mode, padding, corners)
    empty = torch.empty
    yield sample(empty(0, 1, 2, 2), empty(0, 3, 1, 2), align_corners=True)
    yield sample(empty(1, 0, 2, 2), torch.zeros(1, 3, 1, 2), align_corners=True)
    yield sample(image, empty(1, 0, 1, 2), align_corners=False)
    half = sample(image.half(), points.clamp(-1, 1).half(), align_corners=False)
    yield half.dtype, torch.grid_sampler(image, points, 1, 1, True)


@case
def grid_errors(torch):
    sample = torch.nn.functional.grid_sample
    image, points = torch.ones(1, 2, 3, 4), torch.ones(1, 2, 2, 2)
    yield attempt(sample, image, points)
    for i, p in (
        (image, points.double()),
        (image, points[0]),
        (image[0], points[0]),
        (image, torch.ones(2, 2, 2, 2)),
        (image, torch.ones(1, 2, 2, 3)),
        (image[:, :, :0], points),
        (image.int(), points.int()),
        (image.double(), points),
    ):
        yield attempt(sample, i, p, align_corners=False)
    yield attempt(sample, image, points, mode="x")
    yield attempt(sample, image, points, padding_mode="x")
    volume, more = torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 3)
    yield attempt(sample, volume, more, mode="bicubic", align_corners=False)
    for each in (torch.grid_sampler_2d, torch.grid_sampler_3d):
        for x, p in ((image, points), (volume, more), (image[0], points[0])):
            yield attempt(each, x, p, 0, 0, True)
        yield attempt(each, volume, more, 2, 0, True)


@case
def grids_without_vectors(torch):
    image = torch.arange(12.0).view(1, 1, 3, 4).requires_grad_()
    points = torch.linspace(-1.2, 1.1, 8).view(1, 2, 2, 2).requires_grad_()
    for mode in range(2):
        y = torch._grid_sampler_2d_cpu_fallback(image, points, mode, 1, False)
        yield y.detach(), torch.autograd.grad(y.square().sum(), (image, points))


@case
def affine_grids(torch):
    grid = torch.nn.functional.affine_grid
    theta = torch.randn(2, 2, 3, requires_grad=True)
    for corners in (False, True):
        out = grid(theta, (2, 1, 3, 2), corners)
        yield out, gradients(torch, out, theta)
    volumes = torch.randn(1, 3, 4, dtype=torch.float64)
    yield grid(volumes, torch.Size((1, 1, 2, 1, 3)), False)
    yield attempt(grid, volumes, (1, 1, 2, 1, 3), True)
    yield attempt(grid, theta, [2, 1, 2, 2])
    for given, size in (
        (theta, (2, 1, 2)),
        (theta[0], (2, 1, 2, 2)),
        (theta, (2, 1, 2, 2, 2)),
        (theta, (3, 1, 2, 2)),
        (theta, (2, 1, 0, 2)),
        (theta.int(), (2, 1, 2, 2)),
        (theta.half(), (2, 1, 1, 2)),
    ):
        yield attempt(grid, given, size, False)


@case
def fractional_pools(torch):
    F = torch.nn.functional
    image = torch.randn(2, 2, 6, 7, requires_grad=True)
    volume = torch.randn(1, 2, 5, 6, 7, requires_grad=True)
    for pool, x in (
        (F.fractional_max_pool2d, image),
        (F.fractional_max_pool3d, volume),
    ):
        n = x.dim() - 2
        out, where = pool(x, 2, 3, return_indices=True)
        yield out, where, gradients(torch, out, x)
        yield pool(x, 3, output_ratio=(0.5,) * n)
        yield pool(x[0], (2, 3, 2)[:n], output_size=(3, 2, 1)[:n])
        samples = torch.tensor([0.0, 0.5, 0.99][:n]).expand(2, 2, n)
        yield pool(x, 2, 3, _random_samples=samples)
        yield pool(torch.full_like(x, torch.nan), 2, 2, None, True, samples)
        yield attempt(pool, x, 3)
        yield attempt(pool, x, 3, 6)
        yield attempt(pool, x, 3, (2, 6, 2)[:n])
        yield attempt(pool, x, (3,) * (n + 2), 2)
        yield attempt(pool, x, 3, (2,) * (n + 2))
        yield attempt(pool, x[:, :0], 3, 2)
        yield attempt(pool, x, 3, 2, None, False, torch.rand(2, 2, n + 1))
        yield attempt(pool, x, 3, 2, None, False, torch.rand(2, 3, n))
        yield attempt(pool, x, 3, 2, None, False, torch.rand(2, n))
        yield attempt(pool, x, 3, 2, None, False, torch.rand(2, 2, n).double())
    with_indices = F.fractional_max_pool2d_with_indices
    yield with_indices(image, 2, 2, None, False, torch.zeros(2, 2, 2))


@case.over("float16", "bfloat16", "float32")
def fractional_windows(torch, kind):
    """Where windows are is computed in the dtype of the samples."""
    F, dtype = torch.nn.functional, getattr(torch, kind)
    image = torch.arange(1600.0).view(1, 1, 50, 32).to(dtype)
    volume = torch.arange(20.0 * 22 * 50).view(1, 1, 20, 22, 50).to(dtype)
    for first in (0.3, 0.77, 0.91):
        samples = torch.tensor([[[first, 1 - first, 0.6]]], dtype=dtype)
        pool = F.fractional_max_pool2d_with_indices
        yield pool(image, 3, (25, 16), _random_samples=samples[..., :2])[1].sum((2, 3))
        pool = F.fractional_max_pool3d_with_indices
        yield pool(volume, 2, (9, 11, 25), _random_samples=samples)[1].sum((2, 3, 4))


@case
def fractional_layers(torch):
    nn = torch.nn
    for kind, x in (
        (nn.FractionalMaxPool2d, torch.randn(1, 2, 6, 7)),
        (nn.FractionalMaxPool3d, torch.randn(1, 2, 6, 7, 5)),
    ):
        yield repr(kind(2, output_size=3)), kind(2, output_size=3)(x)
        yield kind(2, output_ratio=0.5, return_indices=True)(x)
        yield attempt(kind, 2)
        yield attempt(kind, 2, output_size=2, output_ratio=0.5)
        yield attempt(kind, 2, output_ratio=1.5)


def frames(torch, batch=2, dtype=None):
    scores = torch.randn(6, batch, 4, dtype=dtype or torch.float64)
    return scores.log_softmax(-1).detach().requires_grad_()


@case.over("none", "mean", "sum")
def ctc(torch, reduction):
    F = torch.nn.functional
    x = frames(torch, 3)
    padded = torch.tensor([[1, 2, 9], [3, 3, 1], [0, 0, 0]])
    joined = torch.tensor([1, 2, 3, 3, 1])
    lengths, counts = torch.tensor([6, 5, 4]), torch.tensor([2, 3, 0])
    for targets, frame_counts, label_counts in (
        (padded, lengths, counts),
        (joined, lengths, counts),
        (joined.int(), (6, 5, 4), (2, 3, 0)),
        (padded, lengths.int(), counts.int()),
    ):
        loss = F.ctc_loss(x, targets, frame_counts, label_counts, reduction=reduction)
        yield loss, torch.autograd.grad(loss.sum(), x)
    yield F.ctc_loss(x, padded, lengths, counts, 3, reduction)


@case
def ctc_of_no_targets(torch):
    F, x = torch.nn.functional, frames(torch)
    for targets in (torch.zeros(0, dtype=torch.int64), torch.zeros((2, 0)).long()):
        for lengths, counts in (
            ((6, 5), (0, 0)),
            (torch.tensor([6, 5]), torch.tensor([0, 0])),
        ):
            loss = F.ctc_loss(x, targets, lengths, counts, reduction="none")
            yield loss, torch.autograd.grad(loss.sum(), x)


@case
def ctc_of_what_does_not_fit(torch):
    F = torch.nn.functional
    x = frames(torch)
    targets = torch.tensor([[1, 1], [3, 1]])
    for zero_infinity in (False, True):
        loss = F.ctc_loss(
            x, targets, (2, 5), (2, 2), 0, "none", zero_infinity=zero_infinity
        )
        yield loss, torch.autograd.grad(loss.sum(), x)
    yield F.ctc_loss(x, targets, (2, 5), (2, 2), zero_infinity=True)
    yield F.ctc_loss(x, targets, (0, 5), (0, 2), reduction="none")
    yield F.ctc_loss(x, targets, (0, 5), (2, 2), reduction="none")


@case
def ctc_of_one_sequence(torch):
    F = torch.nn.functional
    x, targets = frames(torch, 1)[:, 0], torch.tensor([1, 2])
    for reduction in ("none", "mean"):
        yield F.ctc_loss(x, targets, (5,), (2,), reduction=reduction)
        five, two = torch.tensor(5), torch.tensor(2)
        yield F.ctc_loss(x, targets, five, two, reduction=reduction)
    yield torch.ctc_loss(x, targets, (5,), (2,), 0, 2, True)
    layer = torch.nn.CTCLoss(reduction="sum", zero_infinity=True)
    yield layer(x.unsqueeze(1), targets[None], (5,), (2,)), repr(layer)


@case
def ctc_errors(torch):
    x, targets = frames(torch), torch.tensor([[1, 2], [3, 1]])

    def loss(x, targets, lengths, counts, **options):
        lengths, counts = torch.tensor(lengths), torch.tensor(counts)
        return torch.nn.functional.ctc_loss(
            x, targets, lengths, counts, **options
        ).item()

    two, five = [2, 2], [5, 5]
    yield attempt(loss, x, targets, five, [2])
    yield attempt(loss, x, targets, [5], two)
    yield attempt(loss, x, targets, [7, 5], two)
    yield attempt(loss, x, targets, [-1, 5], two)
    yield attempt(loss, x, targets, five, [3, 2])
    yield attempt(loss, x, targets, five, [-3, 2])
    yield attempt(loss, x, targets.flatten(), five, [3, 2])
    yield attempt(loss, x, targets.flatten(), five, [1, 2])
    yield attempt(loss, x, targets, five, two, blank=7)
    yield attempt(loss, x, targets, five, two, reduction="q")
    yield attempt(loss, x, targets[:1], five, two)
    yield attempt(loss, x, targets[None], five, two)
    yield attempt(loss, x.int(), targets, five, two)
    yield attempt(loss, x.half(), targets, five, two)
    yield attempt(loss, x, targets, [5.0, 5], two)
    yield attempt(loss, x, targets, five, [2.0, 2])
    yield attempt(loss, x[:, 0, 0], targets, five, two)


@case
def reductions_by_number(torch):
    x, targets = frames(torch), torch.tensor([[1, 2], [3, 1]])
    yield [torch.ctc_loss(x, targets, (5, 5), (2, 2), 0, r) for r in range(3)]


@case
def lanczos(torch):
    resize = torch.nn.functional.interpolate
    x = torch.randn(1, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    flags = {"mode": "lanczos", "antialias": True}
    for target in ({"size": 3}, {"size": (9, 7)}, {"scale_factor": 0.55}):
        out = resize(x, **target, **flags)
        yield out, gradients(torch, out, x)
    yield attempt(resize, x, 3, mode="lanczos")
    yield attempt(resize, x, 3, align_corners=True, **flags)
    yield attempt(resize, x[0], 3, **flags)


@case
def unpooling_errors(torch):
    F = torch.nn.functional
    far = torch.tensor([[[[37]]]])
    yield attempt(lambda: F.max_unpool2d(torch.ones(1, 1, 1, 1), far, 2).sum().item())
    volume = torch.ones(1, 1, 1, 1, 1)
    yield attempt(lambda: F.max_unpool3d(volume, far[None], 2).sum().item())
    yield attempt(F.max_unpool3d, volume, far[None, :, :0], 2)
    yield attempt(F.max_unpool2d, volume[0], far[:, :0], 2)
    signal = torch.ones(1, 1, 2)
    yield attempt(lambda: F.max_unpool1d(signal, far[0, :, :, [0, 0]], 2).sum().item())
    yield attempt(F.max_unpool1d, signal, far[0], 2)


@case
def points_between_two_pixels(torch):
    # The identity's points lie on pixels: the last bit says on which side of them.
    functional = torch.nn.functional
    for size in ((2, 1, 7, 9), (1, 2, 10, 5), (1, 1, 3, 4, 5)):
        n = len(size) - 2
        theta = torch.eye(n, n + 1).expand(size[0], n, n + 1).clone().requires_grad_()
        for corners in (False, True):
            grid = functional.affine_grid(theta, size, align_corners=corners)
            yield [
                [p.hex() for p in axis] for axis in grid[0].flatten(0, -2).T.tolist()
            ]
        image = torch.arange(float(torch.Size(size).numel())).sin().view(size)
        moved = functional.grid_sample(
            image, functional.affine_grid(theta, size, align_corners=False)
        )
        (moved * image.cos()).sum().backward()
        yield theta.grad


def test_wrong_lengths_are_told_without_a_read():
    def lose(frames, labels):
        x = torchshim.zeros(5, 2, 4).log_softmax(-1)
        return F.ctc_loss(
            x, torchshim.ones(2, 3, dtype=torchshim.int64), frames, labels
        )

    F = torchshim.nn.functional
    with pytest.raises(RuntimeError, match="at most 5, but got value 6"):
        lose((6, 5), (3, 3))
    with pytest.raises(RuntimeError, match="size at least 9 at dimension 1"):
        lose(torchshim.tensor([5, 5]), torchshim.tensor([3, 9]))


@case.over(mode=["nearest", "nearest-exact"], size=[160, 150])
def gradients_of_enlarged_images_are_added_up_in_float32(torch, mode, size):
    x = torch.tensor([[[1.0, 2.0]]], dtype=torch.bfloat16, requires_grad=True)
    out = torch.nn.functional.interpolate(x, size=(size,), mode=mode)
    steps = torch.arange(float(size)).sin().bfloat16().view(1, 1, size)
    out.backward(steps + 1)
    yield x.grad
