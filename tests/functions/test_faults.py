"""Calls with a fault, and with two: what is said, and of which of them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from tests.oracle import attempt, case, evaluate

BINARY = """
add sub mul div pow floor_divide remainder fmod bitwise_and bitwise_or eq lt logical_and
copysign hypot heaviside clamp_max xlogy ldexp gcd lcm __ilshift__
bitwise_right_shift
""".split()
OPERANDS = (
    (("int64", 3), ("float32", 4)),
    (("int64", 3), ("float32", 2, 3)),
    (("bool", 3), ("int64", 2, 3)),
    (("float32", 3), ("int64", 2, 3)),
    (("float16", 3), ("float16", 2, 3)),
    (("int64", 3), ("float32", 3)),
    (("int64", 1), ("float32", 0)),
)


@case.over(*BINARY)
def in_place(torch, name):
    for operands in OPERANDS:
        x, y = (torch.ones(s, dtype=getattr(torch, kind)) for kind, *s in operands)
        method = name if name.startswith("__") else name + "_"
        yield attempt(getattr(x, method), y)


@case(warnings=False)
def in_place_of_three(torch):
    for (a, b), kind in product(((3, 4), (3, (2, 3))), (torch.float32, torch.int64)):
        x, y = torch.ones(a, dtype=torch.int64), torch.ones(b, dtype=kind)
        yield attempt(x.addcmul_, y, y)
        yield attempt(x.masked_fill_, y > 0, 1.5), attempt(x.addcdiv_, y, y)


@case.lines("""
torch.ones(3)[torch.tensor(True)]
torch.ones(3)[torch.tensor(False)]
m=torch.ones(3); m[torch.tensor(True)]=torch.ones(4); m
m=torch.ones(3); m[torch.tensor(False)]=torch.ones(4); m
m=torch.ones(3); m[torch.tensor(True)]=torch.ones(1,3); m
m=torch.ones(3); m[torch.tensor(True)]=torch.ones(2,3); m
m=torch.ones(3); m[torch.tensor(True), torch.tensor([0,1])]=torch.ones(3); m
m=torch.ones(3); m[torch.tensor(True), torch.tensor([0,7])]=torch.ones(2); m
m=torch.ones(3); m[torch.tensor(True), torch.tensor([True,False])]=1; m
torch.ones(3).index_put_((torch.tensor(True),), torch.ones(4))
torch.ones(3).index_put_((torch.tensor(True),torch.tensor([1])), torch.ones(3))
torch.ones(3).index_put_((torch.tensor([True,False]),), torch.ones(3))
torch.ones(())[torch.tensor(True)]
torch.ones(())[torch.tensor(0)]
torch.ones(2,3).index_put_((torch.tensor(True),torch.tensor(True)), torch.ones(4))
torch.ones(2,3).index_put_((torch.tensor(False),), torch.ones(4))
torch.ones(2,3).index_put_((torch.tensor(False),), torch.ones(2,3).double())
torch.ones(2,3).index_put_((torch.tensor(True),), torch.ones(4).double())
F.conv_transpose1d(torch.ones(2), torch.ones(2,2,2))
F.conv_transpose1d(torch.ones(2,3), torch.ones(2,2))
F.conv_transpose1d(torch.ones(2,4), torch.ones(2,2,3), padding=5)
F.conv_transpose2d(torch.ones(1,2,4,5), torch.ones(2,2,3,3), padding=5)
F.conv_transpose3d(torch.ones(2,4,4,4), torch.ones(2,2,3,3,3), padding=(1,5,1))
F.conv_transpose1d(torch.ones(2,4), torch.ones(2,2,3), output_padding=2, stride=2)
F.conv_transpose2d(torch.ones(2,4,4), torch.ones(2,2,3,3), output_padding=1)
F.conv_transpose1d(torch.ones(()), torch.ones(2,2,2))
F.conv_transpose1d(torch.ones(2,3), torch.ones(2))
F.conv_transpose1d(torch.ones(2,3), torch.ones(()))
F.conv_transpose2d(torch.ones(2,3), torch.ones(2,2,2,2))
F.conv_transpose2d(torch.ones(2,3,3), torch.ones(2,2,2))
F.conv_transpose2d(torch.ones(1,2,3,3), torch.ones(2,2,2))
F.conv_transpose2d(torch.ones(1,2,3,3), torch.ones(2,2))
F.conv_transpose2d(torch.ones(2), torch.ones(2,2,2,2))
F.conv_transpose2d(torch.ones(1,1,1,2,3), torch.ones(2,2,2,2))
F.conv_transpose3d(torch.ones(2,3,3), torch.ones(2,2,2,2,2))
F.conv_transpose3d(torch.ones(2,3,3,3), torch.ones(2,2,2,2))
F.conv_transpose3d(torch.ones(2,3), torch.ones(2,2,2,2,2))
torch.linalg.lu_solve(N, p, N)
torch.lu_solve(N, N, p)
torch.lu_solve(N.float(), N, p)
torch.linalg.lu_solve(N.float(), torch.ones(2,dtype=long), N.float())
torch.linalg.lu_solve(N.half(), p, N.half())
torch.histogram(torch.arange(3), 2)
torch.histogram(torch.arange(3), torch.arange(3))
torch.histogram(torch.arange(3.), torch.arange(3))
torch.histogram(torch.arange(3).half(), 2)
torch.histogram(torch.arange(3.), 2, weight=torch.arange(3))
torch.histogram(torch.arange(3).bool(), 2)
torch.histogram(torch.arange(3).cfloat(), 2)
torch.histogramdd(torch.ones(2,2).long(), [2,2])
torch.histc(torch.arange(3))
torch.histc(torch.arange(3).bool())
torch.histc(torch.arange(3).cfloat())
torch.arange(3).ldexp_(torch.tensor(2))
torch.arange(3).ldexp_(torch.tensor(2.))
torch.arange(3.).ldexp_(torch.tensor(2))
torch.arange(3).bool().ldexp_(torch.tensor(2))
torch.arange(3.).half().ldexp_(torch.tensor([2.]))
torch.arange(3).ldexp(torch.tensor(2))
torch.arange(3, 6).mvlgamma_(1)
torch.mvlgamma(torch.arange(3.0, 6.0), 1, out=torch.arange(3))
torch.polygamma(0, torch.ones(2).cfloat())
torch.ones(2).cfloat().polygamma_(1)
torch.polygamma(2, torch.ones(2).cfloat())
torch.cdist(N.half(), N.half(), 1.0)
torch.cdist(N.half(), N.half(), 2.0, "donot_use_mm_for_euclid_dist")
torch.cdist(N.half(), N.half(), 2.0, "use_mm_for_euclid_dist").dtype
torch.cdist(N[:0].half(), N.half(), 1.0).shape
torch.pdist(N.bfloat16())
torch.pdist(N[:1].half()).shape
F.rrelu(torch.ones(2).half(), training=True)
F.rrelu(torch.ones(2).half())
F.grid_sample(torch.ones(1, 1, 1, 2, 2).int(), torch.ones(1, 1, 1, 1, 3).int())
F.fractional_max_pool2d(torch.ones(1, 4, 4).int(), 2, 2, _random_samples=N[None].int())
F.softmax(torch.tensor(1), 0), F.softmax(torch.ones(1).int(), 0)
F.softmax(torch.ones(1, 2).bool(), 0)
F.soft_margin_loss(torch.ones(1, 3), torch.ones(2, 3))
F.soft_margin_loss(torch.ones(2, 3), torch.ones(1, 3)).shape
F.soft_margin_loss(torch.ones(2), torch.ones(2, 1), reduction="none")
F.pad(N, (1, 1), 1), F.pad(N, (1, 1), mode="x")
F.pad(N, (1, 1), mode=None)
F.log_softmax(torch.tensor(1j), 0)
F.prelu(torch.arange(3), torch.tensor([1]))
F.prelu(torch.arange(3), torch.tensor([1.]))
F.prelu(torch.arange(3.), torch.tensor([1]))
F.prelu(torch.arange(3).bool(), torch.tensor([True]))
F.prelu(torch.arange(3).cfloat(), torch.tensor([1]).cfloat())
F.prelu(torch.arange(3.), torch.tensor([1.,2.]))
F.prelu(torch.arange(3.), torch.tensor([[1.]]))
F.prelu(torch.arange(3.).view(1,3), torch.tensor([1.,2.]))
torch.mm(B(0,2), B(2,2))
torch.mm(B(2,0), B(0,2))
torch.mm(B(2,2), B(2,2))
torch.matmul(B(2,0), B(0,2))
torch.bmm(B(2,2,0), B(2,0,2))
torch.bmm(B(0,2,2), B(0,2,2))
torch.bmm(B(1,2,2), B(1,2,2))
torch.mv(B(2,0), B(0))
torch.mv(B(0,2), B(2))
torch.mv(B(2,2), B(2))
torch.dot(B(0), B(0))
torch.vdot(B(0), B(0))
torch.inner(B(0), B(0))
torch.inner(B(2,0), B(2,0))
torch.outer(B(0), B(2))
torch.addmm(B(2,2), B(2,0), B(0,2))
torch.addmm(B(0,2), B(0,2), B(2,2))
torch.addmv(B(2), B(2,0), B(0))
torch.baddbmm(B(2,2,2), B(2,2,0), B(2,0,2))
torch.addbmm(B(2,2), B(2,2,0), B(2,0,2))
torch.addr(B(2,2), torch.ones(2).bool(), torch.ones(2).bool())
torch.addr(B(0,2), torch.ones(0).bool(), torch.ones(2).bool())
F.linear(B(2,0), B(2,0))
F.linear(B(0,2), B(2,2))
F.linear(B(2,0), B(2,0), B(2))
torch.tensordot(B(2,0), B(0,2), 1)
torch.einsum("ij,jk->ik", B(2,0), B(0,2))
torch.linalg.multi_dot([B(2,0), B(0,2)])
torch.chain_matmul(B(2,0), B(0,2))
torch.linalg.matrix_power(B(0,0), 2)
torch.clamp(torch.ones(2), 0, 1, out=torch.zeros(2).double())
torch.clamp(torch.ones(2), 0, 1, out=torch.zeros(2).long())
torch.clamp(torch.ones(2), 0, 1, out=torch.zeros(2).half())
torch.clamp(torch.ones(2).long(), 0, 1, out=torch.zeros(2))
torch.clamp(torch.ones(2).long(), 0.5, 1, out=torch.zeros(2))
torch.clamp(torch.ones(2).long(), 0.5, 1, out=torch.zeros(2).long())
torch.clamp(torch.ones(2), torch.zeros(2), out=torch.zeros(2).double())
torch.clamp(torch.ones(2), torch.zeros(2), out=torch.zeros(2).long())
torch.clamp(torch.ones(2), torch.zeros(2).double(), out=torch.zeros(2))
torch.clamp_min(torch.ones(2), 0, out=torch.zeros(2).double())
torch.clamp_max(torch.ones(2), 0, out=torch.zeros(2).double())
torch.clamp_max(torch.ones(2), torch.zeros(2), out=torch.zeros(2).double())
torch.abs(torch.ones(2), out=torch.zeros(2).double())
torch.abs(torch.ones(2), out=torch.zeros(2).long())
torch.abs(torch.ones(2).cfloat(), out=torch.zeros(2))
torch.abs(torch.ones(2).cfloat(), out=torch.zeros(2).double())
torch.abs(torch.ones(2).cfloat(), out=torch.zeros(2).cfloat())
torch.abs(torch.ones(2).cfloat(), out=torch.zeros(2).long())
torch.angle(torch.ones(2).cfloat(), out=torch.zeros(2).double())
torch.angle(torch.ones(2).cfloat(), out=torch.zeros(2).cfloat())
torch.angle(torch.ones(2), out=torch.zeros(2).double())
torch.sgn(torch.ones(2), out=torch.zeros(2).double())
torch.nonzero(torch.eye(2), out=torch.zeros(5).long())
torch.nonzero(torch.eye(2), out=torch.zeros(2,2).long())
torch.nonzero(torch.eye(2), out=torch.zeros(0).long())
torch.nonzero(torch.zeros(2, 2), out=torch.zeros(0).long()).shape
torch.nonzero(torch.zeros(2, 2), out=torch.zeros(2).long()).shape
torch.nonzero(torch.ones(()), out=torch.zeros(2).long()).shape
torch.nonzero(torch.ones(1, 1), out=torch.zeros(2).long()).shape
torch.nonzero(torch.eye(2), out=torch.zeros(2,2).long().T)
torch.nonzero(torch.eye(2), out=torch.zeros(2,2))
torch.nonzero(torch.eye(2), out=torch.zeros(3,2))
torch.nonzero(torch.eye(2))
torch.meshgrid(torch.ones(2), torch.ones(2).double())
torch.meshgrid(torch.ones(2), torch.ones(2,2).double())
torch.meshgrid()
torch.meshgrid([])
torch.meshgrid(torch.ones(2), 3)
torch.meshgrid([torch.ones(2), 3])
torch.meshgrid(3)
torch.meshgrid(torch.ones(()), torch.ones(2))
torch.meshgrid(torch.ones(2), torch.ones(3), indexing="xy")
torch.meshgrid(torch.ones(2), torch.ones(3), torch.ones(2), indexing="xy")
torch.special.polygamma(3, torch.tensor([-2.5, -0.5, -100.5, -1e-3]))
torch.special.polygamma(51, torch.tensor([-2.5, -0.5, -100.5, -1e-3, 2.]))
""")
def lines(torch, line):
    def B(*shape):
        return torch.zeros(shape, dtype=torch.bool)

    N = torch.ones(2, 2, dtype=torch.int64)
    names = {"F": torch.nn.functional, "long": torch.int64}
    made = evaluate(
        torch, line, B=B, p=torch.ones(2).int(), N=N, o=torch.zeros(0), **names
    )
    return (made, made.stride()) if isinstance(made, torch.Tensor) else made


# A 0-dim tensor of whole numbers may be a number, but is a tensor where one is taken.
@case.lines("""
torch.max(n, torch.tensor(4)); torch.max(torch.tensor([3, 4]), torch.tensor([[5], [2]]))
torch.max(n, n), torch.max(x.long(), x.long()[0])
torch.min(torch.tensor([3, 4]), n)
torch.max(x.bool(), torch.tensor(True))
torch.max(x, n)
torch.max(x, n, True)
torch.max(x, dim=n)
torch.max(x, other=n)
x.max(n), x.min(n)
torch.sum(x, n)
torch.sum(x, n.float())
torch.median(x, n)
torch.mean(x, n), torch.prod(x, n), torch.all(x, n), torch.std(x, n)
torch.pow(n, n), torch.where(x > 0, n, n), torch.clamp(x, n, n)
torch.split(x, n)
torch.tensor_split(x, n)
torch.tensor_split(x, "3")
torch.tensor_split(x, (1, 2.5))
torch.hsplit(x, [1, 2.5])
torch.hsplit(x, ["1"])
torch.vsplit(x, "2")
x.view([1], 6)
x.view((1,), 2, 3)
x.reshape([1], 6)
x.repeat([1], 2)
x.permute([0], 1)
x.view(1, [6])
torch.movedim(x, [1], 0)
torch.moveaxis(x, 1, (0,))
torch.repeat_interleave(x, n)
torch.index_fill(x, 0, n, n)
torch.searchsorted(torch.ones(3), n)
""")
def numbers_in_tensors(torch, line):
    x, n = torch.arange(6.0).view(2, 3), torch.tensor(1)
    return evaluate(torch, line, x=x, n=n)


@case.over("nansum", "nanmean")
def dtypes_of_sums_without_nan(torch, name):
    kinds = torch.int64, torch.bool, torch.cfloat, torch.float64, torch.half
    for x in torch.ones(2, 3), torch.ones(2, 3).half(), torch.ones(3, dtype=torch.long):
        for kind in kinds:
            yield attempt(getattr(torch, name), x, dtype=kind)
            yield attempt(getattr(torch, name), x, 0, dtype=kind)


@case.over("var", "std", "var_mean", "std_mean")
def corrections_said_twice(torch, name):
    x, f = torch.arange(6.0).view(2, 3), getattr(torch, name)
    yield f(x, 1, True), f(x, 1, False, True), f(x, False), f(x, unbiased=False)
    yield f(x, 1, correction=0), f(x, correction=None), f(x, 1, unbiased=True)
    for given in (0, True, False), (0, True), (0, False), (True,), (0,):
        yield attempt(f, x, *given, correction=2)
        yield attempt(f, x, *given[:1], unbiased=True, correction=2)


@case.over("cumsum_", "cumprod_")
def running_totals_in_place_of_another_dtype(torch, name):
    kinds = "float32", "float64", "int64", "int8", "bool", "bfloat16", "complex64"
    for kind in kinds:
        x = torch.ones(2, dtype=getattr(torch, kind))
        for dtype in (None, *kinds):
            asked = dtype and getattr(torch, dtype)
            yield attempt(getattr(x.clone(), name), 0, dtype=asked)


@case.over("max", "min")
def the_larger_of_complex_numbers(torch, name):
    x, f = torch.ones(2), getattr(torch, name)
    c = x * 1j
    yield attempt(f, c, c), attempt(f, x, c), attempt(getattr(c, name), x)


@case
def sizes_that_are_no_integers(torch):
    x = torch.ones(2)
    for sizes in (
        *((2.0, 3), (2, 3.0), (2, None), (2, x), ([2.0], 3), (True, 2), (x, 2)),
        *(("a", 2), ((2, 3), 4), (2.0, "a", 3), (1, 2, "a"), (2, True)),
    ):
        for make in torch.Tensor, torch.LongTensor, x.new:
            yield attempt(lambda make=make, sizes=sizes: make(*sizes).shape)
    for data in [1], 1, torch.ones(2, dtype=torch.int32):
        yield attempt(torch.asarray, data, requires_grad=True)
    yield attempt(torch.asarray, x, dtype=torch.int32, requires_grad=True)


@case.lines("""
torch.histogram(torch.zeros(2), 2, range=())
torch.histogram(torch.zeros(2), 2, range=(1.0,))
torch.histogram(torch.zeros(2), 2, range=(1.0, 2.0, 3.0))
torch.empty(0).set_(torch.zeros(2), 0, (2,), (1, 2))
torch.empty(0).set_(torch.zeros(2).untyped_storage(), 0, (2,), (1, 2))
torch.Size([torch.tensor(2.0)])
torch.Size([1, torch.tensor([2, 3])])
torch.Size([torch.tensor([2]), torch.tensor(True)])
torch.Tensor._make_subclass(3, torch.zeros(1))
torch.Tensor._make_subclass(int, torch.zeros(1))
torch.zeros(2, 3).to_sparse().__dlpack__()
torch.norm(torch.zeros(2), "foo")
torch.linalg.norm(torch.zeros(2), "foo")
torch.linalg.norm(torch.zeros(2, 2), "foo", dim=0)
torch.linalg.matrix_norm(torch.zeros(2), "foo")
torch.linalg.matrix_norm(torch.zeros(2), 1)
torch.FloatTensor.layout, torch.FloatTensor.is_sparse, torch.FloatTensor.is_xpu
torch.sparse.FloatTensor.layout
""")
def of_small_things(torch, line):
    return evaluate(torch, line)


@case.over("float32", "float64", "bfloat16", "int64")
def asked_for_cuda_memory(torch, dtype):
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    yield (
        attempt(lambda: x.__cuda_array_interface__),
        hasattr(x, "__cuda_array_interface__"),
    )


@case.over(order=["foo", "fro", 1, 3], dim=[(0,), (0, 1), (0, 0), (5, 6)])
def orders_of_norms(torch, order, dim):
    L = torch.linalg
    for shape in (2,), (), (2, 2):
        x = torch.zeros(shape)
        yield attempt(L.norm, x, order, dim)
        yield attempt(L.matrix_norm, x, order, dim)
        if isinstance(order, str):
            yield attempt(torch.norm, x, order, dim)
    yield attempt(L.matrix_norm, torch.zeros(2, 2, dtype=torch.int64), order)


@case.lines("""
x @ torch.ones(4, 2)
x + torch.ones(4)
x.add_(torch.ones(4))
torch.cat([x, torch.ones(4)])
x.view(5)
x[5]
x["a"]
torch.nn.Linear(4, 2)(x)
x.sum(5)
torch.exp("a")
x < "a"
x.backward()
torch.zeros(2, requires_grad=True).add_(1)
x[0] = torch.ones(7)
""")
def follows_from_nothing(torch, line):
    """An error is shown alone, without what went on within the package before."""
    try:
        evaluate(torch, line, x=torch.ones(2, 3))
    except Exception as error:
        yield str(error), error.__suppress_context__ or error.__context__ is None


@case.lines("""
torch.Generator(None).device
torch.Generator().manual_seed(torch.tensor(3))
torch.manual_seed(torch.tensor(3)).initial_seed()
torch.set_rng_state(torch.get_rng_state()[::2])
torch.Generator().set_state(torch.get_rng_state().repeat(2)[::2])
torch.ones(1)["name"]
torch.ones(2, 2)["name"]
torch.ones(4)["x"]
torch.ones(1)[0, "x"]
torch.ones(1)[0, 1.5]
torch.ones(1)[int]
torch.ones(1)[torch.float32]
torch.ones(1).__setitem__("name", 0)
torch.nn.functional.interpolate(torch.ones(1, 1, 2), scale_factor=float("nan"))
torch.nn.functional.interpolate(torch.ones(1, 1, 2), scale_factor=1e300)
torch.combinations(torch.arange(100.0), 40)
""")
def of_arguments(torch, line):
    return evaluate(torch, line)


@case(raises=AttributeError).over(
    *("shape", "dtype", "device", "ndim", "is_leaf", "grad_fn", "T", "mT", "H"),
    *("is_sparse", "is_nested", "itemsize", "_version", "_base", "name", "output_nr"),
)
def facts_of_tensors(torch, name):
    x = torch.ones(2, 2)
    yield attempt(delattr, x, name)
    yield attempt(setattr, x, name, 3)
    yield getattr(x, name)


@case.lines("""
torch.empty((4, True)).shape, torch.zeros(4, False).shape, torch.ones(2, True)
torch.empty((True, 4))
torch.empty(True)
torch.ones(1, 3).reshape(1, True, 3), torch.ones(1, 3).expand(2, True, 3)
torch.ones(1, 3).repeat(2, True), torch.ones(1, 3).tile((2, True))
torch.ones(1, 3).permute((0, True)), torch.ones(1, 3).sum((0, True))
torch.ones(1, 3).flip(0, True), torch.ones(1, 3).roll((1, True), (0, 1))
torch.ones(1, 3).reshape(True)
torch.ones(1, 3).permute(True, 0)
torch.nn.functional.pad(torch.ones(1, 3), (1, True))
torch.nn.Linear(True, 4).weight.shape, torch.nn.Embedding(4, True).weight.shape
torch.ones(3, 2).new_ones(2, True)
torch.randint(3, (2, True)).shape
""")
def truth_values_as_sizes(torch, line):
    return evaluate(torch, line)


@case(warnings=False).lines("""
torch.full((2,), p)
torch.full_like(x, p), x.new_full((2,), p)
torch.arange(p)
torch.addcmul(x, x, x, value=p)
torch.sub(x, x, alpha=p)
torch.addmm(x, x[None], torch.eye(2), beta=p)
torch.eye(2).fill_diagonal_(p)
torch.nn.functional.threshold(x, p, p)
torch.nn.functional.pad(x, (1, 1), value=p)
torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], scale=p)
torch.linalg.vector_norm(x, p)
torch.renorm(x[None], p, 0, 1)
torch.cdist(x[None], x[None], p)
torch.allclose(x, x, rtol=p)
torch.nan_to_num(x, nan=p)
torch.trapezoid(x, dx=p)
x.clone().normal_(0, p)
x.clone().uniform_(0, p)
torch.linspace(0, p, 3), x.split(p), x.clamp(p), x.clone().fill_(p), torch.lerp(x, x, p)
""")
def numbers_that_require_grad(torch, line):
    x, p = torch.tensor([1.0, -2.0]), torch.tensor(2.0, requires_grad=True)
    return evaluate(torch, line, x=x, p=p)


@case(warnings=False).lines("""
torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], is_coalesced=1)
torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced='a')
torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], check_invariants=1)
torch.sparse_coo_tensor((2,), check_invariants=1)
torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], requires_grad='a')
torch.stft(x, 4, return_complex='x')
x.stft(4, normalized=1, return_complex=True)
torch.stft(x, 4, onesided=3, return_complex=True)
torch.stft(x, 4, 1, 4, torch.ones(4), center=False, return_complex=1)
torch.stft(x, 4, 1, 4.5, center=False, return_complex=True)
torch.istft(torch.ones(3, 3) + 0j, 4, normalized=1)
torch.istft(torch.ones(3, 3) + 0j, 4, onesided='a')
torch.lu('a')
torch.lu(torch.ones(2, 2), pivot='a')
torch.ones(2, 2).lu(3)
""")
def flags_of_other_types(torch, line):
    return evaluate(torch, line, x=torch.ones(8))


@case.lines("""
torch.mvlgamma(torch.tensor([True]), 0)
torch.tensor([True]).mvlgamma_(1)
torch.special.multigammaln(torch.tensor([True]), 1)
torch.mvlgamma(torch.tensor([1j]), 1)
torch.norm(torch.ones(2, 2, dtype=torch.int32), 'nuc')
torch.norm(torch.ones(2, 2, dtype=torch.int32), 'nuc', dtype=torch.float32)
torch.norm(torch.ones(2, 2, dtype=torch.int32), 'nuc', (0, 0))
torch.norm(torch.ones(2, dtype=torch.int32), 'nuc')
torch.norm(torch.ones(2, 2, dtype=torch.half), 'nuc')
torch.norm(torch.ones(2, 2, dtype=torch.int32), 'abc')
""")
def dtypes_without_kernel(torch, line):
    return evaluate(torch, line)


@case
def elements_of_meta_tensors(torch):
    x, y = torch.ones(2, device="meta"), torch.ones(2)
    calls = []
    yield x.map_(x, calls.append), x.apply_(calls.append), x.map2_(x, x, calls.append)
    yield calls
    yield attempt(x.map_, y, max), attempt(y.map_, x, max)
    yield attempt(x.map2_, x, y, max), attempt(x.long().map_, x, max)
    yield attempt(x.clone().requires_grad_().map_, x, max)


@case.lines("""
torch.zeros(two)
torch.zeros(torch.tensor([[2]]))
torch.zeros(two, 3)
torch.zeros((two, torch.tensor([[1]])))
torch.zeros(size=two)
torch.zeros(torch.tensor([2, 3]))
torch.zeros(torch.tensor([2.0]))
torch.full((two,), 1), torch.empty(two).shape, torch.rand(two).shape
torch.ones(2).new_zeros(two), torch.ones(2).new_ones((two, 3))
torch.eye(two), torch.eye(2, torch.tensor([[1]]))
torch.randperm(two).shape, torch.randint(two, (two,)).shape
torch.ones(4).split([torch.tensor([1]), 3])
torch.tril_indices(two, 2)
torch.hann_window(two)
torch.ones(4).select(0, two), torch.ones(4).narrow(0, two, 1)
""")
def tensors_of_one_element_as_sizes(torch, line):
    return evaluate(torch, line, two=torch.tensor([2]))


@case.lines("""
F.batch_norm(x, None, None, training=True, momentum='a')
F.batch_norm(x, torch.ones(2), torch.ones(2), momentum='a')
F.batch_norm(x, torch.ones(2), torch.ones(2), training=True, momentum=1)
F.instance_norm(x[None], eps='a')
F.instance_norm(x[None], momentum='a')
F.triplet_margin_loss(x, x, x, eps='a')
F.triplet_margin_loss(x, x, x, p='a')
F.triplet_margin_loss(x, x, x, swap='a')
F.triplet_margin_loss(x, x, x, p=1, eps=0)
F.poisson_nll_loss(x, x, eps='a')
F.poisson_nll_loss(x, x, log_input='a')
F.poisson_nll_loss(x, x, full=1)
F.margin_ranking_loss(x, x, x, 'a')
F.margin_ranking_loss(x, x, x, torch.tensor(1.0, requires_grad=True))
F.margin_ranking_loss(x, x, x, torch.tensor(1.0))
F.hinge_embedding_loss(x, x, 'a')
F.cosine_embedding_loss(x, x, x[0], 'a')
torch.logsumexp(x, None), x.logsumexp(dim=None)
torch.vsplit(x, torch.tensor([0, 1]))
x.vsplit(torch.tensor([0, 1]))
x.hsplit(torch.tensor([1]))
torch.vsplit(x, torch.tensor(2))
""")
def arguments_of_layers(torch, line):
    return evaluate(torch, line, x=torch.ones(2, 2))


@case
def right_after_wrong(torch):
    """What was refused once is taken where its numbers are integers: 2.0 equals 2."""
    x = torch.arange(12.0).view(3, 4)
    yield attempt(torch.unflatten, x, 1, (-1, 2.0)), torch.unflatten(x, 1, (-1, 2))
    yield attempt(torch.unflatten, x, 1, (4.0, -1)), x.unflatten(1, (4, -1))
    yield attempt(torch.rot90, x, 1, (0, 1.0)), torch.rot90(x, 1, (0, 1))
    yield attempt(torch.rot90, x, 2, [0.0, 1]), torch.rot90(x, 2, [0, 1])
    yield torch.rot90(x, 3, (0, True))


@case.lines("""
torch.tensor([1, "2", 3], dtype=torch.complex128)
torch.tensor([1, None, 3], dtype=torch.complex64)
torch.tensor([1, Fraction(1, 2), True, np.float32(2)], dtype=torch.complex64)
torch.fft.rfftfreq(-1), torch.fft.rfftfreq(-2), torch.fft.rfftfreq(-3)
torch.fft.rfftfreq(-4)
torch.fft.rfftfreq(-7)
torch.linalg.tensorinv(torch.eye(1), ind=2)
torch.linalg.tensorinv(torch.eye(1), ind=3)
torch.linalg.tensorinv(torch.tensor(1.0), ind=1)
torch.sparse_coo_tensor([[1, 1], [0, 2]], [9, 10], (3, -1))
torch.sparse_coo_tensor([[1, 1], [0, 2]], [9, 10], (-1,))
torch.sparse_coo_tensor(size=(-3, 3))
torch.sparse_csr_tensor([0, 1], [0], [1.0], (3, -1))
torch.sparse_csr_tensor(torch.tensor([0, 2]), torch.tensor([0.0, 1]), torch.ones(2))
torch.sparse_csc_tensor([0, 2], torch.tensor([1, 0]).half(), [1.0, 2.0])
torch.tensor(1).repeat_interleave(2)
torch.tensor(1).repeat_interleave(2, -1)
torch.tensor(1).repeat_interleave(2, 1)
torch.repeat_interleave(torch.tensor(1), 1, 0)
torch.tensor(1).repeat_interleave(torch.tensor([2]), 0)
F.embedding_bag(torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor([False, True]))
torch.poisson(torch.tensor([math.inf, 1e20], dtype=torch.float64))
F.soft_margin_loss(torch.ones(2), torch.ones(2).cfloat())
F.soft_margin_loss(torch.ones(2).double(), torch.ones(2).cfloat(), reduction="none")
F.soft_margin_loss(torch.ones(2).half(), torch.ones(2).cfloat())
F.soft_margin_loss(torch.ones(2).long(), torch.ones(2).cfloat())
F.soft_margin_loss(torch.ones(2) > 0, torch.ones(2).cfloat())
F.soft_margin_loss(torch.ones(2).cfloat(), torch.ones(2))
""")
def values_out_of_range(torch, line):
    return evaluate(torch, line, Fraction=Fraction, math=math, np=np)
