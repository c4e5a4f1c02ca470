"""Sparse tensors: made, converted, printed, taken apart, and what is refused."""

import copy
import io
import pickle
import warnings

import pytest

from tests.oracle import attempt, case, evaluate

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

_SETUP = "T = torch.tensor; "


@case(warnings=False).lines("""
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2])
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1., 2.], (3, 3), dtype=torch.float64)
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1., 2.], (1, 3))
torch.sparse_coo_tensor([[0, 1]], [[1., 2.], [3., 4.]], (3, 2))
torch.sparse_coo_tensor([[0.5, 1.]], [1., 2.])
torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor(size=(2, 2)).is_coalesced()
torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0))
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2], is_coalesced=True).is_coalesced()
torch.sparse_coo_tensor([[0], [1]], [1.]).is_coalesced()
torch.sparse_coo_tensor(T([[0, 1]], dtype=torch.int32), [1., 2.])._indices().dtype
torch.sparse_coo_tensor(indices=T([[0]]), values=T([1.]), size=[3], device="cpu")
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1 + 1j, 2])
torch.sparse_coo_tensor([[0]], [1.], (2,), requires_grad=True)
torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1., 2.])
torch.sparse_csr_tensor(T([0, 1, 2]), T([1, 0]), T([1., 2.]), dtype=torch.double)
torch.sparse_csc_tensor([0, 1, 2], [1, 0], [1., 2.])
torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [1., 2.], layout=torch.sparse_csr)
torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [1., 2.])
torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [1., 2.], layout=torch.strided)
torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [1., 2.], layout=torch.sparse_coo)
torch.eye(3).to_sparse(1)
torch.eye(2).to_sparse(layout=torch.sparse_csr)
T([[0., 1], [2, 0]]).to_sparse_csc()
T(1.).to_sparse()
torch.zeros(2, 2).to_sparse()
torch.eye(2, dtype=torch.bool).to_sparse()
torch.sparse.spdiags(T([[1., 2, 3], [4, 5, 6]]), T([0, 1]), (3, 3))
torch.sparse.spdiags(T([[1., 2, 3]]), T([-1]), (3, 3), layout=torch.sparse_csr)
isinstance(torch.eye(2).to_sparse(), (torch.Tensor, torch.sparse.FloatTensor))
torch.is_tensor(torch.eye(2).to_sparse()), torch.eye(2).to_sparse().type()
torch.eye(2).sparse_dim(), torch.eye(2).dense_dim(), torch.eye(2).to_dense()
torch.eye(2).double().to_sparse().new(T([[0, 1], [1, 0]]), T([1., 2.]))
torch.eye(2).to_sparse().new(T([[0, 1]]), T([1., 2.], requires_grad=True), (3,))
torch.eye(2).to_sparse().new(indices=T([[0, 1]]), values=T([1., 2.]), size=(3,))
torch.eye(2).to_sparse().new(T([[0, 1]]), T([[1.], [2.]]), torch.Size([2, 1]))
torch.eye(2).double().to_sparse().new(2, 3), torch.eye(2).to_sparse().new()
torch.eye(2).to_sparse().new(torch.Size([2, 3]), device="cpu")
""")
def made(torch, line):
    text = str(evaluate(torch, f"{_SETUP}{line}"))
    return text


