"""Views that conjugate and negate: the conjugate and the negative bit."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


def values(torch):
    return torch.tensor([[1 + 2j, 3 - 1j], [1j, 2]])


def shown(t):
    """A tensor with what is known of it as a view."""
    return t.is_conj(), t.is_neg(), t._is_view(), t.stride(), t


@case.lines(r"""
c, c._base is x, c.data_ptr() == x.data_ptr(), c.is_set_to(x)
c.detach()
c.data
c.contiguous(), c.to(torch.complex64), c.cpu()
c.T, c.mT
c.H, c.mH, c.adjoint(), x.mH, x.mH.mH
c.conj(), c.conj().is_set_to(x)
c.resolve_conj(), c.resolve_neg() is c, x.resolve_conj() is x, x.resolve_neg() is x
c.conj_physical(), c._conj(), x._conj()
c.real, x.real.is_neg()
c.imag, c.imag.T, c.imag[0], c.imag.view(4), c.imag.detach(), c.imag.conj()
c.imag.clone(), c.imag.contiguous(), c.imag.double(), c.imag.resolve_neg()
c._neg_view(), x._neg_view(), x._neg_view().real, x._neg_view().imag, c._neg_view().imag
c._neg_view().real, x._neg_view()._neg_view(), c._neg_view().resolve_conj()
torch.view_as_real(x._neg_view())
torch.view_as_complex(torch.view_as_real(x)._neg_view())
c.view(4), c.reshape(4), c[0], c[:, 1], c[0, 0], c.expand(1, 2, 2), c.unsqueeze(0)
c.t().reshape(4), c[[0]], c[x.real > 0], c.clone(), c.repeat(1, 1), c.flip(0), c.triu()
list(c), c.split(1), c.unbind(1), c.diagonal()
c.unfold(0, 1, 1), c.as_strided((2,), (2,))
c[1].as_strided((2, 2), (2, 1), 0), c.imag[1].as_strided((2,), (2,), 1)
c + x, c * 2, c @ x, c.abs(), c.sum(), -c, +c
c.exp(), torch.cat([c, c]), c.to(torch.complex128)
torch.empty_like(c).is_conj(), torch.zeros_like(c), torch.ones_like(c.imag)
torch.as_tensor(c), torch.asarray(c)
torch.asarray(c, copy=True), torch.nn.Parameter(c).is_conj()
copy.copy(c), copy.deepcopy(c), copy.deepcopy([c, c.imag])
torch.svd(x)[2].is_conj(), torch.fft.ihfft(x.real).is_conj(), torch.fft.fft(c).is_conj()
torch.tensor([1, -2])._neg_view(), torch.ones(2, dtype=torch.bfloat16)._neg_view()
torch.is_conj(c), torch.is_neg(c.imag), torch._is_zerotensor(c), c._is_zerotensor()
c.tolist(), c.imag.tolist(), c[0, 0].item(), complex(c[0, 0]), float(c.imag[0, 0])
str(c), str(c.imag), f"{c[0, 0]:.1f}"
c.numpy(force=True), c.imag.numpy(force=True), c._neg_view().numpy(force=True)
c.untyped_storage().nbytes(), c.imag.storage_offset(), c.is_contiguous()
torch.as_strided_scatter(c, torch.ones(2) * 1j, (2,), (1,))
torch.real(x.real), torch.conj(x.real), torch.adjoint(x.real)
""")
def kept_or_resolved(torch, line):
    x = values(torch)
    found = evaluate(torch, line, x=x, c=x.conj(), copy=copy)
    found = found if isinstance(found, tuple) else (found,)
    return [shown(t) if isinstance(t, torch.Tensor) else t for t in found]


@case.lines(r"""
torch.view_as_real(c)
torch.view_as_real(c._neg_view())
c.view(torch.float32)
c.view(torch.complex64)
c.imag.view(torch.int32)
torch.view_copy(c, torch.float32)
c.numpy()
c.imag.numpy()
c._neg_view().numpy()
np.asarray(c)
c.__dlpack__()
torch.from_dlpack(c)
torch.is_neg(1)
""")
def refused(torch, line):
    return evaluate(torch, line, c=values(torch).conj(), np=np)


@case.lines(r"""
c.mul_(2)
c.add_(x)
x.add_(c)
x.mul_(c)
c.copy_(x)
x.copy_(c)
c.copy_(c)
c.fill_(1j)
c.T.__setitem__(0, 7j)
c[0].zero_()
c.exp_()
c.conj_physical_()
c.imag.mul_(2)
c.imag.add_(c.imag)
c.imag.fill_(9)
c.imag[0].copy_(torch.ones(2))
setattr(c, "imag", x.real.clone())
setattr(c, "real", x.imag.clone())
c._neg_view().add_(1)
c.real.neg_()
c.resolve_conj().zero_()
c.detach().zero_()
c.fill_diagonal_(5j)
c.masked_fill_(x.real > 1, 1j)
c.index_put_((torch.tensor([0]),), torch.tensor(1j))
c.scatter_(0, torch.tensor([[0, 0]]), y)
c.addmm_(y, y)
torch.add(x, y, out=c)
torch.mm(x, y, out=c)
torch.mm(c, y, out=x)
torch.conj_physical(c, out=c)
x[1:].add_(c[:1])
c[:, 1:].add_(x[:, :1])
c.view(-1)[1:].add_(x.view(-1)[:-1])
x.index_copy_(0, torch.tensor([1, 0]), c)
c.index_copy_(0, torch.tensor([1, 0]), c)
torch.index_select(c, 0, torch.tensor([1, 0]), out=c)
x.view(-1)[1:].copy_(c.view(-1)[:-1])
x[0, 0].expand(3).conj().mul_(2)
x[0, 0].expand(3).conj().fill_(2)
x[0, 0].expand(3).copy_(x[0, 0].expand(3).conj())
""")
def writes(torch, line):
    x, y = values(torch), torch.tensor([[1j, 2.0], [3.0, 4 + 4j]])
    c = x.conj()
    yield attempt(evaluate, torch, line, x=x, y=y, c=c)
    yield x, c, c.is_conj(), x._version, c._version


VIEWS = {
    "conj": lambda y: y.conj(),
    "piece": lambda y: y.conj()[0],
    "imag": lambda y: y.conj().imag,
    "neg": lambda y: y._neg_view(),
    "twice": lambda y: y.conj().conj(),
    "adjoint": lambda y: y.mH,
}


@case.over(VIEWS)
def history(torch, view):
    """Gradients and nodes, also after a write to the base and through the view."""
    x = values(torch).requires_grad_()
    w = torch.tensor([[1j, 2.0], [3.0, 4 + 4j]])
    yield view(x), view(x).is_conj(), view(x).is_neg()
    yield torch.autograd.grad((view(x) * w[: view(x).shape[0]]).abs().sum(), x)
    y = x * 1
    v = view(y)
    y.mul_(w)
    yield v.grad_fn.name(), v
    yield torch.autograd.grad((v.abs() ** 2).sum(), x)
    y = x * 1
    v, other = view(y), view(y)
    v.mul_(3)
    yield v.grad_fn.name(), other.grad_fn.name(), y, v, other, y._version
    yield torch.autograd.grad((y * w).abs().sum() + (other**2).abs().sum(), x)
    y = x * 1
    squared = y * y
    view(y).zero_()
    yield attempt(squared.sum().abs().backward)


@case
def without_history(torch):
    x = values(torch).requires_grad_()
    with torch.no_grad():
        c = x.conj()
        yield c.requires_grad, c.grad_fn, c._is_view(), c.is_leaf
        c.mul_(2)
        yield x, x._version
    yield attempt(c.mul_, 2)
    yield attempt(x.conj().mul_, 2)
    yield attempt(x.conj().imag.mul_, 2)
    p = torch.nn.Parameter(values(torch))
    q = p.detach().conj()
    q.mul_(2j)
    yield p, p._version, shown(q)


@case
def memory_of_others(torch):
    """NumPy's memory, `set_` and `.data`."""
    n = np.array([1 + 2j, 3j])
    c = torch.from_numpy(n).conj()
    c.mul_(2)
    yield n.copy(), c, c.numpy(force=True)
    n[0] = 5 + 5j
    yield c, c.tolist(), c.sum(), c[0].item(), c.imag, c.imag[0].item(), c.cdouble()
    r = np.array([1.0, 2.0])
    v = torch.from_numpy(r)._neg_view()
    r[0] = 7
    yield v, v + 0, v.tolist(), v.float(), v.max(), v[0].item()
    v.zero_()
    v += 3
    yield r
    x, y = values(torch), values(torch) * 2
    c = x.conj()
    c.set_(y)
    yield c.is_conj(), c
    x.set_(y.conj())
    yield x.is_conj(), x
    c.data = y.T
    yield c.is_conj(), c
    x.data = y.conj()
    yield x.is_conj(), x


