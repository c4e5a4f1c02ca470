"""Copies of what views show, or with a piece replaced, compared with PyTorch."""

from __future__ import annotations

import torchshim
from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.select_copy(x, 1, -1)
torch.select_copy(x, 1, 3)
torch.slice_copy(x, 1, 1, None, 2)
torch.slice_copy(x, 0, -1)
torch.slice_copy(x, 0, 0, 2, -1)
torch.narrow_copy(x, 1, -2, 2)
x.narrow_copy(0, 1, 1)
torch.narrow_copy(x, 2, 0, 1)
torch.narrow_copy(x, 1, -1, -1)
torch.narrow_copy(x, 0, 1, 2)
torch.view_copy(x, (3, 2))
torch.view_copy(x.detach(), torch.int32)
torch.as_strided_copy(x, (2, 2), (1, 2), 1)
torch.as_strided_copy(x, (2, 2), (1, 2, 3))
torch.as_strided_scatter(x, torch.ones(2), (2,), (3,), 1)
torch.as_strided_scatter(x.detach()[:, 1:], torch.ones(2), (2,), (3,), 0)
torch.as_strided_scatter(x, torch.ones(3), (2,), (3,))
torch.split_copy(x, 2, 1)
torch.split_with_sizes_copy(x, [1, 2], -1)
torch.split_with_sizes_copy(x, [1, 1], -1)
torch.unbind_copy(x, 1)
torch.unbind_copy(x.sum())
torch.permute_copy(x, (1, 0)).stride()
torch.expand_copy(x, (2, 2, 3)).stride()
torch.view_copy(x.t(), (6,))
torch.view_copy(x.t(), (5,))
torch.view_copy(x.detach().t(), (2, -1)).stride()
torch.slice_copy(x, 0, 0, 2, 0)
torch.slice_copy(x[0, 0])
""")
def copies(torch, line):
    x = torch.tensor([[1.0, -2, 3], [4, 5, -6]], requires_grad=True)
    return evaluate(torch, line, x=x)


@case
def written_to_out(torch):
    x = torch.arange(6.0).reshape(2, 3)
    one, two = torch.zeros(2), torch.zeros(0)
    yield torch.select_copy(x, 1, 0, out=one) is one, one
    yield torch.split_copy(x, 2, out=[torch.zeros(2, 3)])
    yield torch.unbind_copy(x, 0, out=[torch.zeros(3), made := torch.zeros(3)]), made
    yield torch.narrow_copy(x, 0, 1, 1, out=two) is two, two


@case(stride=True).lines(r"""
torch.select_scatter(x, torch.ones(3), 0, 1)
torch.select_scatter(x, torch.ones(2, dtype=torch.int32), -1, -1)
torch.select_scatter(x.t(), torch.ones(2), 0, 0)
torch.select_scatter(x[:1].expand(2, 3), torch.ones(2), 1, 0)
torch.select_scatter(i, torch.tensor(2.7), 0, 0)
torch.select_scatter(x, torch.ones(3), 0, 2)
torch.select_scatter(x, torch.ones(3), 2, 0)
torch.select_scatter(x, torch.ones(2), 0, 0)
torch.select_scatter(i[0], torch.ones(()), 0, 0)
torch.slice_scatter(x, torch.ones(1, 3), 0, 1)
torch.slice_scatter(x, torch.ones(2, 2), 1, 0, None, 2)
torch.slice_scatter(x.t(), torch.ones(1, 2), 0, -2, -1)
torch.slice_scatter(x, torch.ones(3), 0, 0)
torch.slice_scatter(x, torch.ones(1, 3), 5, 0)
torch.slice_scatter(x, torch.ones(1, 3), 0, 0, 1, 0)
torch.slice_scatter(x, torch.ones(1, 3), 0, 0, 1, -1)
torch.slice_scatter(i[0], torch.ones(()))
torch.as_strided_scatter(x.detach().t(), torch.ones(2), (2,), (3,), 0)
torch.diagonal_scatter(x, torch.ones(2))
torch.diagonal_scatter(x.t(), torch.ones(1), -2)
torch.diagonal_scatter(x, torch.ones(2, dtype=torch.complex64), 1)
torch.diagonal_scatter(x, torch.ones(3))
torch.diagonal_scatter(x, torch.ones(2), 0, 0, 0)
x.diagonal_scatter(s).sum().backward(), x.grad, s.grad
(x.select_scatter(s, 1, 2) ** 2).sum().backward(), x.grad, s.grad
(x.slice_scatter(s[:, None], 1, 1, 2) ** 2).sum().backward(), x.grad, s.grad
torch.vmap(lambda x, s: torch.select_scatter(x, s, 0, 1))(i.view(2, 2), i[:2])
""")
def scatters(torch, line):
    x = torch.tensor([[1.0, -2, 3], [4, 5, -6]], requires_grad=True)
    s = torch.tensor([7.0, 8.0], requires_grad=True)
    return evaluate(torch, line, x=x, s=s, i=torch.arange(4))


@case
def gradients(torch):
    x = torch.tensor([[1.0, -2, 3], [4, 5, -6]], requires_grad=True)
    s = torch.tensor([7.0, 8.0], requires_grad=True)
    w = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    for result, leaves in (
        (torch.slice_copy(x, 1, 0, 2), (x,)),
        (torch.as_strided_copy(x, (2, 2), (1, 1)), (x,)),
        # The input gets the gradient of what was replaced: so PyTorch has it.
        (torch.as_strided_scatter(x, s, (2,), (3,), 1) * w, (x, s)),
        (torch.split_copy(x, 2, 1)[0], (x,)),
    ):
        yield torch.autograd.grad(result.sum(), leaves)


@case(warnings=False)
def tangents_of_strided_pieces(torch):
    fw = torch.autograd.forward_ad
    x, s = torch.arange(6.0).reshape(2, 3), torch.tensor([7.0, 8.0])

    def written(x, s):
        return torch.as_strided_scatter(x, s, (2,), (3,), 1)

    with fw.dual_level():
        one = fw.make_dual(x, x + 10)
        yield fw.unpack_dual(written(one, fw.make_dual(s, s * 2)))
        yield fw.unpack_dual(written(one, s))


def test_a_copy_is_no_view():
    x = torchshim.zeros(2, 3)
    torchshim.permute_copy(x, (1, 0)).fill_(1)
    torchshim.select_copy(x, 0, 0).fill_(1)
    assert not x.any()


@case
def scatter_to_out(torch):
    x, i = torch.arange(6.0).reshape(2, 3), torch.tensor([[1, 0, 1]])
    made = torch.zeros(0)
    yield torch.scatter(x, 0, i, torch.ones(1, 3), out=made) is made, made
    yield torch.scatter(x, 0, i, 9.0, out=made)
    yield torch.scatter(x, 0, i, 2.0, reduce="multiply", out=made)
    rows = torch.tensor([0, 0])
    yield torch.index_reduce(x, 0, rows, x, "prod", include_self=False, out=made), made


@case
def adaptive_pools_of_too_few_dimensions(torch):
    F = torch.nn.functional
    for function in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        yield attempt(function, torch.ones(2, 2), (1, 1))
        yield attempt(function, torch.ones(2, 2), 2)
    yield attempt(F.adaptive_max_pool3d, torch.ones(2, 2, 2), (1, 1, 1))
    yield attempt(F.adaptive_avg_pool3d, torch.ones(2, 2, 2, 2), (1, None, 1))


@case
def copies_to_out(torch):
    x, z = torch.ones(2), torch.tensor([1 + 2j])
    made = torch.zeros(0)
    yield torch.detach_copy(x, out=made) is made, made
    yield torch.view_as_real_copy(z, out=made), made
    yield torch.view_as_complex_copy(made, out=torch.zeros(0, dtype=z.dtype))
    yield attempt(torch.detach_copy, x, out=torch.zeros(2, dtype=torch.int64))
    yield attempt(torch.view_as_real_copy, z, out=torch.zeros(1, 2).double())


@case
def other_dtypes_and_pieces_to_out(torch):
    x = torch.ones(2)
    made = torch.zeros(3, dtype=torch.int32)
    yield torch.view_copy(x, torch.int32, out=made) is made, made
    yield attempt(torch.view_copy, x, torch.int32, out=torch.zeros(2))
    for out in ([], [made], [made] * 3):
        yield attempt(torch.unbind_copy, x, out=out)
        yield attempt(torch.split_copy, x, 1, out=out)
        yield attempt(torch.split_with_sizes_copy, x, [1, 1], out=out)


@case.lines("""
torch.t_copy(x, out=y)
torch.expand_copy(x, (2, 2), out=y)
torch.alias_copy(x, out=y)
torch.squeeze_copy(x, out=y)
torch.select_copy(x, 0, 0, out=torch.empty(2))
torch.slice_copy(x, out=y)
torch.view_copy(x, (4,), out=torch.empty(4))
torch.view_copy(x, torch.int32, out=torch.empty(2, 2, dtype=torch.int32))
torch.as_strided_copy(x, (2,), (1,), out=torch.empty(2))
torch.slice_scatter(x, torch.ones(2, 2), out=y)
torch.detach_copy(x, out=y)
torch.detach_copy(x)
torch.view_as_real_copy(x + 0j, out=torch.empty(2, 2, 2))
torch.t_copy(x, out=y.view(-1)[:3])
torch.t_copy(x, out=y.view(2, 2)), y
torch.t_copy(torch.ones(2, 2), out=x * 2)
torch.narrow_copy(x, 0, 0, 1, out=y)
z = torch.unbind_copy(x, out=[y[0], y[1]]); y
z = torch.split_copy(x, 1, out=[y[:1], y[1:]]); y
""")
def tracked_to_out(torch, line):
    x, y = torch.ones(2, 2, requires_grad=True), torch.zeros(2, 2)
    made = evaluate(torch, line, x=x, y=y)
    yield made
    if isinstance(made, torch.Tensor) and made.requires_grad:
        yield attempt(made.sum().backward), x.grad


@case.over("t_copy", "detach_copy", "slice_copy", "narrow_copy")
def leaves_as_out(torch, name):
    more = (0, 0, 2) if name == "narrow_copy" else ()
    y = torch.zeros(2, 2, requires_grad=True)
    yield attempt(getattr(torch, name), torch.ones(2, 2), *more, out=y)
    with torch.no_grad():
        yield attempt(getattr(torch, name), torch.ones(2, 2), *more, out=y), y._version


@case.over("split_copy", "split_with_sizes_copy", "unbind_copy")
def tracked_pieces_as_out(torch, name):
    x, y = torch.ones(2, 2), torch.zeros(2, 2, requires_grad=True) * 2
    sizes = {"split_copy": (1,), "split_with_sizes_copy": ([1, 1],)}.get(name, ())
    pieces = [y[0], y[1]] if name == "unbind_copy" else [y[:1], y[1:]]
    yield attempt(getattr(torch, name), x, *sizes, out=[p * 1 for p in pieces])
    with torch.no_grad():
        yield attempt(getattr(torch, name), x, *sizes, out=[p * 1 for p in pieces])
