"""The operators of `_ops/quantization.py`, compared with PyTorch."""

from tests.ops.driver import area
from tests.ops.samples.quantization import VALUES
from tests.oracle import attempt, case

globals().update(area(__name__))


@case
def scales_that_are_tensors(torch):
    """Without gradients of the scales, which PyTorch refuses."""
    x = torch.tensor(VALUES, requires_grad=True)
    scale, zero = torch.tensor([0.1, 0.2]), torch.tensor([0, 3], dtype=torch.int32)

    def gradient(y):
        return y, torch.autograd.grad(y.nan_to_num(0, 0, 0).sum(), x)

    whole = torch.fake_quantize_per_tensor_affine
    yield gradient(whole(x, scale[0], zero[1], -128, 127))
    yield whole(x.double(), scale[1], zero[0], -8, 7)
    quantize = torch.fake_quantize_per_channel_affine
    yield gradient(quantize(x.view(2, 5), scale, zero, 0, 0, 255))
    yield gradient(quantize(x.view(5, 2), scale, zero, 1, -5, 255))
    yield gradient(quantize(x.view(5, 2), scale, zero.float() + 0.25, 1, 0, 255))
    square = x.view(5, 2)
    yield attempt(quantize, square, scale, zero, 0, 0, 255)
    yield attempt(quantize, square, scale, zero, 2, 0, 255)
    yield attempt(quantize, square, scale, zero, -1, 0, 255)
    yield attempt(quantize, square, scale.double(), zero, 1, 0, 255)
    yield attempt(quantize, square, scale, zero.long(), 1, 0, 255)
    yield attempt(quantize, square, scale, zero[:1], 1, 0, 255)
    yield attempt(lambda: quantize(square, scale, zero - 5, 1, 0, 255).tolist())
    yield attempt(quantize, square.long(), scale, zero, 1, 0, 255)


_BATCH = (
    "T = torch.tensor; inf = float('inf'); one, none = T([1]), T([0]); "
    "x = T([[-1., .5], [2., 3.3]]); low, high = T(inf), T(-inf); "
    "s, z = T([1.]), T([0], dtype=torch.int32); e, f = T([]), T([]); "
    "F = torch.fused_moving_avg_obs_fake_quant; "
)


@case.lines("""
F(x, one, one, low, high, s, z, .01, 0, 255, -1)
F(x, one, none, low, high, s, z, .01, 0, 255, -1)
F(x, none, one, low, high, s, z, .01, 0, 255, -1)
F(x, none, none, low, high, s, z, .01, 0, 255, -1)
low.fill_(-1); high.fill_(1); F(x, one, one, low, high, s, z, .5, 0, 255, -1)
low.fill_(-1); high.fill_(1); F(x, none, one, low, high, s, z, .5, 0, 255, -1)
F(x, one, one, low, high, s, z, .01, -128, 127, -1, False, True)
F(x, one, one, e, f, s, z, .01, -128, 127, 0, True, True)
F(x, one, one, e, f, s, z, .01, 0, 255, 0, True, False)
F(x, none, one, e, f, s, z, .01, 0, 255, 0, True, False)
F(x[0, 0], one, one, low, high, s, z, .01, 0, 255, -1)
F(x[:0], one, one, low, high, s, z, .01, 0, 255, -1)
F(x * 1e-7, one, one, low, high, s, z, .01, 0, 255, -1)
F(x * inf, one, one, low, high, s, z, .01, 0, 255, -1)
F(x, one, one, low, high, s.double(), z.long(), .01, 0, 255, -1)
torch._fused_moving_avg_obs_fq_helper(x, one, one, low, high, s, z, .01, 0, 255, -1)
torch._fused_moving_avg_obs_fq_helper(x, one, none, low, high, s, z, .01, 0, 255, -1)
F(x.double(), one, one, low, high, s, z, .01, 0, 255, -1)
F(x.long(), one, one, low, high, s, z, .01, 0, 255, -1)
F(x, one, one, low.double(), high, s, z, .01, 0, 255, -1)
F(x, one, one, low, high, s, z, .01, 0, 255, 2)
F(x, one, one, e, f, s, z, .01, 0, 255, 1, True)
F(x[0], one, one, e, f, s, z, .01, 0, 255, 0, True)
F(x, one, one, low, high, s, z, .01, 5, 1, -1)
""")
def observed(torch, line):
    setup, _, line = f"{_BATCH}{line}".rpartition("; ")
    exec(setup, names := {"torch": torch})
    names["x"].requires_grad_()
    made = attempt(eval, line, names)
    yield made
    if not isinstance(made, Exception):
        yield {key: names[key] for key in ("low", "high", "e", "f", "s", "z")}
    if isinstance(made, torch.Tensor):
        made.nan_to_num(0, 0, 0).sum().backward()
        yield names["x"].grad


@case
def ranges(torch):
    """Scales and zero points of ranges, to the bit."""
    on = torch.tensor([1])
    for low, high in ((-1, 1), (-3, 0.1), (-28, 28), (0, 2), (1, 2), (-1e-4, 1e-5)):
        for least, most in ((0, 255), (-128, 127), (-8, 7), (0, 127)):
            for symmetric in (False, True):
                scale, zero = torch.tensor([1.0]), torch.tensor([0])
                ends = torch.tensor([low * 1.0]), torch.tensor([high * 1.0])
                torch.fused_moving_avg_obs_fake_quant(
                    on * 1.0, on - 1, on, *ends, scale, zero, 0.1, least, most, -1,
                    False, symmetric,
                )  # fmt: skip
                yield scale.item(), zero.item()
