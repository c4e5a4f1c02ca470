"""Layers keep the memory format of what they are given."""

from tests.oracle import case


def images(torch, *shape):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return torch.rand(*shape).contiguous(memory_format=formats[len(shape)])


@case
def convolutions(torch):
    nn = torch.nn
    x, plain = images(torch, 2, 4, 6, 6), torch.rand(2, 4, 6, 6)
    for layer in (
        nn.Conv2d(4, 8, 3),
        nn.Conv2d(4, 8, 1),
        nn.Conv2d(4, 4, 3, groups=4),
        nn.ConvTranspose2d(4, 3, 2),
    ):
        yield layer(x).stride(), layer(plain).stride()
        layer.to(memory_format=torch.channels_last)
        yield layer(x).stride(), layer(plain).stride(), layer.weight.stride()
    y = x.clone().requires_grad_()
    layer(y).sum().backward()
    yield y.grad.stride(), layer.weight.grad.stride()
    x = images(torch, 2, 4, 3, 6, 6)
    yield nn.Conv3d(4, 2, 2)(x).stride(), nn.ConvTranspose3d(4, 2, 2)(x).stride()
    one = images(torch, 2, 1, 6, 6)
    yield one.stride(), nn.Conv2d(1, 3, 3)(one).stride()
    turned = torch.rand(2, 6, 6, 4).permute(0, 3, 1, 2)
    yield nn.Conv2d(4, 8, 3)(turned).stride()


@case
def other_layers(torch):
    f = torch.nn.functional
    x = torch.rand(2, 6, 6, 4).permute(0, 3, 1, 2)
    pooled = f.max_pool2d(x, 2, return_indices=True)
    yield [y.stride() for y in pooled], f.max_unpool2d(*pooled, 2).stride()
    mean, var = torch.zeros(4), torch.ones(4)
    for y in (
        f.avg_pool2d(x, 2),
        f.adaptive_avg_pool2d(x, 2),
        f.adaptive_avg_pool2d(x, 1),
        f.adaptive_max_pool2d(x, 2),
        f.max_pool2d(x[:, :2], 2),
        f.batch_norm(x, mean, var),
        f.batch_norm(x, mean, var, training=True),
        f.group_norm(x, 2),
        f.instance_norm(x),
        f.layer_norm(x, x.shape[1:]),
        f.prelu(x, torch.tensor([0.1])),
        f.interpolate(x, scale_factor=2),
        f.interpolate(x, size=(3, 3), mode="bicubic"),
        f.pixel_shuffle(x, 2),
        f.pixel_unshuffle(x, 2),
        f.pad(x, (1, 1)),
        f.pad(x, (0, 0, 0, 0, 0, 1)),
        f.pad(x, (1, 1, 1, 1), mode="reflect"),
        torch.cat([x, x], 1),
        torch.cat([x.exp(), x.exp()]),
        torch.cat([x, x.contiguous()], 1),
    ):
        yield y.stride()
    x = images(torch, 2, 4, 3, 6, 6)
    for y in (
        f.max_pool3d(x, 2),
        f.avg_pool3d(x, 2),
        f.adaptive_avg_pool3d(x, 2),
        f.adaptive_max_pool3d(x, 2),
        f.batch_norm(x, mean, var),
        f.interpolate(x, scale_factor=2, mode="trilinear"),
        f.pad(x, (1, 1)),
    ):
        yield y.stride()


@case.over(training=[False, True])
def normalized_batches(torch, training):
    """Sizes of one leave the format undecided."""
    for shape, order in (
        ((1, 3, 2, 1), (0, 2, 1, 3)),
        ((1, 3, 2, 4), (0, 2, 1, 3)),
        ((1, 2, 3, 1), (0, 3, 1, 2)),
        ((2, 3, 1, 1), (0, 1, 2, 3)),
        ((2, 1, 3, 1, 4), (0, 4, 1, 2, 3)),
        ((2, 3, 4), (0, 2, 1)),
        ((1, 3, 2, 1), (0, 2, 3, 1)),
    ):
        x = torch.rand(shape).permute(order)
        running = torch.zeros(x.shape[1]), torch.ones(x.shape[1])
        y = torch.nn.functional.batch_norm(x, *running, training=training)
        yield x.stride(), y.stride()


@case
def a_network(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
    ).to(memory_format=torch.channels_last)
    x = images(torch, 2, 3, 8, 8)
    y = net(x)
    yield y, y.is_contiguous(memory_format=torch.channels_last)
    y.flatten(1).square().sum().backward()
    yield net[0].weight.grad.stride()
    return y.view(2, -1)


@case
def changing_the_format(torch):
    for shape in ((2, 4, 1, 1), (2, 1, 3, 3), (1, 1, 1, 1), (2, 3, 4, 5), (0, 3, 2, 2)):
        x = torch.ones(shape)
        y = x.to(memory_format=torch.channels_last)
        yield y.stride(), y is x, y.to(memory_format=torch.channels_last) is y
        yield y.to(memory_format=torch.contiguous_format).stride()
        yield x.contiguous(memory_format=torch.channels_last).stride()
    t = torch.ones(2, 3).t()
    yield t.to(memory_format=torch.contiguous_format).stride()


@case
def attention_with_both_masks(torch):
    torch.manual_seed(0)
    q = torch.randn(2, 2, 5, 4)
    attend = torch.nn.functional.scaled_dot_product_attention
    for mask in (torch.rand(5, 5) > 0.3, torch.randn(5, 5)):
        yield attend(q, q, q, mask, is_causal=True)
    return attend(q[0], q[0], q[0], mask, is_causal=True)


@case
def layout_of_attention(torch):
    """One kernel's result lies in memory as the query does, the formula's in order."""
    attend = torch.nn.functional.scaled_dot_product_attention
    q = torch.randn(2, 6, 4, 8).transpose(1, 2)
    c, few = q.contiguous(), q[:, :2].contiguous()
    yield attend(q, q, q).transpose(1, 2).view(2, 6, -1).shape
    backwards = q.mT.contiguous().mT
    for args in ((q, c, c), (c, q, q), (q, q, backwards), (backwards, q, q)):
        yield attend(*args).stride()
    for args in ((q, c[:, :, :3], c[:, :, :3]), (q, c, c[..., :5]), (q[0], c[0], c[0])):
        yield attend(*args).stride()
    for shape in ((6, 6), (2, 4, 6, 6), (2, 1, 1, 6), (1, 6), (4, 6, 6), (6, 1)):
        yield attend(q, c, c, torch.randn(shape)).stride()
        yield attend(q, c, c, torch.randn(shape) > 0).stride()
    yield attend(q, few, few, enable_gqa=True).stride()
    yield attend(q, few[:, :1], few, enable_gqa=True).stride()
    yield attend(q, c, c, is_causal=True, scale=0.5).stride()
    yield attend(q, c, c, dropout_p=0.5).stride()
    yield attend(q.to("meta"), c.to("meta"), c.to("meta")).stride()
    yield attend(c[:, :, :0], c, c).stride(), attend(q[:0], c[:0], c[:0]).shape
    for heads in (q[:, :2], q[:, :, :3], torch.randn(6, 2, 4, 8).permute(1, 2, 0, 3)):
        yield attend(heads, heads, heads).stride()
    r, mask = q.detach().requires_grad_(), torch.randn(6, 6, requires_grad=True)
    for given in ({}, {"attn_mask": mask}, {"dropout_p": 0.5}):
        y = attend(r, r, r, **given)
        yield y.stride(), type(y.grad_fn).__name__
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield attend(q, q, q).stride(), type(attend(r, r, r).grad_fn).__name__
