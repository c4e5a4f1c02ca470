"""`x[index]` and `x[index] = value`, compared with PyTorch."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case, evaluate

READS = """
x[1]
x[-1]
x[0, 1]
x[0, 1, 2]
x[:, 1]
x[..., 1]
x[1:]
x[:, ::2]
x[:, 1:3, 1:4:2]
x[5:1]
x[-1:]
x[None]
x[:, None, 1]
x[0, None, None, 0, ..., None]
x[...]
x[:]
x[:, :]
x[()]
x[True]
x[False]
x[True, 0]
x[0, True]
x[True, False, 0]
x[:, None, True]
x[i]
x[:, i]
x[..., i]
x[i, i]
x[i, :, i]
x[0, :, i]
x[:, 0, i]
x[i, :, 0]
x[i, None, i]
x[True, i]
x[i.int()]
x[i[0]]
x[[0, 1]]
x[[0, 1], [1, 2]]
x[:, [0, 2]]
x[[]]
x[[], []]
x[range(2)]
x[(0, 1), ]
x[b]
x[0, b[0]]
x[:, b[0]]
x[b, 0]
x[b, :]
x[b, [0, 1, 2]]
x[True, b]
x[[True, False]]
x[b[0, 0]]
x[x > 5]
x[x > 100]
x[np.array([0, 1])]
x[np.int64(1)]
x[np.array(1)]
x[np.array([True, False])]
x[np.array([[0, 1], [1, 0]])]
x[i[1]:]
x[0.5]
x['a']
x[{}]
x[2]
x[-3]
x[:, 3]
x[0, 0, 0, 0]
x[0, 0, 0][0]
x[0, 0, 0][:]
x[0, 0, 0][None]
x[0, 0, 0][...]
x[::-1]
x[0:1:0]
x['a':]
x[i.double()]
x[i.short()]
x[[2]]
x[b.T]
x[b[:, :2]]
x[..., b]
x[i, i, i, i]
x[torch.tensor([0, 1]), torch.tensor([0, 1, 2])]
x[np.bool_(True)]
x[10**30]
x[[[0, 1], [1]], ]
"""


def setting(torch):
    return {
        "torch": torch,
        "np": np,
        "x": torch.arange(24.0).reshape(2, 3, 4).clone().requires_grad_(),
        "i": torch.tensor([1, 0]),
        "b": torch.tensor([[True, False, True], [False, True, False]]),
    }


@case(warnings=False)
def reads(torch):
    # All at once: what is read together is one program.
    names, shown = setting(torch), []
    for line in READS.strip().splitlines():
        got = attempt(eval, line, names)
        shown.append((line, got, getattr(got, "shape", None)))
        if isinstance(got, torch.Tensor):
            view = got._base is not None
            shown.append((view, got.stride(), got.storage_offset() if view else 0))
    return shown


@case
def strides_of_reads(torch):
    """The order of the source's memory and of the indices' stays."""
    base = torch.arange(24.0).reshape(2, 3, 4)
    i, m = torch.tensor([1, 0]), torch.tensor([[1, 0, 1], [0, 0, 1]])
    for x in (base, base.mT, base.permute(2, 0, 1), base[:, ::2], base[:1].mT):
        wide = x.expand(2, *x.shape)
        for at in ((0,), (0, m.T[:, :2] % 1), (..., i), (..., m % 2), (None, i * 0)):
            for source in (x, wide):
                yield source[at].stride(), source[at].is_contiguous()
        yield x[:, i % 2, i].stride(), x[i * 0, :, i].stride(), x[m.T * 0].stride()
        yield x[i * 0, None, m.T[:, :2] % 2].stride(), x[x > 5].stride()


@case(warnings=False)
def gradients_of_reads(torch):
    names, shown = setting(torch), []
    for line in READS.strip().splitlines()[:52]:
        got = eval(line, names)
        weight = torch.arange(1.0, got.numel() + 1).reshape(got.shape)
        shown.append((line, torch.autograd.grad(got, names["x"], weight)))
    return shown


WRITES = """
x[0] = 5.0
x[0] = 5
x[0] = True
x[0, 1] = v
x[:, 1] = v
x[..., 1] = v[:3]
x[1:] = v
x[:, ::2] = v
x[:, :, 1:4:2] = v[:2]
x[0] = w
x[0] = v.reshape(1, 1, 1, 4)
x[...] = 3.0
x[:] = w
x[()] = 2.0
x[None] = 2.0
x[True] = 2.0
x[False] = 2.0
x[5:] = 1.0
x[i] = 7.0
x[i] = w
x[i, i] = v
x[:, i] = v
x[i, :, i] = 1.5
x[0, i] = w[:2]
x[[0, 0]] = w
x[b] = 0
x[b] = v
x[b] = w
x[b] = -w[0]
x[:, b[0]] = 4.0
x[0, b[0]] = w[:2]
x[b, 0] = 9.0
x[b, 0] = v[:3]
x[x > 5] = 0.0
x[x > 5] = torch.arange(18.0)
x[x > 5] = torch.arange(1.0)
x[x > 5] = torch.tensor(3, dtype=torch.float64)
x[0] = v.double()
x[i] = v.double()
x[0] = w[:2]
x[0:1] = x
x[:, 0] = v.reshape(4, 1)
x[i] = w[:2]
x[2] = 1
x[::-1] = 1
x[0, 0, 0, 0] = 1
x[0] = [1, 2, 3, 4]
x[0] = 'a'
x[0] = None
x[0] = np.ones(4)
x[0] = 1j
x[0.5] = 1
x[torch.tensor([5])] = 1
x[0] += 1
x[b] *= 2
x[i] += 1
x[0, 1:][0] = 4.0
i[0] = float("nan")
i[i] = 1e30
i.int()[0] = 2**40
i.bool()[0] = float("nan")
i.byte()[0] = 300
"""


@case(warnings=False)
def writes(torch):
    shown = []
    for line in WRITES.strip().splitlines():
        names = setting(torch)
        names["x"] = torch.arange(24.0).reshape(2, 3, 4)
        names["v"], names["w"] = torch.arange(4.0), -torch.arange(12.0).reshape(3, 4)
        shown.append((line, attempt(exec, line, names), names["x"]))
    return shown


@case(warnings=False)
def gradients_of_writes(torch):
    shown = []
    for line in WRITES.strip().splitlines()[:33]:
        names = setting(torch)
        leaf = names["x"]
        names["x"] = leaf * 2
        v, w = torch.arange(4.0), torch.arange(12.0).reshape(3, 4).clone()
        names["v"], names["w"] = v.requires_grad_(), w.requires_grad_()
        exec(line, names)
        out = names["x"]
        weight = torch.arange(1.0, out.numel() + 1).reshape(out.shape)
        grads = torch.autograd.grad(out, (leaf, v, w), weight, allow_unused=True)
        shown.append((line, type(out.grad_fn).__name__, grads))
    return shown


@case
def wrong_number_of_values_for_a_mask(torch):
    def write(count):
        x = torch.arange(24.0).reshape(2, 3, 4)
        x[x > 5] = torch.arange(count)
        return x.tolist()

    yield write(18.0), attempt(write, 5.0), attempt(write, 19.0)


@case
def writes_to_leaves(torch):
    x = torch.zeros(3, 4, requires_grad=True)
    for index in (0, (0, 0), slice(None), ..., [0], (0, torch.tensor([0])), x > 0):
        yield attempt(x.__setitem__, index, 1.0)
    with torch.no_grad():
        x[0] = 1.0
        x[:, 1] = 2.0
        x[torch.tensor([2])] = 3.0
        x[x == 0] = 4.0
    yield x


@case
def writes_are_seen_by_views(torch):
    x = torch.zeros(3, 4)
    row, column, turned = x[1], x[:, 2], x.T
    row[0] = 1.0
    yield x, turned
    turned[2] = 5.0
    yield x, row, column
    x[:, row > 0] = 7.0
    yield x


@case
def warnings_of_indices(torch):
    x = torch.arange(12.0).reshape(3, 4)
    yield x[[[0, 1], [1, 2]]]
    yield x[[slice(0, 1)]]
    yield x[torch.tensor([1, 0, 1], dtype=torch.uint8)]
    y = x[0].expand(3, 4)
    y[torch.tensor([0])] = 9.0
    yield x


@case
def take_along_dim(torch):
    x = torch.arange(12.0).reshape(3, 4).clone().requires_grad_()
    i = torch.tensor([[0], [2], [-1]])
    y = torch.take_along_dim(x, i, 1)
    yield y, torch.autograd.grad(y, x, torch.arange(1.0, 4.0).reshape(3, 1))
    yield torch.take_along_dim(x, i.abs()), x.take_along_dim(i, -1)
    yield attempt(torch.take_along_dim, x, torch.tensor([0]), 0)
    yield attempt(torch.take_along_dim, x, i.int(), 1)


@case(warnings=False)
def scatter_forms(torch):
    x = torch.arange(12.0).reshape(3, 4).clone().requires_grad_()
    s = torch.arange(1.0, 5.0).reshape(2, 2).clone().requires_grad_()
    i = torch.tensor([[0, 3], [2, 2]])
    for y in (
        x.scatter(1, i, s),
        torch.scatter(x, 1, i, 2.5),
        x.scatter(1, i, value=3),
        x.index_put((torch.tensor([0, 0]),), s.reshape(-1)),
        x.index_put((x > 5,), s[0, 0]),
        x.index_put((torch.tensor([0, 0]),), s.reshape(-1), accumulate=True),
    ):
        weight = torch.arange(1.0, 13.0).reshape(3, 4)
        yield y, torch.autograd.grad(y, (x, s), weight, allow_unused=True)
    yield x.scatter(1, i, s, reduce="add"), x.scatter(1, i, 2.0, reduce="multiply")
    z = torch.zeros(3, 4)
    yield z.scatter_(1, i, 1.0), z.scatter_(1, i, s.detach(), reduce="add"), z
    yield attempt(x.scatter, 1, i, s.double())
    yield attempt(x.scatter, 0, torch.zeros(4, 4, dtype=torch.long), 2)
    yield attempt(x.scatter, 1, torch.zeros(4, 4, dtype=torch.long), 2)
    yield attempt(x.scatter, 1, i, s, reduce="zz")
    yield attempt(x.index_put, (torch.tensor([0.0]),), s)
    yield attempt(x.index_put, (None,), s)
    yield attempt(x.index_put, (i, i, i), s)
    yield attempt(x.index_put, (torch.tensor([0, 9]),), x[0])
    for reduce in ("prod", "mean", "amax", "amin"):
        yield x.index_reduce(0, torch.tensor([0, 1]), x[:2], reduce)


@case
def one_hot(torch):
    f = torch.nn.functional.one_hot
    i = torch.tensor([[0, 2], [1, 0]])
    yield f(i), f(i, 4), f(torch.tensor(1), 3), f(i[:0], 3)
    yield attempt(lambda: f(i, 2).tolist())
    yield attempt(lambda: f(-i, 3).tolist())
    yield attempt(f, -i)
    yield attempt(f, i, -2)
    yield attempt(f, i.int(), 3)
    yield attempt(f, i[:0])


@case
def iteration(torch):
    x = torch.arange(6.0).reshape(3, 2)
    yield list(x), [float(a + b) for a, b in x]
    y = x.clone().requires_grad_()
    rows = list(y)
    yield rows, torch.autograd.grad(rows[0].sum() + rows[2].sum(), y)
    for row in x:
        row[0] = 9.0
    yield x
    yield attempt(lambda: list(torch.tensor(1.0)))
    yield 9 in x, 5.5 in x, attempt(lambda: "a" in x)
    numbers = np.int64(9), np.float32(5.5), np.float64(9), np.bool_(True)
    yield [number in x for number in numbers], np.complex64(9j) in x
    yield attempt(lambda: None in x), attempt(lambda: [9.0] in x)


@case.lines(
    """
    torch.arange(5)[torch.tensor([5])].tolist()
    torch.arange(5)[torch.tensor([-6])].tolist()
    torch.arange(5)[torch.tensor([1, 7]) + 1].tolist()
    torch.zeros(2, 3)[:, [7]].tolist()
    torch.zeros(2, 3)[[0], [7]].tolist()
    torch.zeros(2, 3, 4)[None, :, :, torch.tensor([6]) + 1].tolist()
    torch.zeros(2, 3, 4)[torch.tensor([-1]) + 1, :, torch.tensor([6]) + 1].tolist()
    x = torch.zeros(2, 3); x[:, [7]] = 1.0; x.tolist()
    x = torch.zeros(2, 3); x[:, torch.tensor([6]) + 1] = 1.0; x.tolist()
    """
)
def out_of_range(torch, line):
    return evaluate(torch, line)


@case.lines("""
x[None, 9]
x[0, None, 7]
x[..., 9]
x[None, 0, None, 9]
x[True, 9]
x[None, torch.tensor(9)]
x[..., 0, 9, i]
x[None, -3, i]
x[None, 9] = 1
x[..., 9] = 1
x[None, 9, i] = 1
""")
def places_of_integers_out_of_range(torch, line):
    return evaluate(torch, line, **setting(torch))


@case
def masks_of_bytes(torch):
    x = torch.arange(12.0).reshape(3, 4)
    mask = torch.tensor([1, 0, 1], dtype=torch.uint8)
    for index in (mask, (mask, slice(1, 2)), (mask, mask[[0, 2, 1, 1]])):
        yield x[index], x[index]
    x[mask] = x[:2] * 10
    yield x
    yield x.index_put((mask,), x[:2], accumulate=True)
    yield attempt(x.__setitem__, mask, 1.0)
    yield attempt(x.__setitem__, (mask, 0), torch.ones(1))
    yield x[mask[0]], x[mask[1]]


@case
def refused_writes(torch):
    a = torch.arange(4)
    yield attempt(a.__setitem__, a > -1, torch.tensor([]))
    yield attempt(a.__setitem__, a > 1, torch.tensor([1.0, 2.0]))
    yield attempt(a.__setitem__, a > 1, torch.tensor([1.0, 2.0, 3.0]))
    yield attempt(a.__setitem__, [0, 1], torch.tensor([1.0, 2.0, 3.0]))
    yield attempt(a.__setitem__, [0, 1], torch.tensor([1.0, 2.0]))
    a[a > 1] = torch.tensor([1.0])
    yield a
    yield attempt(a.__delitem__, 0)
    truth = torch.tensor([True, False])
    for value in (1 + 1j, 1 + 0j):
        yield attempt(truth.index_fill, 0, torch.tensor([0]), value)
        yield attempt(truth.float().index_fill, 0, torch.tensor([0]), value)


@case
def nothing_is_contiguous(torch):
    x = torch.randn(2, 3, 4, 5)[:, :, :, 1][:, 1:1, :]
    yield x.stride(), x.is_contiguous(), x.contiguous() is x
    yield x.transpose(0, 1).is_contiguous(), x[:, :, ::2].is_contiguous()


PIECES = 40


@case
def many_pieces(torch):
    """In a loop that reads them, or that uses them later."""
    x = torch.arange(PIECES * 2.0).reshape(PIECES, 2).clone()
    x.sum().item()
    yield [row.tolist() for row in x]
    yield [x[k, 1].item() for k in range(PIECES)]
    rows = [x[k] for k in range(PIECES)]
    last = rows[-1]
    yield last._is_view(), last._base is x, last.storage_offset(), last.stride()
    yield (torch.stack(rows) * 2).sum(), rows[20] * rows[30]
    last += 1
    x[3] = 5
    yield x._version, last._version, rows[3], rows[2], x[-1]
    rows[12][0], rows[13].data[1] = -1, -2
    yield x[12:14], x._version
    x.mul_(2)
    yield rows[0], rows[39], last
    w = torch.ones(2, requires_grad=True)
    loss = torch.stack([(x[k] * w).sum() for k in range(PIECES)]).sum()
    loss.backward()
    yield loss, w.grad
    with torch.no_grad():
        yield [w[k % 2].requires_grad for k in range(PIECES)]
    yield [w[k % 2].requires_grad for k in range(PIECES)]
    with torch.inference_mode():
        yield [x[k].is_inference() for k in range(PIECES)]
    yield [attempt(lambda k=k: x[k]) for k in (PIECES, -PIECES - 1)]


@case.lines("""
x = torch.arange(5.); x[1:] = x[:-1]
x = torch.arange(5.); x[:-1] = x[1:]
x = torch.arange(5.); x[:] = x; x
x = torch.arange(5.); x[1:] = x[0]; x
x = torch.arange(5.); x[:2] = x[1]; x
x = torch.arange(6.).view(2, 3); x[1] = x[1][2]; x
x = torch.arange(5.); x[1:] = x[:1]; x
x = torch.arange(5.); x[1:2] = x[2]; x
x = torch.arange(5.); x[::2] = x[1:4]; x
x = torch.arange(6.).view(2, 3); x[0] = x[1]; x
x = torch.arange(6.).view(2, 3); x.t()[0] = x.t()[1]; x
x = torch.arange(9.).view(3, 3); x[1:] = x[:2]
x = torch.arange(9.).view(3, 3); x[..., None][:2] = x[1:, :, None]
x = torch.arange(4.); x[1:3] = x.to(torch.float64)[:2]; x
x = torch.randn(4, dtype=torch.complex64); x[1:] = x.conj()[:-1]
x = torch.ones(4, requires_grad=True) * 2; x[1:] = x[:-1]
x = torch.ones(4, requires_grad=True) * 2; x[2:] = x[:2]; x
""")
def pieces_of_the_same_memory(torch, line):
    return evaluate(torch, line)


@case
def slices_of_all(torch):
    """A slice that keeps everything is one where its numbers say less than that."""
    x = torch.arange(20.0).reshape(4, 5).requires_grad_()
    for index in (
        np.s_[:, -5:],
        np.s_[..., -5:],
        np.s_[-4:4, None],
        np.s_[0, -7:],
        np.s_[:, 0:],
        np.s_[:, :9],
        np.s_[0:4, 0:5:1],
        np.s_[:, 0:-1][:1],
    ):
        out = x[index]
        yield type(out.grad_fn).__name__, out
        y = x * 2
        y[index] = 1.0
        yield type(y.grad_fn).__name__, *torch.autograd.grad(y.sum(), x)
    yield x[:0][0:-1, :].grad_fn is None


@case
def writes_to_rows_of_rows(torch):
    """`x[i][j] = value`, through rows that are held and rows that are not."""
    x = torch.zeros(3, 4, 5)
    row = x[1]
    piece = row[2]
    piece[3] = 7
    yield x._version, row._version, piece._version, x, row, piece
    for _ in range(3):
        for i in range(3):
            x[i][-1][i] = i
    yield x, x._version
    x[0][1] = torch.arange(5.0)
    x[-1][-1][1:3] = 2.5
    x[2][0][::2] = torch.tensor([1.0, 2.0, 3.0])
    x[0][:, 1][2] = 4
    yield x, x._version
    alias = x.detach()
    alias[0][0] = 9
    yield x[0], x._version, alias._version
    turned = x.transpose(0, 2)
    turned[1][2] = torch.tensor([5.0, 6.0, 7.0])
    yield x[:, 2, 1], x._version
    wide = torch.zeros(1, 3).expand(4, 3)
    wide[0][1] = 1
    yield wide
    part = x.view(-1)[20:40].view(4, 5)
    part[1][2] = 8
    yield x, part
    for value in (torch.zeros(2), torch.zeros(1, 1), 1 + 2j, "a"):
        yield attempt(x[0].__getitem__(1).__setitem__, slice(None), value)
    yield attempt(x[0][0].__setitem__, 9, 1), attempt(x[0].__setitem__, (1, 2, 3), 1)


@case
def writes_to_rows_of_rows_with_history(torch):
    w = torch.ones(2, 2, requires_grad=True)
    y = w * 2
    y[0][1] = 5
    yield y, y._version, *torch.autograd.grad(y.sum(), w)
    z = torch.zeros(2, 2)
    z[0][0] = w[0, 0] * 3
    z[0][1] = 2
    yield z, *torch.autograd.grad(z.square().sum(), w)
    yield attempt(w[0].__setitem__, 0, 1.0)
    w.data[0][1] = 3
    with torch.no_grad():
        w[1][0] = 4
        y[1][1] = 6
    yield w, w._version, y, y._version
    row = torch.zeros(2, 2)[0].requires_grad_()
    yield attempt(row.__setitem__, 0, 1.0), attempt(row[:1].__setitem__, 0, 1.0)
    with torch.inference_mode():
        seen = torch.zeros(2, 2)
        seen[0][0] = 1
    yield seen.tolist(), attempt(seen[1].__setitem__, 0, 1.0)
