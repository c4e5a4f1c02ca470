"""Compressed sparse tensors: blocks, batches and dense dimensions."""

import copy
import io
import pickle

import pytest

from tests.oracle import attempt, case, evaluate

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

_SETUP = """T = torch.tensor; x = torch.zeros(4, 6)
x[0, 0], x[0, 1], x[2, 3], x[3, 5] = 1., 2., 3., 4.
xb, xh = torch.stack([x, x * 2]), torch.stack([x, -x], -1)
csr, csc, coo = x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse()
bsr, bsc = x.to_sparse_bsr((2, 2)), x.to_sparse_bsc((2, 3))
batch, blocks = xb.to_sparse_csr(), xb.to_sparse_bsr((2, 2))
hybrid, both = xh.to_sparse_csr(dense_dim=1), xh.to_sparse_bsr((2, 2), dense_dim=1)
p, i = T([0, 1, 2]), T([0, 1]); v = torch.arange(8.).reshape(2, 2, 2)
pp, ii, ones = p.repeat(2, 1), i.repeat(2, 1), torch.ones(2, 2)
d = torch.arange(18.).reshape(6, 3)
"""


def _names(torch):
    found = {"torch": torch}
    exec(_SETUP, found)
    del found["__builtins__"]
    return found


@case(warnings=False).lines("""
bsr
bsc
batch
blocks
hybrid
both
xb.to_sparse_csc(dense_dim=1)
x.to_sparse_bsr(2)
x.to_sparse(layout=torch.sparse_bsc, blocksize=(1, 3))
bsr.to_sparse()
T([[0., 0, 1], [2, 0, 0]]).to_sparse_bsc((1, 1)).to_sparse()
batch.to_sparse(), batch.to_sparse().is_coalesced(), bsr.to_sparse().is_coalesced()
xb.flip(1).to_sparse_csc().to_sparse(2)
blocks.to_sparse_coo()
hybrid.to_sparse()
bsr.to_sparse_bsc((2, 2))
bsc.to_sparse_bsr((2, 3))
csr.to_sparse_bsr((2, 2))
csc.to_sparse_bsc((2, 1))
coo.to_sparse_bsr((4, 2))
batch.to_sparse_csc()
blocks.to_sparse_bsc((2, 2))
hybrid.to_sparse_csc()
hybrid.to_sparse_bsr((2, 2))
both.to_sparse_bsc((2, 2))
xh.to_sparse(2).to_sparse_csr()
xh.to_sparse(2).to_sparse_bsr((2, 2))
bsr.to_sparse_bsr((2, 2)) is bsr, batch.to_sparse_csr() is batch
[t.to_dense() for t in (bsr, bsc, batch, blocks, hybrid, both)]
[(t.sparse_dim(), t.dense_dim(), t._nnz()) for t in (bsr, bsc, batch, blocks, both)]
bsr.crow_indices(), bsr.col_indices(), bsc.ccol_indices(), bsc.row_indices()
bsr.values(), blocks.values().shape, bsr.is_sparse, bsr.is_sparse_csr
torch.zeros(2, 4, 6, layout=torch.sparse_csc)
torch.zeros_like(bsr), torch.ones_like(bsr), torch.empty_like(both).shape
torch.zeros_like(batch), torch.zeros_like(hybrid), csr.new_zeros((3, 4, 5))
torch.zeros(2, 0, 6).to_sparse_csr(), torch.zeros(4, 6, 0).to_sparse_bsr((2, 2), 1)
bsr.double(), bsr.int(), batch.bool(), bsr.to(torch.complex64)
bsr.clone(), bsr.detach(), bsr.clone().zero_(), bsr.clone().fill_(3)
torch.sparse_bsr_tensor(p, i, v)
torch.sparse_bsr_tensor(p, i, v, (4, 6))
torch.sparse_bsc_tensor(p, i, v)
torch.sparse_compressed_tensor(p, i, v, layout=torch.sparse_bsc)
torch.sparse_csr_tensor(p, i, v)
torch.sparse_csr_tensor(p, i, v, (2, 2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(pp, ii, ones, (2, 2, 2), check_invariants=True)
torch.sparse_bsr_tensor(pp, ii, torch.ones(2, 2, 1, 2))
torch.sparse_bsr_tensor([0, 1, 2], [0, 1], v.tolist(), (4, 4), dtype=torch.double)
torch.sparse_bsr_tensor(p, i, v, (4, 4), requires_grad=True)
bsr.t(), bsr.mT, bsr.transpose(0, 1).to_dense()
blocks.transpose(1, 2), batch.mT, batch.transpose(-1, -2)
torch.stack([xb, -xb]).to_sparse_csr().transpose(0, 1)
bsr[0], bsr[0, 1], bsr.select(1, 0), csc[:, 1]
batch[0], batch[1, 0], batch[1, 0, 1], blocks[1]
hybrid[0], hybrid[0, 0], hybrid[..., 0], both.select(2, 1)
batch.unbind(), list(blocks)
bsr @ d, torch.mm(bsr, d), torch.mv(bsr, d[:, 0]), bsr @ d[:, 0]
d.t() @ bsr.t(), F.linear(torch.ones(2, 6), bsr), torch.sparse.mm(bsr, d)
torch.addmm(torch.ones(4, 3), bsr, d, beta=2, alpha=3)
torch.addmv(torch.ones(4), bsr, d[:, 0])
torch.sparse.addmm(torch.ones(4, 3), bsr, d)
bsr + bsr, batch + batch, hybrid + hybrid, xb + batch
bsr * 2, T(2.) * bsr, -bsr, batch * 3, hybrid * hybrid, hybrid * xh
bsr.sin(), batch.abs(), hybrid.sqrt(), bsr.relu(), bsr.isnan(), bsr.conj()
bsr.clone().mul_(2), bsr.clone().sqrt_(), bsr.clone().add_(bsr)
bsr.sum(), batch.sum(), hybrid.sum()
x.sparse_mask(bsr), (x + 1).sparse_mask(bsc), xb.sparse_mask(batch)
xh.sparse_mask(hybrid), coo.sparse_mask(bsr)
torch.nn.Parameter(bsr)
""")
def blocks_and_batches(torch, line):
    found = evaluate(torch, line, **_names(torch))
    many = found if isinstance(found, (tuple, list)) else [found]
    return [str(each) for each in many]