@case(warnings=False).lines("""
torch.sparse_coo_tensor([[0, 1]], [1., 2.], (1,), check_invariants=True)
torch.sparse_coo_tensor([[0, -1]], [1., 2.], (1,), check_invariants=True)
torch.sparse_coo_tensor([[0, -1], [1, 0]], [1., 2.])
torch.sparse_coo_tensor([0, 1], [1., 2.])
torch.sparse_coo_tensor([[0, 1]], [1., 2., 3.])
torch.sparse_coo_tensor([[0, 1]], 1.)
torch.sparse_coo_tensor([[0, 1]], [[1., 2.], [3., 4.]], (3, 3))
torch.sparse_coo_tensor([[0, 1]], [1., 2.], (2, 2))
torch.sparse_coo_tensor([[1, 1]], [1, 2], is_coalesced=True, check_invariants=True)
torch.sparse_coo_tensor([[0, 1]], T([1, 2]), requires_grad=True)
torch.sparse_csr_tensor([0, 1, 3], [1, 0], [1., 2.], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 2], [1, 5], [1., 2.], (2, 3), check_invariants=True)
torch.eye(2).to_sparse(3)
torch.eye(2).indices()
torch.eye(2).values()
torch.eye(2).coalesce()
torch.eye(2).is_coalesced()
torch.eye(2).crow_indices()
torch.eye(2).to_sparse_csr().coalesce()
torch.eye(2).to_sparse_csr().stride()
torch.eye(2).to_sparse().to_dense(dtype=torch.double)
torch.eye(2).to_sparse().reshape(4)
torch.eye(2).to_sparse().numpy()
torch.eye(2).to_sparse().tolist()
torch.eye(2).to_sparse().data_ptr()
torch.eye(2).to_sparse().untyped_storage()
torch.eye(2).to_sparse().item()
bool(torch.eye(2).to_sparse())
torch.eye(2).to_sparse().expand(2, 2)
torch.sparse_coo_tensor([[0, 0]], [1., 2.]).values()
torch.sparse_coo_tensor([[0, 0]], [1., 2.]).indices()
torch.cat([torch.eye(2).to_sparse(), torch.ones(2, 2)])
torch.ones(2) + torch.eye(2).to_sparse()
torch.eye(2).to_sparse() + torch.ones(2, 2)
torch.eye(2).to_sparse() + 1
torch.eye(2).to_sparse() + torch.eye(3).to_sparse()
torch.eye(2).to_sparse() / torch.ones(2, 2)
torch.mm(torch.eye(2).to_sparse(), torch.ones(3, 2))
torch.eye(2).to_sparse() @ torch.ones(2, 2, dtype=torch.double)
torch.sparse.softmax(torch.eye(2).to_sparse(), 5)
torch.sparse_coo_tensor([[0, 1]], [[1., 2.], [3., 4.]]).t()
torch.sparse_coo_tensor([[0, 1]], [[1., 2.], [3., 4.]]).transpose(0, 1)
torch.sparse_coo_tensor([[0]], [1.], (2,), requires_grad=True).mul_(2)
torch.norm(torch.eye(2).to_sparse(), keepdim=True)
torch.norm(torch.eye(2).to_sparse(), dim=0)
torch.norm(torch.eye(2).to_sparse(), dtype=torch.double)
torch.norm(torch.eye(2).to_sparse(), 2, dtype=torch.double)
torch.eye(2).to_sparse().norm(keepdim=True)
torch.eye(2).to_sparse().clone(memory_format=torch.channels_last)
torch.eye(2).to_sparse_csr().clone(memory_format=torch.preserve_format)
_r = torch.eye(3).to_sparse(); _r.resize_as_(_r, memory_format=torch.preserve_format)
torch.eye(2).to_sparse().float(memory_format=torch.channels_last)
torch.eye(2).to_sparse().double(memory_format=torch.contiguous_format)
torch.eye(2).to_sparse_csr().double(memory_format=torch.channels_last)
torch.eye(2).to_sparse_csc().cpu(memory_format=torch.channels_last)
torch.eye(2).to_sparse().to(torch.long, memory_format=torch.channels_last_3d)
torch.zeros_like(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)
torch.empty_like(torch.eye(2).to_sparse(), pin_memory=True)
torch.eye(2).to_sparse().new_zeros(2, pin_memory=True)
torch.eye(2).to_sparse().new_empty(2, none_such=True)
torch.eye(2).to_sparse().new((2, 3))
torch.eye(2).to_sparse().new(T([[0, 1]]))
torch.eye(2).to_sparse().new(3.)
torch.eye(2).to_sparse().new(T([[0, 1]]).int(), T([1., 2.]))
torch.sparse.FloatTensor(T([[0., 1]]), T([1., 2.]))
torch.zeros_like(torch.eye(2).to_sparse(), none_such=True)
torch.eye(2).to_sparse().long(none_such=True)
torch.eye(2).to_sparse_csr().is_contiguous()
torch.eye(2).to_sparse_csc().is_contiguous(memory_format=torch.channels_last)
torch.eye(2).to_sparse_csc().stride()
torch.eye(2).to_sparse_csc().numpy()
""")
def refused(torch, line):
    return attempt(lambda: evaluate(torch, f"{_SETUP}{line}"))