@case
def files(torch):
    """What is stored is the memory; the bits are noted beside it."""
    x, r = values(torch), torch.tensor([1.0, 2.0])
    several = {
        "x": x,
        "c": x.conj(),
        "h": x.mH,
        "p": torch.nn.Parameter(x.conj()),
        "r": r._neg_view(),
        "i": values(torch).conj().imag,
        "both": values(torch).conj()._neg_view(),
        "half": torch.ones(2, dtype=torch.bfloat16)._neg_view(),
    }
    for legacy in (False, True):
        file = io.BytesIO()
        torch.save(
            several, file, _use_new_zipfile_serialization=not legacy, pickle_protocol=2
        )
        file.seek(0)
        loaded = torch.load(file)
        yield {k: shown(t) for k, t in loaded.items()}
        loaded["c"].mul_(1j)
        yield loaded["x"], loaded["h"]
    yield shown(pickle.loads(pickle.dumps(x.conj())))
    yield x.conj().__reduce_ex__(2)[1][2:], r._neg_view().__reduce_ex__(2)[1][2:]


@case(warnings=False)
def transforms(torch):
    x = values(torch)
    yield torch.vmap(lambda v: v.conj().real * 2)(x)
    yield torch.func.grad(lambda v: (v.conj() * v).sum().real)(x)
    yield torch.func.jvp(lambda v: v.conj() * 2, (x,), (x * 1j,))

    def through(v):
        w = v.clone()
        w.conj().mul_(2j)
        return w

    yield torch.vmap(through)(x), torch.func.vjp(through, x)[1](x)