@case(warnings=False).lines("""
x.to_sparse_csr(dense_dim=1)
x.to_sparse_bsr((3, 2))
x.to_sparse_bsr((2, 2, 2))
x.to_sparse_bsr((0, 2))
x.to_sparse_csr((2, 2))
x.to_sparse(layout=torch.sparse_bsr)
x.to_sparse(layout=torch.sparse_csr, blocksize=(2, 2))
x.to_sparse(blocksize=(2, 2))
x.to_sparse(1, layout=torch.sparse_csr)
x.to_sparse(dense_dim=3)
x[0].to_sparse_bsr((2, 2))
torch.stack([x, x * 0]).to_sparse_csr()
torch.stack([x, x * 0]).to_sparse_bsr((2, 2))
torch.zeros(0, 4, 6).to_sparse_csr()
torch.zeros(0, 4, 6).to_sparse(layout=torch.sparse_bsc, blocksize=(2, 2))
bsr.untyped_storage()
bsr.to_sparse(1)
bsr.to_sparse_csr()
bsr.to_sparse_csc()
bsr.to_sparse_bsr((1, 1))
bsr.to_sparse_bsc((1, 1))
bsr.to_sparse(layout=torch.sparse_bsc)
csr.to_sparse_bsr((3, 2))
csr.to_sparse_csr(dense_dim=0)
csr.to_sparse(layout=torch.sparse_csc, blocksize=(1, 1))
coo.to_sparse_csr(dense_dim=1)
coo.to_sparse(1)
batch.to_sparse_bsr((2, 2))
batch.to_sparse().to_sparse_csr()
batch.to_sparse().to_sparse(layout=torch.sparse_csc)
xh.to_sparse(1).to_sparse_csr()
bsr.ccol_indices()
bsc.crow_indices()
csr.row_indices()
bsr.indices()
bsr.is_contiguous()
bsr.stride()
bsr.numpy()
torch.zeros(4, 6, layout=torch.sparse_bsr)
torch.empty(4, 6, layout=torch.sparse_bsc)
torch.empty(4, layout=torch.sparse_csr)
bsr.new_zeros((2, 2))
bsr.copy_(x.flip(0).to_sparse_bsr((4, 6)))
bsr.copy_(csr)
torch.ones(4, 4).to_sparse_bsr((2, 2)).copy_(torch.ones(2, 8).to_sparse_bsr((1, 4)))
torch.eye(4).to_sparse_bsr((1, 2)).copy_(torch.eye(4).to_sparse_bsr((2, 1)))
str(torch.eye(4).to_sparse_csr().copy_(torch.eye(4, 5).to_sparse_csr()))
bsr.sum(0)
torch.sparse_bsr_tensor(p, i, v[:, 0, 0], (4, 4), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v[:, 0, 0])
torch.sparse_bsr_tensor(p, i, v, (4, 5), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v, (5, 4), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v, (6, 4), check_invariants=True)
torch.sparse_bsc_tensor(p, i, v, (6, 6), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v, (4, 2), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v, (4, 4, 4), check_invariants=True)
torch.sparse_bsr_tensor(p, i, v[:1], (4, 4), check_invariants=True)
torch.sparse_csr_tensor(p, i, v, (2, 2), check_invariants=True)
torch.sparse_csr_tensor(p, i[None], v)
torch.sparse_csr_tensor(T(0), i, v, (2, 2), check_invariants=True)
torch.sparse_csr_tensor(p, i, T(0.), (2, 2), check_invariants=True)
torch.sparse_csr_tensor(pp, ii, torch.ones(3, 2), (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(pp, ii, ones, (3, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(pp, ii, torch.ones(2), (2, 2, 2), check_invariants=True)
torch.sparse_csr_tensor(pp, ii, ones, (2, 2), check_invariants=True)
torch.sparse_csr_tensor(T([[0, 1, 2], [0, 1, 1]]), ii, ones, check_invariants=True)
torch.sparse_csr_tensor(T([[0, 1, 2], [1, 1, 2]]), ii, ones, check_invariants=True)
torch.sparse_csr_tensor(pp * 0 + T([0, 2, 2]), ii.flip(1), ones, check_invariants=True)
torch.sparse_bsr_tensor(T([0, 3, 2]), i, v, (4, 4), check_invariants=True)
torch.sparse_bsr_tensor(p.int(), i, v, (4, 4), check_invariants=True)
torch._validate_sparse_bsr_tensor_args(p, i, v, (4, 5))
blocks.transpose(0, 1)
batch.t()
hybrid.transpose(0, 1)
hybrid.t()
bsr.transpose(0, 5)
batch[:, 0]
batch[2]
batch.unbind(1)
""")
def refused(torch, line):
    return attempt(lambda: evaluate(torch, line, **_names(torch)))


