"""`torch.masked` compared with PyTorch. Masked tensors: `test_masked_tensor.py`."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case

REDUCTIONS = "sum prod amax amin mean norm var std logsumexp".split()


def masked_of(torch):
    return importlib.import_module(f"{torch.__name__}.masked")


def data(torch):
    x = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])
    return x, torch.tensor([[True, False, True], [False, False, False]])


@case.over(*REDUCTIONS)
def reductions(torch, name):
    x, mask = data(torch)
    reduce = getattr(masked_of(torch), name)
    yield reduce(x), reduce(x, mask=mask)
    for dim in (0, -1, (0, 1), ()):
        yield reduce(x, dim=dim, mask=mask), reduce(x, dim=dim, keepdim=True)
    yield reduce(x, dim=1, mask=mask[:1]), reduce(x, dim=0, mask=mask[0], keepdim=True)
    yield reduce(x, dtype=torch.float64, mask=mask)
    leaf = x.clone().requires_grad_()
    rows = torch.tensor([[True, False, True], [False, True, True]])
    yield torch.autograd.grad(reduce(leaf, dim=1, mask=rows).sum(), leaf)
    yield attempt(reduce, x.int(), dim=0, mask=mask)
    yield attempt(reduce, x, dim=2), attempt(reduce, x, dim=(0, 0))
    yield attempt(reduce, x, mask=mask[None])


@case
def places_and_middles(torch):
    masked, (x, mask) = masked_of(torch), data(torch)
    for name in ("argmax", "argmin"):
        find = getattr(masked, name)
        yield find(x), find(x, 1, mask=mask), find(x, 0, mask=mask, keepdim=True)
        yield find(x.int(), 1, mask=mask), find(x, dtype=torch.int64, mask=mask)
    yield masked.median(x), masked.median(x, 0, mask=mask, keepdim=True)
    yield masked.median(x.int(), mask=mask[:1])
    yield attempt(masked.median, x.int(), mask=mask)
    yield masked.norm(x, float("-inf"), 1, mask=mask), masked.norm(x, 1, mask=mask)
    for flags in ({"unbiased": False}, {"correction": 0}, {"correction": 2}):
        yield masked.var(x, 0, mask=mask[:1], **flags), masked.std(x, **flags)
    yield attempt(masked.var, x, unbiased=True, correction=1)


@case
def normalizations(torch):
    masked, (x, mask) = masked_of(torch), data(torch)
    for name in ("softmax", "log_softmax", "softmin", "cumsum", "cumprod"):
        function = getattr(masked, name)
        yield (
            name,
            function(x, 1),
            function(x, -1, mask=mask),
            function(x, 0, mask=mask),
        )
        yield function(x, 1, dtype=torch.float64, mask=mask[:1])
        yield attempt(function, x, 3)
    yield masked.normalize(x, 2.0, 1, mask=mask), masked.normalize(x, 1, 0)
    yield masked.logaddexp(x, x), masked.logaddexp(x, x, input_mask=mask)
    leaf = x.clone().requires_grad_()
    out = masked.softmax(leaf, 1, mask=mask[:1])
    yield torch.autograd.grad((out * x).sum(), leaf), masked.is_masked_tensor(x)


@case.over("sum", "prod", "amax", "argmin", "mean", "median", "norm", "logsumexp", "x")
def identities(torch, name):
    for dtype in ("float16", "int8", "bool", "complex64"):
        like = torch.ones(1, dtype=getattr(torch, dtype))
        yield attempt(torch.masked._reduction_identity, name, like)
    if name == "norm":
        like = torch.ones(1, dtype=torch.int64)
        yield attempt(torch.masked._reduction_identity, name, like, -float("inf"))


@case
def masks(torch):
    masked = torch.masked
    x, mask = torch.ones(2, 3), torch.tensor([True, False, True])
    for dim in (None, (), 1, (0, 0), (3,), (-1, 0)):
        yield attempt(masked._canonical_dim, dim, 3)
    yield attempt(masked._input_mask, x)
    yield attempt(masked._input_mask, x, mask=torch.ones(1, 2, 3))
    yield masked._input_mask(x, mask=mask), masked._input_mask(x, mask=mask.to_sparse())
    for dim in (None, 0, (0, 1)):
        yield masked._output_mask(masked.sum, x, dim, keepdim=True, mask=mask)
    yield masked._output_mask(masked.norm, x, 2.0, 0, mask=mask)
    yield masked._output_mask(masked.softmax, x, 0, mask=mask)
    yield attempt(masked._output_mask, 3, x, mask=mask)
    yield masked._combine_input_and_mask(masked.amax, x, mask)
    yield masked._combine_input_and_mask(masked.sum, x, None)
    yield masked._where(mask, x, torch.tensor(7.0))
    yield masked.sum(x, 0, mask=mask.to_sparse())
    yield attempt(
        masked.norm, torch.ones(2, dtype=torch.int64), -float("inf"), mask=mask[:2]
    )
    yield attempt(masked.amax, torch.ones(2, dtype=torch.complex64), mask=mask[:2])


@case(warnings=False).over(
    ["sum", "prod", "amax", "amin", "mean"],
    ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"],
)
def sparse_reductions(torch, name, layout):
    x = torch.tensor([[0, 2.0, 0, -3], [0, 0, 0, 0], [1, 0, 5, 4]])
    mask = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1]]).bool()
    sparse, reduce = getattr(x, layout)(), getattr(masked_of(torch), name)
    for dim in (None, 0, 1, (0, 1)):
        for m in (None, mask, mask.to_sparse(), mask.to_sparse_csr(), mask[0]):
            yield attempt(reduce, sparse, dim, mask=m, keepdim=True)
        yield attempt(reduce, sparse, dim, mask=mask)
        yield attempt(reduce, sparse, dim, mask=mask, dtype=torch.float64, keepdim=True)
    yield attempt(reduce, sparse, 0, mask=torch.zeros(3, 4).bool())
    yield attempt(reduce, sparse, 2), attempt(reduce, sparse, mask=mask[None])
    yield attempt(reduce, getattr(x.int(), layout)(), 0, mask=mask, keepdim=True)


@case(warnings=False)
def sparse_rows(torch):
    masked = masked_of(torch)
    x = torch.arange(12.0).view(3, 2, 2)
    sparse = x.to_sparse(1)
    for mask in (None, x > 4, (x[0] > 0).expand(3, 2, 2), (x > 4).to_sparse(1)):
        for dim in (0, 1, (0, 2), (1, 2)):
            yield masked.sum(sparse, dim, mask=mask)
        if mask is not None:
            yield masked.amax(sparse, 0, mask=mask)
    scalar, on = torch.tensor(2.0).to_sparse(), torch.tensor(True)
    for dim in (None, 0, -1):
        yield masked.sum(scalar, dim), masked.prod(scalar, dim, mask=on, keepdim=True)
    fill = torch.tensor(9.0)
    yield masked._ops._where((x > 4).to_sparse(1), sparse, fill).to_dense()
    yield masked._ops._input_mask(sparse, mask=x[0] > 0)


@case(warnings=False).over(
    *"argmax cumsum log_softmax softmin median norm std logsumexp".split()
)
def sparse_refusals(torch, name):
    x, function = torch.eye(2), getattr(masked_of(torch), name)
    for layout in ("to_sparse_coo", "to_sparse_csr"):
        for mask in (None, x > 0):
            yield attempt(function, getattr(x, layout)(), 1, mask=mask)
    yield attempt(masked_of(torch).logaddexp, x.to_sparse(), x)
    yield attempt(masked_of(torch).normalize, x.to_sparse(), 2.0, 1)


def test_gradients_of_sparse_reductions():
    import torchshim as torch

    x = torch.tensor([[0, 2.0], [3.0, 4.0]]).to_sparse().requires_grad_()
    mask = torch.tensor([[True, True], [True, False]])
    total = torch.sparse.sum(torch.masked.prod(x, 0, mask=mask))
    (grad,) = torch.autograd.grad(total, x)
    assert grad.to_dense().tolist() == [[0, 1], [0, 0]]