@case(warnings=False)
def parts(torch):
    s = torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 1.0])
    yield s._indices(), s._values(), s._nnz(), s.is_coalesced(), s.layout, s.is_sparse
    c = s.coalesce()
    yield c.indices(), c.values(), c._nnz(), c.is_coalesced(), c.coalesce() is c
    yield s.shape, s.dtype, s.device, s.ndim, s.numel(), len(s), s.size(1), s.is_leaf
    yield s.sparse_dim(), s.dense_dim(), s.stride(), s.is_contiguous(), s.is_sparse_csr
    yield s.to_dense(), s.to_sparse() is s, s.float() is s, s.double().dtype
    r = c.to_sparse_csr()
    yield r.crow_indices(), r.col_indices(), r.values(), r.is_sparse, r.is_sparse_csr
    yield (
        r.to_dense(),
        str(r.t()),
        r.t().to_dense(),
        str(r.to_sparse()),
        r.to("cpu") is r,
    )
    yield r.to_sparse_csc().to_dense(), r.t().to_sparse_coo().to_dense()


@case(warnings=False)
def values_are_shared(torch):
    values = torch.ones(2)
    s = torch.sparse_coo_tensor([[0, 1]], values, (3,))
    s._values().mul_(2)
    yield values, s.to_dense()
    s.mul_(2)
    yield s.to_dense()
    s.add_(s)
    yield s.to_dense(), s.detach().to_dense(), s.clone().to_dense()
    s.zero_()
    yield s._nnz(), s.shape
    dense = torch.ones(2, 2)
    yield dense.add_(torch.eye(2).to_sparse()), dense


@case(warnings=False)
def invariants(torch):
    check = torch.sparse.check_sparse_tensor_invariants
    wrong = lambda: torch.sparse_coo_tensor([[3]], [1.0], (2,))  # noqa: E731
    yield check.is_enabled(), str(wrong())
    with check():
        yield check.is_enabled(), attempt(wrong)
        with check(False):
            yield check.is_enabled()
    yield check.is_enabled(), attempt(check()(wrong))
    check.enable()
    yield check.is_enabled()
    check.disable()
    yield check.is_enabled()


@case(warnings=False)
def roles_of_values(torch):
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    at = torch.tensor([[0, 1], [1, 0]])
    for grad in (False, True):
        for mode in (torch.no_grad, torch.enable_grad):
            with mode():
                s = torch.sparse_coo_tensor(at, values, (2, 2), requires_grad=grad)
            yield s.requires_grad, s.is_leaf, s.grad_fn is None, s._values()
        with torch.no_grad():
            r = torch.sparse_csr_tensor([0, 1, 2], [1, 0], values, requires_grad=grad)
        yield r.requires_grad, r.is_leaf, r.to_dense().requires_grad


@case(warnings=False)
def copies(torch):
    s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    r = s.to_sparse_csr()
    for copied in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone()):
        yield copied._indices(), copied._values(), copied.shape, copied.is_coalesced()
    for t in (s, s.coalesce(), r, s.to_sparse_csc(), s.clone().requires_grad_(), s * 2):
        t.note = [3]
        shallow = copy.copy(t)
        yield str(shallow), shallow.note is t.note, shallow.requires_grad
        shallow._values().mul_(2) if t.is_sparse else shallow.values().mul_(2)
        yield str(t)
        if t.is_sparse:
            yield attempt(lambda t=t: copy.deepcopy(t).note)
    yield pickle.loads(pickle.dumps(s)).note
    file = io.BytesIO()
    torch.save({"s": s, "r": r}, file)
    file.seek(0)
    loaded = torch.load(file)
    yield str(loaded["s"]), str(loaded["r"])


def test_warnings(monkeypatch):
    import torchshim as torch
    from torchshim import _errors
    from torchshim._functions import sparse_construct

    monkeypatch.setattr(_errors, "_warned", set())
    monkeypatch.setattr(_errors, "warn_always", [False])
    monkeypatch.setattr(sparse_construct, "invariants", [None])
    with pytest.warns(UserWarning, match="invariant checks are implicitly disabled"):
        torch.sparse_coo_tensor([[0]], [1.0])
    monkeypatch.setattr(sparse_construct, "invariants", [False])
    with pytest.warns(UserWarning, match="CSR tensor support is in beta state"):
        torch.eye(2).to_sparse_csr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.sparse_coo_tensor([[0]], [1.0])
        torch.eye(2).to_sparse_csc()  # told once, whatever the layout


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, s: s.exp(),
        lambda torch, s: torch.exp(s),
        lambda torch, s: s == s,
        lambda torch, s: s[[0]],
        lambda torch, s: torch.rand(2, layout=torch.sparse_coo),
        lambda torch, s: torch.where(s, s, s),
        lambda torch, s: torch.linalg.norm(s),
        lambda torch, s: torch.nn.functional.softmax(s, 1),
    ],
)
def test_what_is_not_supported_says_sparse(call):
    import torchshim as torch

    with pytest.raises(NotImplementedError, match="sparse"):
        call(torch, torch.eye(2).to_sparse())