@case(warnings=False)
def gradients_of_blocks(torch):
    names = _names(torch)
    x, xh = names["x"], names["xh"]
    x.requires_grad_()
    blocks = x.to_sparse_bsr((2, 2))
    yield str(blocks.grad_fn)[:24], str(x.to_sparse_bsc((2, 2)).grad_fn)[:24]
    (blocks.to_dense() * torch.arange(24.0).reshape(4, 6)).sum().backward()
    yield x.grad
    h = xh.to_sparse_csr(dense_dim=1).requires_grad_()
    (h.to_dense() * xh).sum().backward()
    yield str(h.grad)


@case(warnings=False)
def files_and_copies(torch):
    names = _names(torch)
    for name in ("bsr", "bsc", "batch", "blocks", "hybrid", "both"):
        t = names[name]
        file = io.BytesIO()
        torch.save(t, file)
        file.seek(0)
        yield str(torch.load(file)), str(pickle.loads(pickle.dumps(t)))
        yield str(copy.copy(t))
        torch.testing.assert_close(t, t.clone())
        yield attempt(torch.testing.assert_close, t, t * 2)


def test_gradients_that_pytorch_lacks():
    import torchshim as torch

    names = _names(torch)
    d, w = names["d"].clone().requires_grad_(), names["bsr"].requires_grad_()
    ((w @ d) * 2).sum().backward()
    dense = names["x"].clone().requires_grad_()
    e = names["d"].clone().requires_grad_()
    ((dense @ e) * 2).sum().backward()
    assert torch.equal(d.grad, e.grad)
    assert w.grad.layout is torch.sparse_bsr
    assert torch.equal(w.grad.values(), dense.grad.sparse_mask(w.detach()).values())


def test_products_and_sums_that_pytorch_lacks():
    import torchshim as torch

    names = _names(torch)
    x, xb, bsr, batch = (names[name] for name in ("x", "xb", "bsr", "batch"))
    other = x.flip(0).to_sparse_bsr((2, 2))
    assert torch.equal((bsr + other).to_dense(), x + x.flip(0))
    assert torch.equal((bsr * other).to_dense(), x * x.flip(0))
    assert torch.equal((bsr @ bsr.t()).to_dense(), x @ x.t())
    assert torch.equal((bsr * (x + 1)).to_dense(), x * (x + 1))
    assert torch.equal((batch * batch).to_dense(), xb * xb)
    assert torch.equal(torch.bmm(batch, xb.mT), xb @ xb.mT)
