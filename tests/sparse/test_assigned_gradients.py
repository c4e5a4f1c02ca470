"""Gradients that are assigned to sparse tensors, and their values as numbers."""

from __future__ import annotations

import copy

from tests.oracle import attempt, case, evaluate


def leaf(torch):
    return torch.tensor([0.0, 1.0]).to_sparse().requires_grad_()


@case(warnings=False)
def of_another_pattern(torch):
    x, grad = leaf(torch), torch.ones(2).to_sparse()
    x.grad = grad
    yield x.grad, x.grad is grad, x.grad._nnz(), x.grad.to_dense()
    twin = copy.deepcopy(x)
    yield twin.grad, twin.grad is grad, twin
    x.grad.zero_()
    yield x.grad
    x.grad = None
    yield x.grad
    del x.grad
    yield x.grad


@case(warnings=False)
def added_to(torch):
    x = leaf(torch)
    x.grad = torch.ones(2).to_sparse()
    for _ in range(2):
        (x * 2).to_dense().sum().backward()
        yield x.grad, x.grad.to_dense()
    before = x.grad
    x.grad = None
    (x * 2).to_dense().sum().backward()
    yield x.grad, before
    x.grad = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 3.0], (2,))
    yield x.grad, x.grad.is_coalesced(), x.grad._nnz()


@case(warnings=False)
def of_other_layouts(torch):
    dense, csr = torch.eye(2), torch.eye(2).to_sparse_csr()
    coo = torch.eye(2).to_sparse()
    hybrid = torch.ones(2, 2).to_sparse(1)
    for x in (dense, csr, coo):
        for grad in (dense, csr, coo, hybrid):
            grad = grad.clone()
            x = x.clone().requires_grad_()
            yield attempt(setattr, x, "grad", grad), x.grad is grad
    yield attempt(setattr, coo, "grad", torch.eye(3).to_sparse())
    yield attempt(setattr, coo, "grad", torch.eye(2).double().to_sparse())
    yield attempt(setattr, coo, "grad", coo)
    yield attempt(setattr, coo, "grad", 1)


@case(warnings=False)
def resized(torch):
    def eye(n):
        return torch.eye(n).to_sparse()

    for x, y in ((eye(2), eye(3)), (eye(2), eye(2)), (eye(3), eye(2))):
        yield attempt(x.resize_as_, y), x._nnz()
    yield attempt(eye(2).resize_as_, torch.ones(3, 3, 3).to_sparse())
    yield torch.resize_as_(eye(2), eye(3))
    x = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
    yield x.resize_as_(torch.zeros(3).to_sparse())
    yield torch.eye(2).resize_as_(eye(3)).shape


@case(warnings=False)
def resized_as_sparse(torch):
    def eye(n, dims=2):
        return torch.eye(n).to_sparse(dims)

    x = eye(2)
    yield x.resize_as_sparse_(eye(3)) is x, x
    yield torch.resize_as_sparse_(eye(2), the_template=eye(2))
    empty = torch.sparse_coo_tensor(size=(2, 2))
    yield empty.resize_as_sparse_(eye(3, 1)), empty.dense_dim()
    for other in (eye(1), eye(2, 1), torch.eye(3), eye(3).to_sparse_csr(), None):
        yield attempt(eye(2).resize_as_sparse_, other)


@case(warnings=False)
def contiguous(torch):
    x = torch.eye(2).to_sparse()
    for name in ("contiguous_format", "preserve_format", "channels_last"):
        yield attempt(x.contiguous, memory_format=getattr(torch, name))
    yield attempt(x.contiguous)
    yield attempt(x.contiguous, memory_format=None)
    yield attempt(x.contiguous, torch.contiguous_format)
    yield attempt(torch.eye(2).to_sparse_csr().contiguous)


NUMBERS = {
    "one": [[2.0]],
    "zero": [0.0],
    "scalar": 3,
    "complex": [1j],
    "two": [1.0, 2.0],
    "none": [],
}


@case(message=False, warnings=False).over(*NUMBERS)
def as_numbers(torch, name):
    x = torch.tensor(NUMBERS[name]).to_sparse()
    for function in (bool, float, int, complex, torch.is_nonzero):
        yield attempt(function, x)
    yield attempt(x.is_nonzero)
    yield attempt(x.item)
    yield attempt(x.__index__)
    yield attempt(lambda: "yes" if x else "no")


@case(warnings=False).lines("""
torch.square(torch.tensor([0., 3.]).to_sparse())
torch.tensor([0., 3.]).to_sparse().square()
torch.sparse_coo_tensor([[0, 0]], [1., 2.], (2,)).square()
torch.tensor([0., 3.]).to_sparse().storage_offset()
torch.tensor([0., 3.]).to_sparse().type("torch.sparse.DoubleTensor")
torch.tensor([0., 3.]).to_sparse().type(torch.sparse.LongTensor)
torch.tensor([0., 3.]).to_sparse().type("torch.sparse.Foo")
torch.tensor([0., 3.]).type("torch.sparse.IntTensor")
torch.tensor([0., 3.]).type(torch.sparse.DoubleTensor)
torch.eye(1).to_sparse_csr().type("torch.sparse.DoubleTensor")
torch.eye(1).to_sparse_csr().storage_offset()
x = torch.eye(2).to_sparse(); x[0] = 1
x = torch.eye(2).to_sparse(); x[0, 0] = torch.tensor(1.)
x = torch.eye(2).to_sparse_csr(); x[:] = 1
""")
def forms(torch, line):
    return evaluate(torch, line)
