"""Quantized tensors: made, asked, printed, copied and kept in files."""

import copy
import io
import pickle
import warnings

from tests.oracle import attempt, case
from tests.quantized.shown import shown

_SETUP = (
    "T = torch.tensor; Q = torch.quantize_per_tensor; C = torch.quantize_per_channel; "
    "D = torch.quantize_per_tensor_dynamic; "
    "E = torch._empty_per_channel_affine_quantized; "
    "nan, inf = float('nan'), float('inf'); "
    "x = T([[-1., 0., 1., 2.], [.3, .26, -5., 100.]]); s = T([.1, .01]); "
    "z = T([10, 0]); q = Q(x, .1, 10, torch.quint8); c = C(x, s, z, 0, torch.quint8); "
)


@case(warnings=False).lines("""
q
c
q.int_repr(), q.dequantize(), q.q_scale(), q.q_zero_point(), q.qscheme()
c.int_repr(), c.dequantize(), c.qscheme(), c.q_per_channel_axis()
c.q_per_channel_scales(), c.q_per_channel_zero_points()
q.dtype, q.is_quantized, q.shape, q.stride(), q.layout, q.device, q.type()
q.requires_grad, q.is_leaf, q.grad_fn, q.element_size(), q.itemsize, q.nbytes
q.is_floating_point(), q.is_complex(), q.is_contiguous(), len(q), q.numel()
torch.is_floating_point(q), type(q).__name__, isinstance(q, torch.Tensor), q._version
Q(x, .1, 0, torch.qint8)
Q(x, .1, 0, torch.qint32).int_repr()
Q(x, T(.1), T(10), torch.quint8)
Q([x, x], T([.1, .2]), T([10, 0]), torch.quint8)
Q(x, 1, 10, torch.quint8).q_scale()
Q(T([nan, inf, -inf, 1e20, -1e20]), .1, 10, torch.quint8).int_repr()
Q(T([.25, .75, 1.25, -.25, -.75]), .5, 0, torch.qint8).int_repr()
Q(T([1e9, -1e9, 3., 2e10]), 1., 7, torch.qint32).int_repr()
Q(x, 0., 1, torch.qint8).dequantize()
Q(x, -1., 1, torch.qint8).int_repr()
Q(torch.empty(0), .1, 0, torch.qint8)
Q(T(1.), .1, 0, torch.qint8)
Q(x.t(), .1, 0, torch.qint8).stride()
Q(x.t(), .1, 0, torch.qint8).dequantize().stride()
Q(x.clone().requires_grad_(), .1, 0, torch.qint8).requires_grad
C(x, s, z.float(), 0, torch.quint8)
C(x, s, z.float(), 0, torch.quint8).int_repr()
C(x, s.double(), z.int(), 0, torch.quint8).q_per_channel_zero_points().dtype
C(x, s, z, 0, torch.qint32).int_repr()
C(x, T([.1, .2, .5, .7]), T([1, 2, 3, 4]), 1, torch.qint8)
D(x, torch.quint8, False)
D(x, torch.qint8, False)
D(x, torch.quint8, True).int_repr()
D(x, torch.qint8, True).int_repr()
D(x, torch.float16, False)
D(torch.zeros(3), torch.quint8, False)
D(-torch.ones(3), torch.qint8, False)
[D(T([-3., -1.]), torch.quint8, r) for r in (True, False)]
[D(T(v), torch.qint8, True).q_scale() for v in ([1e-6, 2e-6], [-1e-6, 0.], [.3, .9])]
[D(T(v), torch.qint8, True).q_zero_point() for v in ([1e-6, 2e-6], [.3, .9])]
[D(T(v), torch.qint8, True).q_scale() for v in ([-1e-7, 1e30], [-1e-6, 2e-6])]
[torch._choose_qparams_per_tensor(v) for v in (x, x.double(), x + 9)]
[torch._choose_qparams_per_tensor(v, True) for v in (x, x - 200, x * 0)]
torch._choose_qparams_per_tensor(torch.empty(0))
torch.dequantize([q, x.half()]), torch.dequantize(x.double()).dtype, x.dequantize() is x
torch._empty_affine_quantized((2, 3), scale=.1, dtype=torch.quint8).q_scale()
E((2, 2), scales=s, zero_points=z, axis=0, dtype=torch.qint8).qscheme()
torch._make_per_tensor_quantized_tensor(T([1, 2], dtype=torch.int8), .5, 1)
torch._make_per_tensor_quantized_tensor(T([1, 2], dtype=torch.int32), .5, 1)
torch._make_per_channel_quantized_tensor(T([[1], [2]], dtype=torch.int8), s, z, 0)
torch.empty_quantized((2,), q).q_scale(), torch.empty_quantized((2,), q).shape
""")
def values(torch, line):
    exec(_SETUP, names := {"torch": torch})
    return shown(eval(line, names))


