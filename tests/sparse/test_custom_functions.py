"""Custom functions that take and give sparse tensors, and hooks of these."""

from __future__ import annotations

from tests.oracle import attempt, case


def product(torch):
    """The product of a sparse matrix and a dense one, which keeps both."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, s, d):
            ctx.save_for_backward(s, d)
            return torch.sparse.mm(s, d)

        @staticmethod
        def backward(ctx, grad):
            s, d = ctx.saved_tensors
            print(s.layout, s.requires_grad, ctx.needs_input_grad)
            return (grad @ d.t()).sparse_mask(s.coalesce()), s.t() @ grad

    return Product.apply


def matrix(torch, grad=False):
    indices, values = [[0, 1, 1], [2, 0, 1]], [3.0, 4.0, 5.0]
    made = torch.sparse_coo_tensor(indices, values, (2, 3))
    return made.coalesce().requires_grad_(grad)


@case(warnings=False).over(grad=[False, True], dense=[False, True])
def inputs(torch, grad, dense):
    s, d = matrix(torch, grad), torch.arange(6.0).view(3, 2)
    if dense:
        d.requires_grad_()
    for _ in range(3):
        out = product(torch)(s, d)
        yield out.requires_grad, type(out.grad_fn).__name__.split("Backward")[0]
        if out.requires_grad:
            (out * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        yield s.grad if s.grad is None else str(s.grad), d.grad


@case(warnings=False)
def inputs_with_a_history(torch):
    v, d = torch.arange(3.0).requires_grad_(), torch.arange(6.0).view(3, 2)
    indices = torch.tensor([[0, 1, 1], [2, 0, 1]])
    for _ in range(3):
        s = torch.sparse_coo_tensor(indices, v * 2, (2, 3), is_coalesced=True)
        product(torch)(s, d).pow(2).sum().backward()
        yield v.grad.clone()


@case(warnings=False)
def a_sparse_operand_made_within(torch):
    class Spmm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values, size, b):
            a = torch.sparse_coo_tensor(indices, values, size)
            ctx.save_for_backward(a, b)
            return torch.matmul(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            of_values = (grad @ b.t())[tuple(a._indices())]
            return None, of_values, None, a.t() @ grad

    indices = torch.tensor([[0, 1, 2], [2, 0, 1]])
    v, b = torch.arange(3.0).requires_grad_(), torch.arange(6.0).view(3, 2)
    b.requires_grad_()
    Spmm.apply(indices, v, torch.Size([3, 3]), b).pow(2).sum().backward()
    yield v.grad, b.grad


@case(warnings=False)
def outputs(torch):
    class Sparse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, indices, values):
            ctx.save_for_backward(indices)
            return torch.sparse_coo_tensor(indices, values, (2, 3)), values * 2

        @staticmethod
        def backward(ctx, grad, other):
            (indices,) = ctx.saved_tensors
            print(grad.to_dense(), other)
            return None, grad.to_dense()[tuple(indices)] + other

    indices = torch.tensor([[0, 1], [2, 0]])
    for _ in range(3):
        v = torch.arange(2.0).requires_grad_()
        s, twice = Sparse.apply(indices, v)
        yield s.requires_grad, s.is_sparse, twice
        ((s * 3).to_dense().sum() + twice.sum()).backward()
        yield v.grad
    with torch.no_grad():
        s, twice = Sparse.apply(indices, v)
        yield s.requires_grad, s.to_dense(), twice


@case(warnings=False)
def hooks(torch):
    s = matrix(torch, True)
    s.register_hook(lambda grad: print(grad))
    s.register_hook(lambda grad: grad * 2)
    made = s * 3
    made.register_hook(lambda grad: print(grad))
    torch.sparse.sum(made).backward()
    yield str(s.grad)
    yield attempt(matrix(torch).register_hook, print)
    s.register_hook(lambda grad: grad.to_dense())
    yield attempt(torch.sparse.sum(s).backward)


@case(warnings=False).lines("""
    torch.zeros(2, 3, layout=torch.sparse_coo)
    torch.zeros(2, 3, layout=torch.sparse_coo).is_coalesced()
    torch.zeros(3, layout=torch.sparse_coo, requires_grad=True, dtype=torch.float64)
    torch.zeros((), layout=torch.sparse_coo)
    torch.empty(2, 3, layout=torch.sparse_coo)
    torch.zeros(2, 3, layout=torch.sparse_csr, requires_grad=True)
    torch.zeros(2, 3, layout=torch.sparse_csc)
    torch.zeros(3, layout=torch.sparse_csr)
    torch.ones(3, layout=torch.sparse_coo)
    torch.zeros(2, 3, layout=torch.sparse_coo, out=torch.ones(2, 3))
    torch.zeros(2, 3, layout=3)
""")
def without_values(torch, line):
    return str(eval(line, {"torch": torch}))


@case(warnings=False)
def leaves_that_are_written_to(torch):
    s = matrix(torch, True)
    torch.sparse.sum(s).backward()
    with torch.no_grad():
        s.add_(s.grad, alpha=-0.5)
    yield str(s), str(s.grad), s.is_leaf
    yield attempt(s.mul_, 2)
    s.grad = None
    torch.sparse.sum(s).backward()
    yield str(s.grad)
