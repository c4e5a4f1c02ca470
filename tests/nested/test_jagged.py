"""Nested tensors of layout jagged: how they are made, what they know, their text."""

from __future__ import annotations

import copy
import importlib

from tests.nested import plain, seen, shown
from tests.oracle import attempt, case


def parts(torch, requires_grad=False):
    """Two tensors that differ in their first dimension."""
    a = torch.arange(6.0).view(2, 3) - 2
    b = torch.arange(9.0).view(3, 3) / 2
    return [part.requires_grad_(requires_grad) for part in (a, b)]


def jagged(torch, **options):
    return torch.nested.nested_tensor(parts(torch), layout=torch.jagged, **options)


def holes(torch):
    """A nested tensor with holes between its parts."""
    start, rows = torch.tensor([0, 1, 2]), torch.arange(12.0).view(3, 4)
    return torch.nested.narrow(rows, 1, start, 2, layout=torch.jagged)


@case.lines(r"""
n([torch.ones(2, 3), torch.zeros(3, 3)])
n([torch.ones(2, 3), torch.ones(2, 2)])
n([torch.ones(2, 3), torch.ones(2, 3)])
n([torch.ones(2, 3, 4), torch.ones(2, 1, 4)])
n([[1, 2], [3]])
n([[1.5], [2.5, 3.5]], dtype=torch.float64)
n([torch.ones(2), torch.ones(0)])
n([torch.ones(2), torch.ones(3)], requires_grad=True)
n([torch.ones(2, requires_grad=True), torch.ones(3)])
n([torch.ones(2), torch.ones(3)], dtype=torch.int64)
n((torch.ones(2), torch.ones(3)), device='cpu')
n([])
n([1, 2])
n([torch.ones(2), torch.ones(2, 3)])
n([torch.ones(2), torch.ones(3, dtype=torch.int64)])
n([torch.ones(2, 3), torch.ones(3, 2)])
N.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)
n([torch.ones(2), torch.ones(3, dtype=torch.int64)], requires_grad=True)
n([torch.ones(2).long(), torch.ones(3).long()], requires_grad=True)
a(parts)
a(tuple(parts))
a(torch.arange(24.).view(2, 3, 4))
a(torch.arange(6.).view(2, 3), dtype=torch.int32)
a(parts, dtype=torch.float64)
x = a(parts); a(x) is x
x = a(parts); a(x, dtype=torch.float64)
x = a(parts); N.as_nested_tensor(x)
a(3)
a([1, 2])
a(torch.ones(3))
a(parts, layout=torch.sparse_coo)
j(torch.arange(6.), torch.tensor([0, 2, 6]))
j(torch.arange(6.).view(3, 2), torch.tensor([0, 2, 2, 3]))
j(torch.arange(6.), torch.tensor([0, 2, 6]), torch.tensor([1, 2]))
j(torch.arange(6.), lengths=torch.tensor([1, 3, 2]))
j(torch.arange(6.).view(2, 3), torch.tensor([0, 2, 3]), jagged_dim=2)
j(torch.arange(6.), torch.tensor([0, 2, 6]), min_seqlen=2, max_seqlen=4)
j(torch.arange(6.))
j(torch.arange(6.), torch.tensor([0, 6]), jagged_dim=0)
j(torch.arange(6.), torch.tensor([[0, 6]]))
j(torch.arange(6.), torch.tensor([0, 6]), torch.tensor([1, 2]))
w(d, 1, torch.tensor([0, 1, 2]), torch.tensor([2, 3, 1]))
w(d, 1, 0, 2)
w(d, 1, 0, 4)
w(d, 1, 1, torch.tensor([1, 2, 3]))
w(torch.arange(24.).view(3, 4, 2), 1, torch.tensor([0, 1, 2]), 2)
w(d, 0, 0, 2)
w(d, 1, 0.5, 2)
w(d, 1, 0, 'a')
w(d, 1, torch.zeros(2, dtype=torch.int64), 2)
N.narrow(d, 1, 0, 2, layout=torch.sparse_coo)
N.masked_select(torch.arange(4.).view(2, 2), torch.eye(2) > 0)
N.masked_select(torch.arange(6.).view(2, 3), torch.tensor([False]))
N.masked_select(torch.arange(6.).view(2, 3), torch.arange(6).view(2, 3) > 1)
""")
def made(torch, line):
    N = torch.nested

    def n(given, **options):
        return N.nested_tensor(given, layout=torch.jagged, **options)

    def a(given, layout=torch.jagged, **options):
        return N.as_nested_tensor(given, layout=layout, **options)

    def w(*given):
        return N.narrow(*given, layout=torch.jagged)

    names = {"n": n, "a": a, "w": w, "j": N.nested_tensor_from_jagged}
    names |= {"parts": parts(torch, True), "d": torch.arange(12.0).view(3, 4)}
    return shown(torch, line, N=N, **names)


