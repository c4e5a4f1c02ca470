"""The order in which results lie in memory, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import case, evaluate


@case.over(function=("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), dim=range(4))
def transforms(torch, function, dim):
    real = function in ("rfft", "ihfft")
    x = torch.ones(3, 4, 5, 6, dtype=torch.float32 if real else torch.complex64)
    transform = getattr(torch.fft, function)
    for y in (x, x.permute(1, 0, 3, 2), x[:, ::2]):
        for n in (None, 8, 3):
            yield transform(y, n, dim).stride()


@case.over(function=("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"))
def transforms_along_several(torch, function):
    real = function in ("rfftn", "ihfftn")
    x = torch.ones(3, 4, 5, 6, dtype=torch.float32 if real else torch.complex64)
    transform = getattr(torch.fft, function)
    for y in (x, x.permute(1, 0, 3, 2)):
        for dims in ((0, 1), (1, 0), (0, 2), (3, 2), (1, 2, 3), (0, 1, 2), (3, 1, 0)):
            yield transform(y, dim=dims).stride()
        yield transform(y, (2, 7), (1, 3)).stride()


@case.over(*range(-1, 5))
def turned(torch, k):
    x = torch.ones(3, 4, 5)
    for y in (x, x.permute(2, 0, 1), x[:, ::2]):
        for dims in ((0, 1), (2, 0), (1, -1)):
            yield torch.rot90(y, k, dims).stride()


def _orders(torch, *shape):
    """A tensor of a shape, its elements in different orders in memory."""
    x = torch.linspace(0.1, 0.9, 24)
    yield x.view(shape)
    yield x.view(shape[::-1]).permute(2, 1, 0)
    yield x.view(shape[1], shape[0], shape[2]).transpose(0, 1)


@case.lines(r"""
F.binary_cross_entropy(x, x, reduction="none")
F.binary_cross_entropy(x, x.contiguous(), weight=x, reduction="none")
F.binary_cross_entropy(x.contiguous(), x, reduction="none")
F.binary_cross_entropy_with_logits(x, x, reduction="none")
F.binary_cross_entropy_with_logits(x, x.contiguous(), x, "none")
F.binary_cross_entropy_with_logits(x.contiguous(), x, reduction="none")
F.soft_margin_loss(x, x.contiguous(), reduction="none")
F.soft_margin_loss(x.contiguous(), x, reduction="none")
F.mse_loss(x, x, reduction="none")
F.smooth_l1_loss(x, x.contiguous(), reduction="none")
F.huber_loss(x, x, reduction="none")
torch.mvlgamma(x + 4, 2)
torch.unique(x, dim=1)
torch.unique_consecutive(x, dim=-1)
torch.unique(x, return_inverse=True, dim=0)[0]
torch.diff(x, 0, 0, x)
torch.diff(x, 1, 0, x)
torch.ops.aten.native_dropout_backward(x, x > 0.5, 2.0)
torch.native_dropout(x, 0.5, True)[0]
torch.native_dropout(x, 0.5, True)[1]
torch.rrelu(x, training=True)
F.rrelu(x)
F.rrelu_(x.clone())
F.gumbel_softmax(x, hard=True)
""")
def element_by_element(torch, line):
    for x in _orders(torch, 2, 3, 4):
        yield evaluate(torch, line, x=x).stride()


@case.lines(r"""
torch.addr(x, a, b)
torch.addr(x, a, b, beta=0)
torch.addr(x[:1], a, b)
torch.addr(x > 0.5, a > 0, b > 0)
torch.matrix_power(s, -1)
torch.matrix_power(s, -2)
torch.linalg.solve(s, s, left=False)
torch.linalg.solve(s, s)
torch.linalg.solve(s, torch.ones(4, 4, 3))
torch.linalg.solve(s, torch.ones(4, 3, 4), left=False)
torch.linalg.lu_solve(*torch.linalg.lu_factor(s), s, left=False)
torch.linalg.lu_solve(*torch.linalg.lu_factor(s), s)
""")
def matrices(torch, line):
    x = torch.linspace(0, 1, 20)
    s = torch.eye(4).repeat(4, 1, 1)
    names = {"a": torch.ones(4), "b": torch.ones(5), "s": s}
    yield evaluate(torch, line, x=x.view(4, 5), **names).stride()
    yield evaluate(torch, line, x=x.view(5, 4).t(), **names).stride()


@case.over(
    "bij,bjk->kbi",
    "bhqk,bkhd->bqhd",
    "nchw,oc->nohw",
    "ijk,kl->lij",
    "abd,ag->dbg",
    "cde,acb->dbae",
    "fa,dcab->dcfb",
    "eab,adg->gdbe",
    "ij,ij->ij",
    "ij,jk->ki",
)
def sums_of_products(torch, equation):
    sizes = dict(zip("abcdefghijklmnoqw", range(2, 19), strict=True))
    left, _ = equation.split("->")
    shapes = ([sizes[c] for c in term] for term in left.split(","))
    return torch.einsum(equation, *map(torch.ones, shapes)).stride()


@case.lines(r"""
F.conv2d(x[0], w)
F.conv2d(x[0].contiguous(), w)
F.conv2d(x, w)
F.conv_transpose2d(x[0], w)
F.conv1d(signal, taps)
F.conv1d(signal[0], taps.contiguous())
F.conv_transpose1d(signal[:1].contiguous(), taps, stride=2)
F.gaussian_nll_loss(w.mT, w.mT, w.mT, reduction="none")
F.conv3d(y, v)
F.conv3d(y[:1], v)
F.conv3d(y[0], v)
F.conv_transpose3d(y[:1], v, stride=2, output_padding=1)
F.max_pool1d(signal, 2, return_indices=True)[0]
F.max_pool1d(signal, 2, return_indices=True)[1]
F.max_pool1d(signal[:1, :1], 2, return_indices=True)[1]
F.pad(x, (1, 2, 1, 0), "circular")
F.pad(x, (1, 2, 1, 0), "reflect")
F.pad(y, (1, 0, 1, 0, 1, 1), "circular")
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
F.max_unpool3d(*F.max_pool3d(y, 2, return_indices=True), 2)
torch.ones(()).expand(1, 1)
torch.ones(()).expand(2, 1, 3)
torch.ones(3).expand(1, 3)
""")
def images(torch, line):
    x, w = torch.ones(2, 3, 6, 8), torch.ones(3, 3, 3, 3)
    y, v = torch.ones(2, 3, 4, 6, 8), torch.ones(3, 3, 3, 3, 3)
    for inner in (False, True):
        if inner:
            x, w = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
            y, v = (t.contiguous(memory_format=torch.channels_last_3d) for t in (y, v))
        signal, taps = x[:, :, 0], w[:, :, 0]
        names = {"signal": signal, "taps": taps}
        yield evaluate(torch, line, x=x, y=y, w=w, v=v, **names).stride()


@case.over(function=("stack", "cat", "hstack", "vstack", "dstack", "column_stack"))
def of_images(torch, function):
    join = getattr(torch, function)
    x, y = torch.ones(2, 3, 4, 5), torch.ones(1, 2, 3, 4, 5)
    last = x.contiguous(memory_format=torch.channels_last)
    deep = y.contiguous(memory_format=torch.channels_last_3d)
    grey = last[:, :1].contiguous(memory_format=torch.channels_last)
    for t in (x, last, last.requires_grad_(), deep, grey, last[:0], last[0], y):
        dims = range(t.ndim + 1 if function == "stack" else t.ndim)
        for dim in dims if function in ("stack", "cat") else (None,):
            rest = () if dim is None else (dim,)
            yield join([t, t], *rest).stride(), join([t], *rest).stride()
    yield join([x, last]).stride(), join([last, last.double()]).stride()


@case
def of_images_with_values(torch):
    """As above, where nothing is left to compute."""
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    last = x.contiguous(memory_format=torch.channels_last)
    deep = x[None].contiguous(memory_format=torch.channels_last_3d)
    bare = torch.ones(4, 3, 2).permute(2, 0, 1)
    for t in (last, deep, bare, x[0, 0].T, bare.contiguous()):
        t.tolist()
        for dim in range(t.ndim + 1):
            stacked = torch.stack([t, t], dim)
            yield stacked.stride(), stacked.sum().item()
        yield torch.cat([t, t]).stride()
