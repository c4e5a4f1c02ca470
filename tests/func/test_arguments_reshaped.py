"""`vmap` of functions that change the shape of their argument in place."""

from __future__ import annotations

from tests.oracle import attempt, case

# Function, shape of all examples, options of `vmap`.
CHANGES = {
    "transpose_": ("lambda t: t.transpose_(0, 1)", (3, 2, 4)),
    "t_": ("lambda t: t.t_()", (3, 2, 2)),
    "t_ of one dimension": ("lambda t: t.t_()", (3, 2)),
    "swapaxes_": ("lambda t: t.swapaxes_(-1, 0)", (3, 2, 4)),
    "swapdims_": ("lambda t: t.swapdims_(0, 1)", (3, 2, 4)),
    "squeeze_": ("lambda t: t.squeeze_()", (3, 1, 2, 1)),
    "squeeze_ one": ("lambda t: t.squeeze_(0)", (3, 1, 2)),
    "squeeze_ none": ("lambda t: t.squeeze_(1)", (3, 1, 2)),
    "squeeze_ several": ("lambda t: t.squeeze_((0, 2))", (3, 1, 2, 1)),
    "unsqueeze_": ("lambda t: t.unsqueeze_(0)", (3, 2)),
    "unsqueeze_ last": ("lambda t: t.unsqueeze_(-1)", (3, 2)),
    "two of them": ("lambda t: t.unsqueeze_(0).transpose_(0, 1)", (2, 3)),
    "and a write": ("lambda t: t.transpose_(0, 1).mul_(2)", (2, 2, 3)),
    "not given back": ("lambda t: t.transpose_(0, 1).sum()", (2, 2, 3)),
    "a copy": ("lambda t: t.clone().transpose_(0, 1)", (2, 2, 3)),
    "a view": ("lambda t: t[0].unsqueeze_(0)", (2, 2, 3)),
    "first dimension": ("lambda t: t.transpose_(0, 1)", (2, 3, 2), {"in_dims": 1}),
    "behind": ("lambda t: t.unsqueeze_(1)", (2, 3, 2), {"in_dims": 2}),
    "before": ("lambda t: t.unsqueeze_(-1)", (2, 3, 2), {"in_dims": 1}),
    "one less": ("lambda t: t.squeeze_(0)", (1, 3, 2), {"in_dims": 2}),
    "elsewhere": ("lambda t: t.t_()", (2, 3, 4), {"out_dims": 1}),
    "in chunks": ("lambda t: t.unsqueeze_(0)", (4, 2), {"chunk_size": 2}),
    "resize_": ("lambda t: t.resize_(1)", (3, 2)),
    "resize_ to the same": ("lambda t: t.resize_(2)", (3, 2)),
    "resize_, more dimensions": ("lambda t: t.resize_(1, 2)", (3, 2, 2)),
    "resize_ and a write": ("lambda t: t.resize_(1, 2).mul_(2)", (3, 2, 2)),
    "resize_, elsewhere": ("lambda t: t.resize_(1, 2)", (3, 2, 2), {"out_dims": 1}),
    "resize_ of a result": ("lambda t: (t * 2).resize_(2)", (2, 3)),
    "resize_ of a view": ("lambda t: t[0].resize_(1)", (3, 2, 2)),
    "resize_, not first": ("lambda t: t.resize_(1)", (3, 2), {"in_dims": 1}),
    "resize_, format": (
        "lambda t: t.resize_(1, 2, 2, 2, memory_format=torch.channels_last)",
        (3, 2, 2, 2),
    ),
}


@case(warnings=False).over(CHANGES)
def what_was_given_changes_too(torch, source, shape, options=None):
    z = torch.arange(float(torch.Size(shape).numel())).view(shape)
    mapped = torch.vmap(eval(source, {"torch": torch}), **(options or {}))
    result = attempt(mapped, z)
    yield result, z, z.stride(), result is z, z._version


@case(warnings=False)
def each_example_resized(torch):
    z = torch.arange(6.0).view(3, 2)
    yield torch.vmap(lambda t: t.resize_as_(torch.ones(1)))(z), z


@case
def nested(torch):
    z = torch.arange(48.0).view(2, 2, 3, 4)
    inner = torch.vmap(lambda t: t.transpose_(0, 1))
    yield torch.vmap(inner)(z), z, z.stride()
    z = torch.arange(12.0).view(2, 2, 3)
    yield torch.vmap(torch.vmap(lambda t: t.resize_(1)))(z), z
    z = torch.arange(6.0).view(2, 3)
    yield torch.vmap(lambda t: (torch.vmap(lambda u: u.unsqueeze_(0))(t), t)[1])(z), z


@case
def histories(torch):
    z = torch.arange(8.0).view(2, 2, 2).requires_grad_()
    w = z * 1
    weights = torch.arange(4.0).view(2, 2)
    r = torch.vmap(lambda t: t.transpose_(0, 1) * weights)(w)
    yield r, w
    (r.sum() + (w * w)[0, 0, 1]).backward()
    yield z.grad
    yield attempt(torch.vmap(lambda t: t.resize_(1)), z * 1)
    yield attempt(torch.vmap(lambda t: t.unsqueeze_(0)), z)
    p = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        r = torch.vmap(lambda t: t.unsqueeze_(0))(p)
    yield r, r is p, p.requires_grad


@case
def other_views(torch):
    z = torch.arange(8.0).view(2, 2, 2)
    row, flat = z[0], z.view(8)
    r = torch.vmap(lambda t: t.transpose_(0, 1))(z)
    row[0, 1] = 9
    flat[0] = 7
    z[1, 1] = 5
    yield r, z, row, flat


@case
def errors_within(torch):
    z = torch.ones(2, 3)

    def fails(t):
        t.unsqueeze_(0)
        raise ValueError("no")

    yield attempt(torch.vmap(fails), z), z


@case
def memory_that_numpy_shares(torch):
    z = torch.ones(2, 3)
    shared = z.numpy()
    yield torch.vmap(lambda t: t.unsqueeze_(0).mul_(2))(z), z, shared