@case(raises=(TypeError, RuntimeError)).lines("""
torch.sparse.FloatTensor()
torch.sparse.FloatTensor(2, 3)
torch.sparse.LongTensor(torch.Size([2, 3]))
torch.sparse.FloatTensor([2, 3])
torch.sparse.FloatTensor((2, 3))
torch.sparse.FloatTensor(T([[0, 1]]), T([1., 2.]))
torch.sparse.DoubleTensor(T([[0, 1]]), T([1., 2.]))
torch.sparse.FloatTensor(T([[0, 1]]), T([1., 2.]), (3,))
torch.sparse.FloatTensor(T([[0, 1]]), T([1., 2.]), torch.Size([3]), device="cpu")
torch.sparse.FloatTensor(T([[0, 1]]), T([1., 2., 3.]))
torch.sparse.FloatTensor(T([[0, 1]]))
""")
def legacy(torch, line):
    return str(evaluate(torch, f"{_SETUP}{line}"))


@case
def legacy_ones_say_nothing_of_invariants(torch):
    indices, values = torch.tensor([[0, 1]]), torch.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.sparse.FloatTensor(indices, values, (3,)).to_dense()
    yield any("invariant" in str(each.message) for each in caught)


@case(warnings=False)
def invariants_of_compressed_tensors(torch):
    csr, csc, t = torch.sparse_csr_tensor, torch.sparse_csc_tensor, torch.tensor
    three, rows = t([1.0, 2.0, 3.0]), t([0, 2, 3])
    calls = (
        (csr, t([0.0, 2, 3]), t([0.0, 2, 1]), (2, 3)),
        (csr, rows.short(), t([0, 2, 1]).short(), (2, 3)),
        (csr, rows.int(), t([0, 2, 1]), (2, 3)),
        (csc, rows.int(), t([0, 1, 1]), (3, 2)),
        (csr, rows, t([0, 2]), (2, 3)),
        (csc, rows, t([0, 2]), (3, 2)),
        (csr, t([0, 2]), t([0, 2, 1]), (2, 3)),
        (csc, t([0, 2, 3]), t([0, 1, 1]), (2, 3)),
        (csr, rows, t([0, 2, 1]), (2, 3, 1)),
        (csr, rows, t([0, 2, 1]), (6,)),
        (csr, t([1, 2, 3]), t([2, 0, 9]), (2, 3)),
        (csr, t([1, 2, 3]), t([2, 0, 1]), (2, 3)),
        (csr, t([0, 2, 5]), t([2, 0, 1]), (2, 3)),
        (csr, t([0, 4, 3]), t([0, 1, 1]), (2, 3)),
        (csr, rows, t([2, 0, 1]), (2, 3)),
        (csr, rows, t([0, 0, 1]), (2, 3)),
        (csc, rows, t([1, 0, 1]), (3, 2)),
        (csr, rows, t([0, 2, 1]), (2, 3)),
        (csr, t([0, 0, 3]), t([0, 1, 2]), (2, 3)),
        (csr, t([0, 3, 3]), t([0, 1, 2]), (2, 3)),
    )
    for make, outer, inner, size in calls:
        yield attempt(make, outer, inner, three, size, check_invariants=True)
    empty = torch.zeros(0, dtype=torch.int64)
    yield csr(t([0, 0]), empty, torch.zeros(0), (1, 3), check_invariants=True)


@case(warnings=False)
def empty_ones_like_compressed_tensors(torch):
    x = torch.eye(2).to_sparse_csr()
    for y in (x, x.to_sparse_csc()):
        yield torch.zeros_like(y), torch.zeros_like(y, dtype=torch.int32)
        yield torch.zeros_like(y, requires_grad=True)
        yield torch.empty_like(y)._nnz(), torch.empty_like(y).layout
        yield y.new_zeros((2, 3))
    coo = x.to_sparse_coo()
    yield coo._dimI(), coo._dimV(), torch.eye(2).to_sparse(1)._dimV()
