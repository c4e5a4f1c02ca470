"""Indices of any integers; sums and products of truth values and halves at indices."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.unravel_index(T([5, 1], dtype=torch.uint8), (4, 2**30))
torch.unravel_index(T([5, 1], dtype=torch.int32), 3)
b.put(i, T([False, True, True]), True)
b.index_put((i,), T([False, True, True]), True)
b.index_add(0, i, T([False, True, True]))
b.scatter_add(0, i, T([False, True, True]))
b.scatter_reduce(0, i, T([False, True, True]), "sum", include_self=False)
b.scatter_reduce(0, i, T([False, True, True]), "prod")
b.scatter_reduce(0, i, T([False, True, True]), "amin")
b.scatter_reduce(0, i, T([False, True, True]), "mean")
b.index_reduce(0, i, T([False, True, True]), "amax")
T([300.0]).half().index_reduce(0, i[:2] * 0, T([300.0, 0.5]).half(), "prod")
T([3.1]).bfloat16().index_reduce(0, i[:2] * 0, T([1.01, 1.07]).bfloat16(), "prod")
b.scatter(0, i, T([False, True, True]), reduce="multiply")
b.scatter(0, i[:0].byte(), b[:0])
b.scatter(0, i.byte(), b)
""")
def kinds(torch, line):
    b, i = torch.tensor([True, False, False]), torch.tensor([0, 1, 1])
    return evaluate(torch, line, b=b, i=i, T=torch.tensor)


@case(warnings=False)
def gather_with_sparse_gradients(torch):
    x = torch.arange(6.0).view(2, 3)
    i = torch.tensor([[0, 0], [1, 0]])
    yield torch.gather(x, 1, i, sparse_grad=True)
    y = torch.gather(x.requires_grad_(), 1, i, sparse_grad=True)
    yield torch.autograd.grad(y.sum(), x)[0].to_dense()


@case(warnings=False)
def slices_that_do_not_go_with_a_vector_of_indices(torch):
    def put(name, x, dim, index, source, *rest, **kind):
        return attempt(
            lambda: getattr(x, name)(dim, index, source, *rest, **kind).tolist()
        )

    T = torch.tensor
    indices = [T(i, dtype=torch.long) for i in ([0, 1], [0], [], [5, 0], [[0, 1]], 0)]
    for name, *reduce in ("index_add",), ("index_copy",), ("index_reduce", "mean"):
        for shape in (2, 2, 3), (2,), ():
            x = torch.zeros(shape)
            for other in (2, 3), (2, 2, 3), (2,), (), (1, 2, 2, 3), (0,):
                for index in indices:
                    for dim in sorted({0, max(x.ndim - 1, 0)}):
                        yield put(name, x, dim, index, torch.ones(other), *reduce)
        for dtype in torch.int32, torch.float32:
            for source in torch.ones(1), torch.ones(1).double():
                yield put(name, x[None], 0, T([0], dtype=dtype), source, *reduce)
    x = torch.zeros(4, 3, 2)
    for dim in range(3):
        source = x.narrow(dim, 0, 1)
        yield put("index_add", x, dim, T([-1], dtype=torch.int32), source)
        yield put("index_add", x, dim, T([-1]), source)
        yield put("index_add", x, dim, T([-1]), source, alpha=2)


@case.lines(r"""
torch.take_along_dim(x, torch.ones(2, dtype=torch.int32), 0)
torch.take_along_dim(x, torch.ones(2, 1, dtype=torch.int32), 5)
torch.take_along_dim(x, torch.ones(2, 1, dtype=torch.int64), 5)
torch.take_along_dim(x, torch.ones(2, 1, dtype=torch.int32))
torch.take_along_dim(x, torch.ones(2, 1, dtype=torch.int16))
torch.take_along_dim(x, torch.ones(2, 1))
torch.take_along_dim(x.t(), torch.ones(2, dtype=torch.int64))
torch.take_along_dim(x, torch.ones(2, 2, dtype=torch.int64).t())
torch.take_along_dim(x[0, 0], torch.zeros(2, 2, dtype=torch.int64))
torch.take_along_dim(x[0, 0], torch.zeros((), dtype=torch.int64), 0)
""")
def taken_along_a_dimension(torch, line):
    return evaluate(torch, line, x=torch.arange(6.0).view(2, 3))


@case
def what_is_refused_first(torch):
    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor([[0, 1, 2]])
    for dim, index, src in ((5, i, x), (0, i.float(), x), (0, i, x.double())):
        for function in (torch.scatter, torch.scatter_reduce):
            yield attempt(function, x, dim, index, src, reduce="x")
    yield attempt(lambda: torch.scatter_reduce(x, 0, i, x[:0], "x"))
    yield attempt(lambda: torch.scatter(x, 5, i, 1, reduce="x"))


@case(warnings=False)
def reductions_are_refused_before_dimensions(torch):
    x = torch.ones(3, 4)
    return torch.index_reduce(x, 5, torch.tensor([0]), x, "x")


@case
def elements_of_nothing(torch):
    zeros = torch.zeros(1, 2, dtype=torch.int64)
    for x, dim in ((torch.ones(0, 2), 0), (torch.ones(2, 0), 1), (torch.ones(1, 0), 1)):
        yield attempt(torch.gather, x, dim, zeros)
        yield attempt(torch.scatter, x, dim, zeros, 1.0)
        yield attempt(torch.scatter_add, x, dim, zeros, torch.ones(1, 2))
