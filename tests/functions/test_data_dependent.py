"""Functions whose results' shapes depend on values, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

SETUP = (
    "x = torch.tensor([[0., 1., 2.], [3., 0., 5.]], requires_grad=True); "
    "i = torch.tensor([[0, 1, 1], [3, 0, 5]]); e = torch.zeros(0, 3); "
    "s = torch.tensor(3.); v = torch.tensor([3, 1, 2, 1]); nan = float('nan')"
)


def run(torch, line):
    scope = {"torch": torch}
    exec(SETUP, scope)
    return attempt(
        evaluate, torch, line, **{k: scope[k] for k in "xiesv"}, nan=scope["nan"]
    )


@case(stride=True)
def nonzero(torch):
    for line in (
        "x.nonzero()",
        "torch.nonzero(i)",
        "s.nonzero()",
        "torch.tensor(0.).nonzero()",
        "e.nonzero()",
        "torch.nonzero(torch.tensor([1 + 1j, 0]))",
        "torch.nonzero(torch.tensor([True, False]))",
        "torch.argwhere(x)",
        "torch.argwhere(s)",
        "x.T.nonzero()",
    ):
        yield run(torch, line)


@case
def nonzero_as_tuple(torch):
    for line in (
        "x.nonzero(as_tuple=True)",
        "s.nonzero(as_tuple=True)",
        "torch.tensor(0.).nonzero(as_tuple=True)",
        "torch.nonzero(torch.tensor([nan, 0]), as_tuple=True)",
        "torch.nonzero(s, out=torch.tensor(0), as_tuple=True)",
        "torch.nonzero(3)",
        "torch.nonzero(x, out=torch.empty(0))",
        "torch.nonzero(x, out=torch.empty(0, dtype=torch.int64))",
    ):
        yield run(torch, line)


@case
def masked_select(torch):
    for line in (
        "x.masked_select(x > 1)",
        "torch.masked_select(x, torch.tensor(True))",
        "x.masked_select(torch.tensor([True, False, True]))",
        "s.masked_select(torch.tensor(True))",
        "s.masked_select(torch.tensor([[True, False, True]]))",
        "e.masked_select(torch.tensor(True))",
        "x.masked_select(i)",
        "x.masked_select(torch.ones(4, dtype=torch.bool))",
        "torch.masked_select(x, 1)",
        "torch.masked_select(i, i > 1, out=torch.empty(0, dtype=torch.int64))",
        "torch.masked_select(x, x > 2, out=torch.empty(0))",
        "torch.masked_select(i, i > 2, out=torch.empty(0))",
    ):
        yield run(torch, line)


@case
def masked_select_gradient(torch):
    x = torch.tensor([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    y = (x * x).masked_select(torch.tensor([[True], [False]]))
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    yield y, g
    yield torch.autograd.grad(g.sum(), x)
    z = torch.tensor([1.0, 2.0], requires_grad=True)
    z.masked_select(torch.tensor([[True, False], [True, True]])).sum().backward()
    yield z.grad


@case
def unique(torch):
    for line in (
        "x.unique()",
        "x.unique(return_inverse=True, return_counts=True)",
        "v.unique(sorted=False)",
        "torch.unique(v, True, True)",
        "torch.unique(torch.tensor([nan, 1., nan]), return_counts=True)",
        "torch.unique(torch.tensor([0., -0.]))",
        "torch.unique(i > 1, return_counts=True)",
        "torch.unique(torch.tensor([2, 1, 2], dtype=torch.uint8))",
        "torch.unique(torch.tensor([2., 1., 2.]).bfloat16())",
        "torch.unique(s, return_inverse=True)",
        "torch.unique(torch.zeros(0), return_inverse=True, return_counts=True)",
        "i.unique(dim=0, return_inverse=True)",
        "x.unique(dim=1)",
        "torch.unique(torch.tensor([[2, 1, 2], [1, 3, 1]]), dim=1,"
        " return_inverse=True, return_counts=True)",
        "torch.unique(torch.tensor([[[1, 2], [1, 2]], [[0, 2], [0, 2]]]), dim=1)",
        "torch.unique(e, dim=0, return_inverse=True, return_counts=True)",
        "torch.unique(e, dim=1)",
        "torch.unique(torch.zeros(0, 0), dim=1)",
        "torch.unique(s, dim=0)",
        "torch.unique(torch.tensor([[2, 9], [7, 0], [3, 1]]).byte().view(torch.bool),"
        " dim=0, return_inverse=True)",
        "torch.unique(torch.tensor([nan, 0, 0, nan, nan, 1]), True, True, True, 0)",
        "torch.unique(torch.tensor([[2, nan], [1, 0], [nan, 3], [1, 5]]), dim=0)",
        "torch.unique(torch.tensor([[2, nan], [1, 0], [nan, 3], [1, 5]]), dim=1)",
        "torch.unique(torch.tensor([3, nan, 1, 3, 2, nan, 0, 1]).half(), dim=0)",
        "x.unique(dim=5)",
        "torch.unique(torch.tensor([1j]))",
        "torch.unique(torch.tensor([1j]), dim=0)",
    ):
        yield run(torch, line)


@case
def unique_consecutive(torch):
    for line in (
        "torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]))",
        "torch.unique_consecutive(i, return_inverse=True, return_counts=True)",
        "x.unique_consecutive()",
        "torch.unique_consecutive(torch.tensor([nan, nan]), return_counts=True)",
        "torch.unique_consecutive(torch.tensor([[1, 1], [1, 1], [2, 1]]), dim=0,"
        " return_inverse=True, return_counts=True)",
        "torch.unique_consecutive(s, True, True)",
        "torch.unique_consecutive(torch.zeros(0), True, True)",
        "torch.unique_consecutive(e, dim=0, return_inverse=True, return_counts=True)",
        "torch.unique_consecutive(torch.tensor([1j]))",
    ):
        yield run(torch, line)


@case
def unique_has_no_derivative(torch):
    x = torch.tensor([1.0, 2.0, 1.0], requires_grad=True)
    yield attempt(torch.unique(x).sum().backward)
    yield attempt(torch.unique(x, dim=0).sum().backward)
    yield attempt(torch.unique_consecutive(x).sum().backward)
    yield x.grad


@case
def bincount(torch):
    for line in (
        "torch.bincount(v)",
        "v.bincount(minlength=6)",
        "torch.bincount(v, torch.tensor([.5, .25, 1, 2]))",
        "torch.bincount(v, weights=torch.tensor([1, 2, 3, 4]))",
        "torch.bincount(v, torch.tensor([1., 2, 3, 4]).half())",
        "torch.bincount(v, torch.tensor([True, True, False, True]))",
        "torch.bincount(torch.tensor([1, 2], dtype=torch.uint8))",
        "torch.bincount(torch.tensor([], dtype=torch.int64))",
        "torch.bincount(torch.tensor([], dtype=torch.int64), torch.zeros(0), 3)",
        "torch.bincount(i)",
        "torch.bincount(torch.tensor(3))",
        "torch.bincount(torch.tensor([1, -3]))",
        "torch.bincount(torch.tensor([1, 3.]))",
        "torch.bincount(torch.tensor([True]))",
        "torch.bincount(v, torch.tensor([1, 2]))",
        "torch.bincount(v, minlength=-1)",
    ):
        yield run(torch, line)


@case
def repeat_interleave(torch):
    for line in (
        "x.repeat_interleave(2)",
        "x.repeat_interleave(2, 0)",
        "torch.repeat_interleave(i, 3, dim=-1)",
        "x.repeat_interleave(2, dim=1, output_size=6)",
        "x.repeat_interleave(2, dim=1, output_size=7)",
        "x.repeat_interleave(0, dim=1).shape",
        "s.repeat_interleave(3)",
        "x.repeat_interleave(torch.tensor([1, 2]), 0)",
        "x.repeat_interleave(torch.tensor([1, 2]), dim=0, output_size=3)",
        "x.repeat_interleave(torch.tensor([1, 2]), dim=0, output_size=4)",
        "x.repeat_interleave(torch.tensor([2]), 0)",
        "x.repeat_interleave(torch.tensor(2), 0)",
        "i.repeat_interleave(torch.tensor([1, 2, 0, 1, 1, 1]))",
        "x.repeat_interleave(torch.tensor([0, 0]), dim=0).shape",
        "torch.repeat_interleave(torch.tensor([1, 2, 0]))",
        "torch.repeat_interleave(torch.tensor([1, 2], dtype=torch.int32))",
        "x.repeat_interleave(torch.tensor([1, 2, 3]), 0)",
        "x.repeat_interleave(-1)",
        "x.repeat_interleave(2, dim=5)",
        "x.repeat_interleave(torch.tensor([1, 2]), dim=5)",
        "x.repeat_interleave(torch.tensor([1, -2]), 0)",
        "x.repeat_interleave(torch.tensor([1., 2.]), 0)",
        "x.repeat_interleave(torch.tensor([[1, 2]]), 0)",
        "torch.repeat_interleave(torch.tensor([[1, 2]]))",
    ):
        yield run(torch, line)


@case
def repeat_interleave_gradient(torch):
    x = torch.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], requires_grad=True)
    by = torch.tensor([[1.0, 2.0, 3.0], [2.0, 0.5, 1.0], [1.0, 4.0, 3.0]])
    y = x.repeat_interleave(torch.tensor([1, 2]), 0) * by
    yield torch.autograd.grad(y.sum(), x)
    yield torch.autograd.grad((x * x).repeat_interleave(2, 1).sum(), x)


@case
def combinations(torch):
    for line in (
        "torch.combinations(v)",
        "torch.combinations(torch.tensor([1., 2, 3], requires_grad=True), 2, True)",
        "torch.combinations(v, r=3)",
        "torch.combinations(v, r=0)",
        "torch.combinations(v, r=5)",
        "torch.combinations(v, r=-1)",
        "torch.combinations(x)",
        "torch.combinations(s)",
        "w = torch.tensor([1., 2, 3], requires_grad=True);"
        " torch.combinations(w).prod(1).sum().backward(); w.grad",
    ):
        yield run(torch, line)


@case
def cartesian_prod(torch):
    for line in (
        "torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))",
        "torch.cartesian_prod(v, torch.tensor([3, 4]), torch.tensor([7]))",
        "torch.cartesian_prod(x[0], x[1])",
        "torch.cartesian_prod(v)",
        "torch.cartesian_prod(v) is v",
        "torch.cartesian_prod(v, torch.tensor([], dtype=torch.int64))",
        "torch.cartesian_prod(x, x)",
        "torch.cartesian_prod(s)",
        "torch.cartesian_prod()",
        "torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3., 4]))",
    ):
        yield run(torch, line)


@case
def ranges_without_ends(torch):
    inf, nan = float("inf"), float("nan")
    ends = [1, inf], [-inf, 2.5], [-inf, inf], [nan, 1], [-1234567, inf], [inf, -2e-5]
    for values in ends:
        for dtype in torch.float32, torch.float64:
            x = torch.tensor(values, dtype=dtype)
            yield attempt(torch.histc, x), attempt(torch.histc, x, 3, 2, 2)
            yield attempt(torch.histogram, x, 3)
            points = torch.stack([x.nan_to_num(0, 1, 1), x], 1)
            yield attempt(torch.histogramdd, points, [3, 2])
        between = tuple(map(float, values))
        yield attempt(torch.histogram, torch.ones(3), 3, range=between)
        yield attempt(torch.histogramdd, torch.ones(3, 1), [3], range=between)
    yield torch.histc(torch.tensor([1, inf, nan]), 3, -1, 1)


@case
def unique_by_the_names_of_its_kernels(torch):
    x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    m = torch.tensor([[3, 1, 3], [3, 1, 3]])
    for asked in ((), (True,), (True, True), (True, False, True), (False, True, True)):
        yield torch._unique(x, *asked[:2]), torch._unique2(x, *asked)
        yield torch._VF.unique_dim(m, 1, *asked)
    yield torch._unique2(m, return_inverse=True), torch._unique(torch.zeros(0))
    yield attempt(torch._unique2, 3), attempt(torch._VF.unique_dim, m, 3)


@case
def what_quantiles_refuse_first(torch):
    given = [
        *((torch.ones(0), 0.5), (torch.ones(2).int(), torch.ones(1, 1))),
        *((torch.ones(2), torch.ones(1).double()), (torch.ones(0), torch.ones(1, 1))),
        *((torch.ones(2).int(), torch.ones(1).double()), (torch.ones(2).int(), 2.0)),
    ]
    for x, q in given:
        for quantile in (torch.quantile, torch.nanquantile):
            yield attempt(quantile, x, q), attempt(quantile, x, q, interpolation="y")


@case
def none_of_a_number(torch):
    for k in (0, 1, 2):
        for x in (torch.tensor(3.0), torch.tensor(3)):
            yield attempt(torch.topk, x, k), attempt(torch.topk, x, k, largest=False)


@case
def searches_among_bools(torch):
    bools = torch.tensor([False, True])
    yield attempt(torch.searchsorted, bools, bools)
    yield attempt(torch.searchsorted, bools, True)
    yield attempt(torch.bucketize, bools, bools)
    yield torch.searchsorted(torch.tensor([1, 2]), bools)


@case
def rows_that_a_mask_keeps(torch):
    w = torch.arange(8.0).view(4, 2).requires_grad_()
    mask = torch.tensor([True, False, True, True])
    prune = torch._rowwise_prune
    yield prune(w, mask, torch.int32), prune(w.long(), mask, torch.int64)
    yield prune(w, ~mask.view(2, 2), torch.int64), prune(w[:0], mask[:0], torch.int32)
    yield attempt(prune, w[0], mask[:2], torch.int32)
    yield attempt(prune, w, mask[:3], torch.int32)
    yield attempt(prune, w, mask, torch.int8)
    yield attempt(prune, w, mask.int(), torch.int32)
    yield attempt(prune, w > 3, mask, torch.int32)