@case(warnings=False).lines("""
Q(x.double(), .1, 10, torch.quint8)
Q(x.long(), .1, 10, torch.quint8)
Q(x, .1, 10, torch.uint8)
Q(x, .1, 300, torch.quint8)
Q(x, .1, -1, torch.quint8)
Q(x, .1, 128, torch.qint8)
Q(x, .1, 10., torch.quint8)
Q(x, .1, 10)
c.q_scale()
c.q_zero_point()
q.q_per_channel_scales()
q.q_per_channel_axis()
C(x, s, z, 2, torch.quint8)
C(x, s, z, -2, torch.quint8)
C(x, s[:1], z, 0, torch.quint8)
C(x, T([1., 2., 3.]), T([1, 2, 3]), 0, torch.quint8)
C(x, s.int(), z, 0, torch.quint8)
C(x, s[None], z, 0, torch.quint8)
C(x, s, z[None], 0, torch.quint8)
C(x, s, z - 20, 0, torch.quint8)
C(x.double(), s, z, 0, torch.quint8)
C(x, s, z, 0, torch.int8)
D(x.double(), torch.quint8, False)
D(x, torch.qint32, False)
D(torch.empty(0), torch.quint8, False)
q.requires_grad_()
q.retain_grad()
q.backward()
q.float()
q.to(torch.float64)
q.tolist()
q.numpy()
q.type(torch.float32)
torch.isclose(q, q)
torch._make_per_tensor_quantized_tensor(T([1, 2]), .5, 1)
torch._empty_affine_quantized((2, 2))
""")
def refused(torch, line):
    exec(_SETUP, names := {"torch": torch})
    return shown(attempt(eval, line, names))


@case(warnings=False)
def others_have_none(torch):
    x = torch.ones(2)
    for name in (
        *("int_repr", "q_scale", "q_zero_point", "qscheme", "q_per_channel_scales"),
        *("q_per_channel_zero_points", "q_per_channel_axis"),
    ):
        found = attempt(getattr(x, name))
        yield type(found).__name__, str(found).partition(" backend")[0]
    q = torch.quantize_per_tensor(x, 0.5, 0, torch.quint8)
    for name in ("add", "cumsum", "exp"):
        found = attempt(getattr(torch, name), q, q)
        yield isinstance(found, (NotImplementedError, TypeError))


@case(warnings=False)
def copies_and_files(torch):
    x = torch.tensor([[-1.0, 0.0], [0.3, 100.0]])
    q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
    scales, zeros = torch.tensor([0.1, 0.01]), torch.tensor([10, 0])
    c = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    for each in (q, c):
        yield shown((copy.deepcopy(each), pickle.loads(pickle.dumps(each))))
    file = io.BytesIO()
    torch.save({"q": q, "turned": q.t(), "channels": c}, file)
    for weights_only in (True, False):
        file.seek(0)
        yield shown(torch.load(file, weights_only=weights_only))
    copied = copy.deepcopy(q)
    copied.fill_(2.0)
    yield shown((copied, q))


@case
def warns(torch):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x = torch.ones(2)
        torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
        torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    yield [str(each.message).partition(" (Trig")[0] for each in told]