@case.lines(r"""
x.shape, x.size(), x.size(0), x.size(1), x.size(-1)
x.size(3)
x.dim(), x.ndim, x.ndimension(), len(x), x.numel(), x.nelement(), torch.numel(x)
x.layout, x.is_nested, x.is_sparse, x.dtype, x.device, x.element_size(), x.nbytes
str(x.stride()) == str((3 * x.size(1), 3, 1)), str(x.stride(0)) == str(3 * x.size(1))
x.is_contiguous(), x.storage_offset(), x.is_leaf, x.requires_grad, x.grad_fn, x.grad
torch.is_tensor(x), isinstance(x, torch.Tensor), x.is_floating_point(), x.is_complex()
hash(x) == id(x), x in [x], x.is_inference(), x.get_device(), x.itemsize, x.is_cpu
x.type()
x.values(), x.offsets(), x.lengths()
x._values, x._offsets, x._lengths, x._ragged_idx, x._max_seqlen, x._min_seqlen
x._get_max_seqlen(), x._get_min_seqlen(), x._maybe_max_seqlen, x._maybe_min_seqlen
type(x).__name__, type(x).__module__.partition('.')[2]
plain(repr(x)), plain(str(x)), plain(format(x)), repr(x.values())
y = f(x.values(), x.offsets()); y._maybe_max_seqlen, y._max_seqlen
y = f(x.values(), x.offsets()); y.shape == x.shape, y
y = f(x.values(), x.offsets().clone()); x.is_same_size(y)
h, h.numel(), h.is_contiguous(), h.shape
bool(x)
x.item()
x.tolist()
x.numpy()
int(x)
x.foo
torch.Size([2, x.size(1)]), x.shape[1:], x.shape + (1,)
x.shape[:2] == torch.Size([2, x.size(1)])
torch.utils._pytree.tree_map(lambda t: t, x) is x
isinstance(x, I.NestedTensor), I.NestedTensor(x.values(), x.offsets())
I.NestedTensor(x.values(), None)
I.NestedTensor(x.values(), x.offsets(), lengths=x.offsets())
I.jagged_from_list(list(x), None)
I.jagged_from_list([torch.ones(1), torch.ones(2)], torch.tensor([0, 1, 3]))
I.nested_from_padded(torch.ones(2, 3, 2), torch.tensor([0, 1, 4]), sum_S=4)
I.nested_view_from_values_offsets(torch.arange(5.), torch.tensor([0, 1, 5]))
""")
def known(torch, line):
    private = torch.nested._internal.nested_tensor
    h = torch.nested.narrow(torch.ones(3, 4), 1, 1, 2, layout=torch.jagged)
    names = {"x": jagged(torch), "h": h, "f": torch.nested.nested_tensor_from_jagged}
    return shown(torch, line, I=private, plain=plain, **names)


