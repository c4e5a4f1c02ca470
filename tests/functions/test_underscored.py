"""Functions of `torch` under names with an underscore."""

from __future__ import annotations

from tests.oracle import attempt, case


@case
def casts(torch):
    x = torch.tensor([-1.5, 0.0, 2.7], requires_grad=True)
    for name in ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"):
        cast = getattr(torch, f"_cast_{name}")
        yield cast(x.abs()), cast(torch.tensor([1, 2]), non_blocking=True)
    yield torch._cast_Float(x) is x, torch.autograd.grad(torch._cast_Double(x).sum(), x)


@case
def reductions(torch):
    x = torch.tensor([[1.0, 5.0, -2.0], [3.0, 0.0, 9.0]])
    yield torch._aminmax(x), torch._aminmax(x, 1), torch._aminmax(x, 0, keepdim=True)
    yield torch._logcumsumexp(x, 1), torch._dim_arange(x, 1), torch._dim_arange(x, -2)
    yield attempt(torch._dim_arange, x, 2)


@case
def convolutions(torch):
    double = {"dtype": torch.float64, "requires_grad": True}
    x = torch.randn(1, 2, 5, 5, **double)
    w = torch.randn(2, 2, 3, 3, **double)
    hints = False, False, True, True
    size = [1, 1], [1, 1], [1, 1]
    for args in ((False, [0, 0], 1), (True, [0, 0], 1)):
        y = torch._convolution(x, w, None, *size, *args, *hints)
        yield y.detach(), list(torch.autograd.grad(y.square().sum(), (x, w)))
    yield torch._convolution(x, w, None, *size, False, [0, 0], 1, *hints[:3]).shape
    for mode in ("same", "valid"):
        yield torch._convolution_mode(x, w, w[0, 0, 0, :2], [1, 1], mode, [1, 1], 1)
    yield (
        torch._adaptive_avg_pool2d(x, [2, 3]),
        torch._adaptive_avg_pool3d(x, (1, 2, 2)),
    )


@case
def bags(torch):
    weight = torch.randn(5, 3)
    indices, offsets = torch.tensor([1, 2, 4, 3, 1]), torch.tensor([0, 2])
    for mode in (0, 1, 2):
        out, *_ = torch._embedding_bag(weight, indices, offsets, False, mode)
        yield out, torch._embedding_bag_forward_only(weight, indices, offsets)[0]
        yield torch._embedding_bag(weight, indices, offsets, mode=mode, padding_idx=1)[
            0
        ]


@case
def distances(torch):
    a, b = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3)
    y = torch._euclidean_dist(a, b)
    yield y.detach(), torch.autograd.grad(y.sum(), a)


@case
def others(torch):
    x = torch.arange(6.0).view(2, 3)
    yield torch._softmax(x, 1, False), torch._log_softmax(x, 0, False)
    yield attempt(torch._softmax, x, 1, True)
    yield torch._stack([x, x], 1), torch._conj_physical(torch.tensor([1 + 2j]))
    i = torch.tensor([1, 0])
    yield torch._unsafe_index(x, [i, i]), torch._unsafe_index(x, [i])
    yield torch._unsafe_index_put(x, [i], torch.ones(3)), x
    yield torch._unsafe_index_put(x, [i, i], torch.ones(2), accumulate=True)
    yield torch._index_put_impl_(x.clone(), [i], torch.ones(3))
    v, g = torch.randn(3, 2), torch.rand(3, 1)
    yield torch._weight_norm_interface(v, g)
    yield torch._weight_norm_interface(v, g[:2].T, 1)
    yield torch._reshape_from_tensor(x, torch.tensor([3, 2]))
    sparse = x.to_sparse()
    for one, two in ((x, i), (x, sparse), (sparse, sparse), (x, x.to("meta"))):
        yield torch._has_compatible_shallow_copy_type(one, two)


@case
def schemes(torch):
    """Of quantized tensors."""
    yield torch.per_tensor_affine, torch.per_channel_affine_float_qparams
    yield torch.per_tensor_affine == torch.per_tensor_symmetric, torch.qscheme.__name__
    yield isinstance(torch.per_channel_symmetric, torch.qscheme)