_ROOTS = (
    "sqrt",
    "rsqrt",
    "asin",
    "acos",
    "asinh",
    "acosh",
    "atan",
    "atanh",
    "exp",
    "log",
)


def _signed_parts(values):
    """The parts as text, with the signs of zeros; those of NaN mean nothing."""
    for value in values.tolist():
        yield [
            f"{part:.3g}".replace("-nan", "nan") for part in (value.real, value.imag)
        ]


@case.over(*_ROOTS)
def sides_of_cuts(torch, name):
    ends = -2.0, -0.5, 0.5, 2.0
    for dtype in (torch.complex64, torch.complex128):
        above = [complex(real, imag) for real in ends for imag in (0.0, 1.0)]
        right = [complex(real, imag) for real in (0.0, -0.0) for imag in ends]
        x = torch.tensor(above + right, dtype=dtype)
        for side in (x, x.conj()):
            value = getattr(torch, name)(side)
            yield value
            # PyTorch's zeros of `acos` have another sign in vectors than alone.
            if name != "acos":
                yield list(_signed_parts(value))


@case.over("sqrt", "rsqrt", "exp", "exp2", "log", "atan", "atanh")
def infinite_parts(torch, name):
    ends = float("inf"), float("-inf"), float("nan"), 0.5
    x = torch.tensor(
        [complex(a, b) for a in ends for b in ends], dtype=torch.complex128
    )
    yield getattr(torch, name)(x)


@case
def powers_on_the_cut(torch):
    x = torch.tensor([complex(-2.0, 0.0), complex(-2.0, -0.0)])
    yield x**0.5, x**-0.5, x ** torch.tensor(0.5)