@case.lines(r"""
j == j, j == k, j != k, j == 5, j != 5, j == j * 1, j * 2 == j
j * 5, 5 * j, 2 * j * 3
j * j
j + 1
1 + j
j - 1
j // 2
j / 2
j % 2
-j
2 - j
j ** 2
abs(j)
int(j)
float(j)
bool(j), isinstance(j, int), isinstance(j, torch.SymInt), type(j)
j >= 2, j >= 0, j > 0, j > 1, j < 2, j <= 1, 1 < j, 2 <= j
j > 3
j > k
j < 5
j <= j, j < j, j * 2 > j, j >= j
hash(j) == hash(j), {j: 1}[j]
""")
def ragged_sizes(torch, line):
    j, k = jagged(torch).size(1), jagged(torch).size(1)
    return shown(torch, line, j=j, k=k)


@case.lines(r"""
a == a, a == b, a == c, a != c, a == 3, 3 != a, a >= b, c <= 1, c >= 2
a >= c
2 < a
str(a), str(d), repr(d.node), a * 3 == S(N(1, 3)), d >= a, d > a, a < d
a.node.t_id, d.node.nested_int_coeff(), d.node.nested_int(), a.node.is_nested_int()
I.is_nested_int(a), I.is_nested_int(3), I.is_nested_int(jagged.shape[1])
""")
def nested_integers(torch, line):
    node = importlib.import_module(f"{torch.__name__}.nested._internal.nested_int")
    path = f"{torch.__name__}.fx.experimental.symbolic_shapes"
    S, N = torch.SymInt, node.NestedIntNode
    sizes = {"a": S(N(1, 1)), "b": S(N(1, 1)), "c": S(N(2, 1)), "d": S(N(1, 3))}
    names = {"S": S, "N": N, "I": importlib.import_module(path), **sizes}
    return shown(torch, line, jagged=jagged(torch), **names)


@case.lines(r"""
J(v, [o], [2], -1.0), J(v, [o], [5]), J(v[:, 0], [o], [3]), J(v[..., None], [o], [3])
J(v.long(), [o.int()], [3], 1.5), J(v, [o], [1], 2)
D(p, [o], 4), D(p, [o]), D(p[..., 0], [o], 4), D(p[:, :1], [T([0, 1, 2])])
attempt(J, v, [o, o], [3, 3])
attempt(J, v, [], [3])
attempt(J, v, [o[None]], [3])
attempt(D, p, [o, o], 4)
attempt(D, p, [o[None]], 4)
attempt(D, p, [o], 5)
attempt(D, p[0, 0], [o], 4)
attempt(D, p[:1], [o], 4)
attempt(D, p[:, :2], [o], 4)
""")
def padded_by_offsets(torch, line):
    aten = torch.ops.aten
    names = {
        "J": aten._jagged_to_padded_dense_forward,
        "D": aten._padded_dense_to_jagged_forward,
        "v": torch.arange(8.0).view(4, 2),
        "o": torch.tensor([0, 1, 4]),
        "p": torch.arange(12.0).view(2, 3, 2),
    }
    return shown(torch, line, T=torch.tensor, attempt=attempt, **names)


@case
def numbers_rise(torch):
    sizes = [str(jagged(torch).size(1)) for _ in range(3)]
    first = int(sizes[0][1:])
    return [int(size[1:]) - first for size in sizes], sizes[0][0]


@case
def operators_keep_the_ragged_size(torch):
    x = jagged(torch)
    same = [x + 1, x.double(), x.clone(), x.unsqueeze(-1), x.detach(), x.sum(-1)]
    return [y.size(1) == x.size(1) for y in same]


@case
def text_of_results(torch):
    x = jagged(torch, requires_grad=True)
    print(plain(x))
    print(plain(x.sin()))
    print(plain(x.detach().to(torch.int32)))
    print(plain(torch.nested.as_nested_tensor(parts(torch, True), layout=torch.jagged)))
    return seen(x)


@case(warnings=False)
def copies_with_attributes(torch):
    parts = [torch.ones(2), torch.ones(3)]
    for layout in (torch.jagged, torch.strided):
        nt = torch.nested.nested_tensor(parts, layout=layout)
        nt.note = [3]
        shallow = copy.copy(nt)
        yield shallow.note is nt.note, [t + 1 for t in shallow.unbind()]
        if layout is torch.jagged:
            yield copy.deepcopy(nt).note, copy.deepcopy(nt).shape == nt.shape
