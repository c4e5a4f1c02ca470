"""Views share memory: writes are seen both ways, gradients go through them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torchshim
from tests.oracle import attempt, case

VIEWS = {
    "select": lambda x: x.select(1, 1),
    "index": lambda x: x[1, ::2],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "view": lambda x: x.view(4, 6),
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze several": lambda x: x[:1, :1].squeeze(0, -1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 2),
    "as_strided": lambda x: x.as_strided((3, 2), (5, 1), 2),
    "chain": lambda x: x[:, 1:].transpose(1, 2)[1].T[0],
    "tensor_split": lambda x: x.tensor_split(3, 2)[0],
    "mT": lambda x: x.mT,
    "t": lambda x: x[1].t(),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "movedim": lambda x: x.movedim(0, 1),
}


def base(torch):
    return torch.arange(24.0).reshape(2, 3, 4).clone()


@case.over(VIEWS)
def aliasing(torch, view):
    """Writes through the view, and through the base, are seen in both."""
    x = base(torch)
    other = x.T if x.dim() == 2 else x.mT
    v = view(x)
    shown = [v.stride(), v.storage_offset(), v._base is x]
    v.mul_(10)
    shown.append((x.clone(), v.clone(), other.clone()))
    x.add_(1)
    shown.append((x.clone(), v.clone(), other.clone()))
    v.fill_(-1.0)
    return shown, x, v, other


@case.over(VIEWS)
def gradients_through_writes(torch, view):
    """A write through a view of a non-leaf, and what flows back from base and view."""
    leaf = base(torch).requires_grad_()
    factor = torch.tensor(3.0, requires_grad=True)
    x = leaf * 2
    v = view(x)
    v.mul_(factor)
    weight = torch.arange(1.0, 25.0).reshape(2, 3, 4)
    total = (x * weight).sum() + (v * v).sum()
    return v.detach(), torch.autograd.grad(total, (leaf, factor))


@case
def parts_of_complex_numbers_from_the_middle(torch):
    z = torch.tensor([1 + 2j, 3 + 4j, 5 + 6j, 7 + 8j])
    shown = torch.view_as_real(z[1:3])
    yield shown, shown.storage_offset(), shown.stride()
    shown[0, 1] = 50
    z[2] = 9 - 1j
    yield z, shown, z[1:].real, z[1:].imag, z[2:].imag.storage_offset()
    z[1:].imag.mul_(2)
    z[2:].conj().fill_(1 + 1j)
    yield z, shown
    pairs = torch.arange(12.0).view(6, 2)
    numbers = torch.view_as_complex(pairs[2:5])
    yield numbers, numbers.storage_offset(), numbers.stride()
    numbers[1] = 100j
    pairs[4] = -1
    yield pairs, numbers


@case
def grad_functions_after_writes(torch):
    x = base(torch).requires_grad_() * 2
    v = x[0]
    v += 1
    yield type(x.grad_fn).__name__
    x.mul_(2)
    yield type(x.grad_fn).__name__, v.detach()


@case
def several_views_at_once(torch):
    leaf = base(torch).requires_grad_()
    x = leaf * 1
    for pieces in (x.split(1), x.chunk(2, 2), x.unbind(1), x.split([1, 3], 2)):
        yield pieces, [p.storage_offset() for p in pieces]
        yield attempt(pieces[0].add_, 1)
    yield attempt(x.tensor_split(2, 1)[0].mul_, 2).detach()
    a, b = base(torch).chunk(2)
    a += 100
    yield a, b
    y = torch.cat([p * k for k, p in enumerate(leaf.unbind(1))])
    yield torch.autograd.grad(y.sum(), leaf)
    z = torch.stack([p * k for k, p in enumerate(leaf.split(2, 2))])
    yield torch.autograd.grad(z.sum(), leaf)


@case
def transposing_other_than_matrices(torch):
    x = base(torch)
    yield x.T, x[0, 0].T, x[0, 0, 0].T, x[0, 0, 0].mT, x[0, 0, 0].H
    for number in (x[0, 0, 0], torch.tensor(2.0)):
        yield number.mT is number, number.H is number, number.mH is number


@case
def forms(torch):
    x = base(torch)
    m = x[0]
    yield m.T, m.mT, m.H, m.mH, m.adjoint(), x.mT
    for name in ("mT", "H", "mH"):
        yield attempt(getattr, x[0, 0], name)
    yield attempt(getattr, x, "H")
    yield m.view_as(x[1].T.contiguous()), m.expand_as(x), m.reshape_as(m.T)
    yield m.flatten(0, 0) is m, m.contiguous() is m, m.view(3, 4) is m
    yield x.transpose(0, 1).ravel(), x.ravel()
    yield torch.atleast_1d(x[0, 0, 0]), torch.atleast_2d(x[0, 0], x[0, 0, 0])
    yield torch.atleast_3d(x[0, 0], m)
    yield torch.broadcast_tensors(m, x[0, :1]), torch.broadcast_tensors()
    yield attempt(torch.broadcast_tensors, m, m[:, :3])
    yield torch.block_diag(m, m[0], x[0, 0, 0]), torch.block_diag()
    yield m.hsplit(2), m.vsplit(3), x.dsplit((1, 2)), m[0].hsplit(2)
    yield attempt(m.hsplit, 3), attempt(m.dsplit, 1), attempt(m[0].vsplit, 1)
    yield m.tensor_split((5, -1)), m.tensor_split(torch.tensor([1, 2]))
    yield m.chunk(5), m[:0].chunk(3), m[:0].split(0)
    for call in (
        lambda: m.split(0),
        lambda: m.split(-1),
        lambda: m.split([1, 1]),
        lambda: m.split([-1, 4]),
        lambda: m.chunk(0),
        lambda: m.unbind(3),
        lambda: m.tensor_split(0),
        lambda: m[0, 0].unbind(),
        lambda: m[0, 0].chunk(2),
        lambda: m[0, 0].split(1),
        lambda: m.select(0, 5),
        lambda: m.select(5, 0),
        lambda: m[0, 0].select(0, 0),
        lambda: m.narrow(0, 2, 2),
        lambda: m.narrow(0, 5, 1),
        lambda: m.narrow(0, 0, -1),
        lambda: m.as_strided((5, 5), (5, 5)),
        lambda: m.as_strided((2,), (1, 1)),
        lambda: m.as_strided((2,), (-1,)),
        lambda: m.as_strided((2,), (1,), -1),
    ):
        yield attempt(call)


@case
def meshgrid(torch):
    x, y = torch.arange(3), torch.arange(2)
    yield torch.meshgrid(x, y), torch.meshgrid([x, y], indexing="ij")
    yield torch.meshgrid(x, y, indexing="xy"), torch.meshgrid(x, x[0], indexing="xy")
    yield attempt(torch.meshgrid, x, y.double(), indexing="ij")
    yield attempt(torch.meshgrid, x, indexing="zz")
    yield attempt(torch.meshgrid)


@case
def repeat_interleave(torch):
    x = torch.arange(6.0).reshape(2, 3).clone().requires_grad_()
    y = x.repeat_interleave(torch.tensor([2, 0, 1]), 1)
    yield y, torch.autograd.grad(y.sum(), x)
    yield x.repeat_interleave(2).detach(), x.repeat_interleave(2, 0).detach()
    yield torch.repeat_interleave(torch.tensor([1, 2]))
    yield x.repeat_interleave(torch.tensor(2), dim=0, output_size=4)
    yield attempt(x.repeat_interleave, torch.tensor([1, 2]), 1)
    yield attempt(x.repeat_interleave, torch.tensor([1, -2, 3]), 1)
    yield attempt(x.repeat_interleave, torch.tensor([1.0]), 1)
    yield attempt(x.repeat_interleave, -1)


@case
def other_dtypes(torch):
    x = torch.arange(4, dtype=torch.int32)
    b = x.view(torch.uint8)
    b[1] = 1
    yield x, b, x.view(torch.int64), x.view(torch.float32)
    f = torch.arange(12.0).reshape(3, 4)
    yield f.view(torch.complex64), f.view(torch.float16)
    yield attempt(f[:, ::2].view, torch.float64)
    yield attempt(f[:, :3].view, torch.float64)
    yield attempt(f[0, 0].view, torch.float64)
    yield attempt(f.T.view, torch.float16)
    for start in (1, 2):  # a place that the recording does not know
        yield attempt(f[:, start : start + 2].view, torch.float64)
        yield attempt(f[1:, start : start + 2].view, torch.complex64)
        yield attempt(torch.view_copy, f[:, start : start + 2], torch.float64)
    x = torch.arange(15.0).reshape(5, 3)
    yield attempt(x[:, 1:].view, torch.float64), attempt(x[1:, 1:].view, torch.float64)


@case
def shapes_changed_in_place(torch):
    x = torch.arange(6.0).reshape(1, 2, 3).clone()
    yield x.squeeze_() is x, x, x.transpose_(0, 1), x.stride(), x.unsqueeze_(-1)
    x.mul_(2)
    yield x.squeeze_(-1).t_(), x.swapaxes_(0, 1)
    leaf = torch.ones(2, 3, requires_grad=True)
    y = leaf * 2
    y.t_()
    y.mul_(torch.arange(6.0).reshape(3, 2))
    yield y, torch.autograd.grad(y.sum(), leaf)
    row = x[1]
    row.unsqueeze_(0)
    row.mul_(10)
    yield row, x
    yield attempt(leaf.t_), attempt(row.transpose_, 0, 5)


@case
def a_base_of_another_shape(torch):
    base = torch.arange(6.0).reshape(2, 3).clone()
    flat, row = base.view(3, 2), base[0]
    base.t_()
    yield base.shape, base.stride(), flat._base is base, row._base is base
    flat.add_(10)
    yield base, row
    base.mul_(2)
    yield flat, row
    later = base[1]
    later.zero_()
    yield base, flat, row, later._base is base
    base.squeeze_().unsqueeze_(0)
    row.fill_(7)
    yield base, flat


@case
def memory(torch):
    x = torch.arange(10.0)
    part = x[2:5]
    windows = x.as_strided((4, 3), (2, 1))
    yield part.as_strided((3,), (2,), 0), windows
    x[2] = -1.0
    yield windows, part
    leaf = torch.arange(10.0).requires_grad_()
    y = leaf.as_strided((4, 3), (2, 1))
    yield y, torch.autograd.grad(y.sum(), leaf)


def test_changing_indices_compile_nothing():
    import torchshim as torch
    from torchshim._core.program import LOG

    x = torch.tensor(np.arange(60.0).reshape(20, 3))
    made = []
    for i in range(8):
        before = len(LOG)
        a = (x[i] * 2).tolist()
        b = (x[i : i + 4] + 1).sum().item()
        c = (x[i, i % 3] * 1).item()
        d = (x.select(0, i) + x.narrow(0, i, 2)).tolist()
        x[i] = 7.0
        e = (x * 1).tolist()
        made.append(len(LOG) - before)
        assert a == (np.arange(60.0).reshape(20, 3)[i] * 2).tolist()
        assert [b, c] == [pytest.approx(b), pytest.approx(c)]
        assert len(d) == 2 and e[i] == [7.0, 7.0, 7.0]
    assert made[3:] == [0] * 5, made


def test_pieces_of_a_data_set_compile_once():
    import torchshim as torch
    from torchshim._core.program import LOG

    data = torch.tensor(np.arange(40.0).reshape(10, 4))
    for pieces in (list(data), data.split(2), data.unbind(1)):
        made, sums = [], []
        for piece in pieces:
            before = len(LOG)
            sums.append((piece * 2).sum().item())
            made.append(len(LOG) - before)
        assert sum(sums) == 2 * 780.0
        assert not any(made[3:]), made


# Properties, against NumPy -----------------------------------------------------------


def items(size):
    return st.one_of(
        st.integers(-size, size - 1),
        st.slices(size).filter(lambda s: s.step is None or s.step > 0),
        st.lists(st.integers(-size, size - 1), min_size=2, max_size=2),
    )


@st.composite
def indices(draw):
    index = [draw(items(n)) for n in (3, 4, 2)[: draw(st.integers(0, 3))]]
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), None)
    if draw(st.booleans()) and len(index) < 4:
        index.append(Ellipsis)
    return tuple(index)


def mixes(index):
    """Integers beside lists: NumPy broadcasts them together, PyTorch selects first."""
    return any(type(i) is int for i in index) and any(type(i) is list for i in index)


@settings(max_examples=40, deadline=None)
@given(indices().filter(lambda index: not mixes(index)))
def test_reading_is_numpys(index):
    import torchshim as torch

    array = np.arange(24.0).reshape(3, 4, 2)
    got = torch.tensor(array)[index]
    want = array[index]
    assert tuple(got.shape) == want.shape
    assert got.tolist() == want.tolist()


@settings(max_examples=40, deadline=None)
@given(indices().filter(lambda index: not mixes(index)), st.booleans())
def test_writing_is_numpys(index, scalar):
    import torchshim as torch

    array = np.arange(24.0).reshape(3, 4, 2)
    x = torch.tensor(array)
    shape = array[index].shape
    if any(type(i) is list and i[0] % n == i[1] % n for i, n in aligned(index)):
        scalar = True  # which of two values wins is nobody's promise
    value = -1.0 if scalar else -np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    array[index] = value
    x[index] = value if scalar else torch.tensor(value)
    assert x.tolist() == array.tolist()


def aligned(index):
    sizes = iter((3, 4, 2))
    return [(i, 0 if i is None or i is Ellipsis else next(sizes)) for i in index]


steps = st.sampled_from(
    ("t", "select", "slice", "unsqueeze", "diagonal", "flatten", "flip_dims")
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=4), st.booleans())
def test_chains_of_views_alias_as_numpys(chain, through_view):
    import torchshim as torch

    array = np.arange(24.0).reshape(3, 4, 2)
    x = torch.tensor(array)
    a, v = array, x
    for step in chain:
        if step == "t" and a.ndim >= 2:
            a, v = a.swapaxes(0, 1), v.transpose(0, 1)
        elif step == "select" and a.ndim >= 2:
            a, v = a[1 % len(a)], v[1 % len(a)]
        elif step == "slice" and a.ndim:
            a, v = a[::2], v[::2]
        elif step == "unsqueeze":
            a, v = a[None], v.unsqueeze(0)
        elif step == "diagonal" and a.ndim >= 2:
            a, v = (
                np.einsum("ii...->...i", a[: min(a.shape[:2]), : min(a.shape[:2])]),
                (v.diagonal()),
            )
        elif step == "flip_dims" and a.ndim:
            a, v = a.T, v.permute(*reversed(range(a.ndim)))
        elif step == "flatten" and a.ndim >= 2 and a.flags.c_contiguous:
            a, v = a.reshape(-1), v.flatten()
    item = array.itemsize
    assert v.tolist() == a.tolist()
    if a.size:
        assert tuple(v.stride()) == tuple(s // item for s in a.strides) or 1 in a.shape
    if through_view:
        a *= 2
        v.mul_(2)
    else:
        array += 1
        x.add_(1)
    assert v.tolist() == a.tolist()
    assert x.tolist() == array.tolist()


@case
def shape_of_an_alias_changes_in_place(torch):
    """`grad.data.transpose_(0, 1)` turns the alias; what it is an alias of stays."""
    x = torch.arange(6.0).reshape(2, 3)
    y = x.detach()
    z = y.transpose_(0, 1)
    y[0, 1] = 9
    yield x.clone(), y.clone(), z is y, y.stride()
    x.mul_(2)
    yield y, x.shape
    a = torch.ones(3)
    b = a.data
    a.unsqueeze_(0)
    b += 1
    a[0, 0] = 7
    yield a, b
    p = torch.nn.Parameter(torch.ones(2, 3))
    (p**2).sum().backward()
    turned = p.grad.data.transpose_(0, 1).contiguous()
    yield turned, p.grad
    u = torch.ones(3, 4, requires_grad=True)
    t = u * 2
    s = t.detach()
    t.t_()
    (t * torch.arange(3.0)).sum().backward()
    yield u.grad, s.shape


@case.over("t_", "squeeze_", "unsqueeze_", "transpose_")
def shapes_in_place_when_the_views_are_gone(torch, name):
    args = {"unsqueeze_": (0,), "transpose_": (0, 1)}.get(name, ())
    for x in torch.arange(3.0).view(1, 3) + 1, torch.arange(3.0).view(1, 3):
        yield x.reshape(-1)[:2].tolist()
        yield getattr(x, name)(*args), x._version
        yield x.add_(1), x.stride()


@pytest.mark.parametrize("leaf", [False, True])
def test_gradients_of_memory_that_a_view_does_not_show_are_refused(leaf: bool) -> None:
    x = torchshim.arange(6.0)
    if leaf:
        view = x[2:].requires_grad_()
    else:
        view = x.requires_grad_()[2:]
    with pytest.raises(NotImplementedError, match="does not show"):
        view.as_strided((3,), (1,), 0)
    with torchshim.no_grad():
        assert view.as_strided((3,), (1,), 0).tolist() == [0, 1, 2]
    view.as_strided((2,), (2,), 3).sum().backward()
    grad = view.grad if leaf else x.grad
    assert grad is not None
    assert grad.tolist() == ([0, 1, 0, 1] if leaf else [0, 0, 0, 1, 0, 1])


@case
def subclasses_are_views(torch):
    class Named(torch.Tensor):
        pass

    x = torch.ones(2)
    for made in (Named(x), x.as_subclass(Named), Named(Named(x))):
        yield made._is_view(), made._base is x, type(made._base), made.is_leaf
    y = made + 1
    yield y._is_view(), type(y._base), y.is_leaf, y._version
    made[0] = 5.0
    x[1] = 7.0
    yield x, made, made._version
    yield attempt(made.requires_grad_().add_, 1)
