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
