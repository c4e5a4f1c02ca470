"""`nn.functional`: results, gradients of first and second order, and errors.

Every line is evaluated with `R` (a tensor of that shape that requires grad), `P` (the
same with values between 0 and 1), `C` (without grad) and `I` (integers below a bound).
All lines of a group make one program.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import numpy as np

import torchshim.linalg
import torchshim.nn  # noqa: F401
from tests.oracle import attempt, case, evaluate


class Values:
    """Tensors of fixed values; those that require grad are remembered."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.leaves: list[Any] = []
        self.turn = 0

    def numbers(self, shape: tuple[int, ...]) -> list[float]:
        count = 1
        for s in shape:
            count *= s
        self.turn += 1
        return [
            (0.5 + (i + 1 + 100 * self.turn) * 0.6180339887498949) % 1.0
            for i in range(count)
        ]

    def R(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        leaf = self.C(*shape, low=low, high=high).requires_grad_()
        self.leaves.append(leaf)
        return leaf

    def P(self, *shape: int) -> Any:
        return self.R(*shape, low=0.05, high=0.95)

    def C(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        flat = [low + (high - low) * u for u in self.numbers(shape)]
        return self.torch.tensor(np.array(flat, np.float32).reshape(shape))

    def I(self, *shape: int, below: int = 4) -> Any:  # noqa: E743
        flat = [int(u * below) for u in self.numbers(shape)]
        return self.torch.tensor(np.array(flat, np.int64).reshape(shape))


def shown(torch: Any, line: str, second: bool) -> Any:
    values = Values(torch)
    scope = {k: getattr(values, k) for k in "RPCI"}
    torch.manual_seed(0)
    found = evaluate(torch, line, **scope)
    outs = [found] if isinstance(found, torch.Tensor) else list(found)
    live = [o for o in outs if o.requires_grad]
    if not live or not values.leaves:
        return outs
    grads = gradients(torch, values, live, second)
    # Nodes of gradients have names of their own.
    parts = [found, [g if g is None else g.detach() for g in grads]]
    again = [g for g in grads if g is not None and g.requires_grad]
    if second:
        # PyTorch has no path where it knows that the derivative is 0.
        found = gradients(torch, values, again, False) if again else grads
        zero = [g is None or not again for g in found]
        parts.append(
            [
                torch.zeros_like(leaf) if none else torch.zeros_like(g) + g
                for leaf, g, none in zip(values.leaves, found, zero, strict=True)
            ]
        )
    return parts


def gradients(torch: Any, values: Values, outs: list[Any], graph: bool) -> Any:
    given = [
        values.C(*o.shape, low=0.5, high=1.5).to(o.dtype) if o.dim() else None
        for o in outs
    ]
    return torch.autograd.grad(
        outs, values.leaves, given, allow_unused=True, create_graph=graph
    )


def group(text: str, torch: Any, second: bool = True) -> dict[str, Any]:
    lines = [line.strip() for line in text.strip().splitlines()]
    return {line: attempt(shown, torch, line, second) for line in lines}


def failures(text: str, torch: Any) -> dict[str, Any]:
    lines = [line.strip() for line in text.strip().splitlines()]
    return {line: attempt(raised, torch, line) for line in lines}


def raised(torch: Any, line: str) -> Any:
    values = Values(torch)
    found = evaluate(torch, line, **{k: getattr(values, k) for k in "RPCI"})
    # What depends on data shows when it is read.
    if isinstance(found, torch.Tensor):
        found.tolist()
    return "no error"


ACTIVATIONS = """
F.relu(R(3, 4))
F.relu6(R(3, 4, low=-2., high=8.))
F.leaky_relu(R(3, 4), 0.1)
F.elu(R(3, 4), 0.7)
F.selu(R(3, 4))
F.celu(R(3, 4), 1.3)
F.gelu(R(3, 4))
F.gelu(R(3, 4), approximate='tanh')
F.silu(R(3, 4))
F.mish(R(3, 4))
F.softplus(R(3, 4), 2., 1.)
F.softsign(R(3, 4))
F.tanhshrink(R(3, 4))
F.hardtanh(R(3, 4), -0.5, 1.)
F.hardswish(R(3, 4, low=-4., high=4.))
F.hardshrink(R(3, 4), 0.7)
F.softshrink(R(3, 4), 0.7)
F.threshold(R(3, 4), 0.1, 20.)
F.glu(R(3, 4))
F.glu(R(4, 3), 0)
F.logsigmoid(R(3, 4, low=-40., high=40.))
F.prelu(R(2, 3, 2), R(3))
F.prelu(R(3, 4), R(1))
F.rrelu(R(3, 4))
F.sigmoid(R(3)), F.tanh(R(3))
"""


@case
def activations(torch):
    return group(ACTIVATIONS, torch)


ONCE = """
F.hardsigmoid(R(3, 4, low=-4., high=4.))
F.multi_margin_loss(R(3, 4), I(3))
F.multi_margin_loss(R(3, 4), I(3), p=2, margin=0.5, weight=C(4), reduction='none')
F.multilabel_margin_loss(R(2, 4), torch.tensor([[3, 0, -1, 1], [2, -1, 0, 0]]))
F.multilabel_margin_loss(R(4), torch.tensor([3, 0, -1, 1]), reduction='none')
F.batch_norm(R(4, 3).bfloat16(), C(3), C(3, low=0.5, high=2.), R(3), R(3))
F.rms_norm(R(2, 4).half(), (4,))
torch.cdist(R(2, 3), R(4, 3))
"""


@case(rtol=1e-2, atol=1e-2, why="half types")
def differentiable_once(torch):
    return group(ONCE, torch, False)


KINKS = (
    "relu relu6 leaky_relu elu selu celu gelu silu mish softplus hardtanh hardsigmoid "
    "hardswish hardshrink softshrink logsigmoid"
).split()


@case
def activations_at_kinks(torch):
    out = {}
    special = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, float("nan")]
    far = [float("inf"), float("-inf"), -100.0, 100.0]
    for name in KINKS:
        x = torch.tensor(special, requires_grad=True)
        y = getattr(torch.nn.functional, name)(x)
        out[name] = y, torch.autograd.grad(y.sum(), x)
        if name != "gelu":  # PyTorch's kernels differ among themselves at infinity
            out[f"{name} far"] = getattr(torch.nn.functional, name)(torch.tensor(far))
    return out


@case
def activations_in_place_and_in_half(torch):
    out = {}
    f = torch.nn.functional
    for name in KINKS:
        for dtype in ("float16", "bfloat16", "float64"):
            x = torch.tensor([-2.5, -0.5, 0.25, 2.0], dtype=getattr(torch, dtype))
            out[f"{name} {dtype}"] = getattr(f, name)(x)
    for name in ("relu elu selu celu silu mish hardtanh hardsigmoid hardswish").split():
        x = torch.tensor([-2.5, -0.5, 0.25, 2.0])
        y = getattr(f, name)(x, inplace=True)
        out[f"{name} in place"] = y, y is x, x._version
    x = torch.tensor([-2.5, -0.5, 0.25])
    out["_"] = f.relu_(x), f.leaky_relu_(x), f.threshold_(x, 0.1, 3.0), x
    out["torch"] = torch.relu(x), torch.selu(x), torch.celu(x), torch.rrelu(x), x.relu()
    return out


SOFTMAX = """
F.softmax(R(2, 3), 1)
F.log_softmax(R(2, 3), 0)
F.softmin(R(2, 3), -1)
F.softmax(R(3, 2, 1))
F.log_softmax(R(3), dtype=torch.float64)
F.gumbel_softmax(R(2, 3))
F.gumbel_softmax(R(2, 3), hard=True, dim=0, tau=0.5)
F.gumbel_softmax(R(2, 3, 4).transpose(0, 1))
F.gumbel_softmax(R(2, 3, 4).permute(2, 0, 1), hard=True)
"""


@case
def softmaxes(torch):
    return group(SOFTMAX, torch)


LOSSES = """
F.mse_loss(R(3, 2), R(3, 2))
F.mse_loss(R(3, 2), C(3, 2), reduction='sum')
F.mse_loss(R(3, 2), C(3, 2), reduction='none')
F.mse_loss(R(3, 2), R(2))
F.mse_loss(R(3, 2), C(3, 2), weight=P(3, 2))
F.mse_loss(R(3), I(3))
F.l1_loss(R(3, 2), R(3, 2))
F.l1_loss(R(3, 2), C(3, 2), size_average=False)
F.smooth_l1_loss(R(3, 2), R(3, 2), beta=0.5)
F.smooth_l1_loss(R(3, 2), R(3, 2), beta=0.)
F.huber_loss(R(3, 2), R(3, 2), delta=0.7)
F.huber_loss(R(3, 2), R(3, 2), 'sum', weight=C(3, 2))
F.huber_loss(R(3, 2), R(3, 2), weight=C(3, 2))
F.binary_cross_entropy(P(3, 2), C(3, 2, low=0., high=1.), weight=C(2))
F.binary_cross_entropy(P(3), P(3), reduction='sum')
F.binary_cross_entropy_with_logits(R(3, 2), P(3, 2))
F.binary_cross_entropy_with_logits(R(3, 2), C(3, 2, low=0., high=1.), C(2), pos_weight=C(2))
F.kl_div(R(2, 3), P(2, 3), reduction='batchmean')
F.kl_div(R(2, 3), P(2, 3), log_target=True)
F.poisson_nll_loss(R(3), C(3, low=0., high=4.), full=True)
F.poisson_nll_loss(P(3), C(3, low=0., high=4.), log_input=False)
F.gaussian_nll_loss(R(2, 3), C(2, 3), P(2, 3), full=True)
F.gaussian_nll_loss(R(2, 3), C(2, 3), P(2))
F.gaussian_nll_loss(R(2, 3), C(2, 3), P(1, 3))
F.soft_margin_loss(R(3), C(3).sign())
F.soft_margin_loss(R(3) * 60, torch.tensor([1.0, -1.0, 1.0]), reduction='none')
"""


@case
def losses(torch):
    return group(LOSSES, torch)


CLASSES = """
F.cross_entropy(R(3, 4), I(3))
F.cross_entropy(R(3, 4), I(3), reduction='none')
F.cross_entropy(R(3, 4), I(3), C(4, low=0., high=1.), reduction='sum')
F.cross_entropy(R(3, 4), I(3), C(4, low=0., high=1.))
F.cross_entropy(R(3, 4), torch.tensor([1, -100, 2]))
F.cross_entropy(R(3, 4), torch.tensor([1, 0, 2]), ignore_index=0)
F.cross_entropy(R(3, 4), torch.tensor([-100, -100, -100]))
F.cross_entropy(R(3, 4), torch.tensor([1, -100, 2]), C(4), label_smoothing=0.2)
F.cross_entropy(R(3, 4), I(3), label_smoothing=0.1)
F.cross_entropy(R(3, 4), I(3), label_smoothing=0.1, reduction='none')
F.cross_entropy(R(3, 4), P(3, 4))
F.cross_entropy(R(3, 4), P(3, 4), C(4), label_smoothing=0.3, reduction='sum')
F.cross_entropy(R(2, 4, 3), P(2, 4, 3), reduction='none')
F.cross_entropy(R(4), I())
F.cross_entropy(R(4), P(4))
F.cross_entropy(R(2, 4, 3), I(2, 3))
F.cross_entropy(R(2, 4, 3, 2), I(2, 3, 2), C(4))
F.cross_entropy(R(2, 4, 3, 2), I(2, 3, 2), reduction='none')
F.cross_entropy(R(0, 4), I(0))
F.nll_loss(R(3, 4), I(3).byte())
F.nll_loss(R(2, 4, 3), I(2, 3), reduction='none')
F.nll_loss(R(2, 4, 1, 2, 2), I(2, 1, 2, 2))
F.nll_loss(R(4), torch.tensor(2))
F.multilabel_soft_margin_loss(R(2, 3), C(2, 3).sign(), C(3))
"""


@case
def classes(torch):
    return group(CLASSES, torch)


MARGINS = """
F.hinge_embedding_loss(R(4), torch.tensor([1., -1., 1., -1.]), margin=0.5)
F.margin_ranking_loss(R(4), R(4), torch.tensor([1., -1., 1., -1.]), margin=0.1)
F.cosine_embedding_loss(R(2, 3), R(2, 3), torch.tensor([1., -1.]), margin=-0.5)
F.cosine_embedding_loss(R(3), R(3), torch.tensor(1.))
F.triplet_margin_loss(R(2, 3), R(2, 3), R(2, 3), swap=True)
F.triplet_margin_loss(R(2, 3), R(2, 3), R(2, 3), p=1, reduction='none')
F.triplet_margin_with_distance_loss(R(2, 3), R(2, 3), R(2, 3), swap=True)
F.cosine_similarity(R(2, 3), R(1, 3))
F.cosine_similarity(R(2, 3), R(2, 3), dim=0)
F.pairwise_distance(R(2, 3), R(2, 3))
F.pairwise_distance(R(2, 3), R(3), p=1, keepdim=True)
F.pairwise_distance(R(2, 3).to(torch.complex64) * 1j, R(2, 3))
F.pairwise_distance(I(2, 3), I(2, 3) + 1, 1)
torch.cdist(R(2, 3), R(4, 3), compute_mode='use_mm_for_euclid_dist')
F.normalize(R(2, 3))
F.normalize(R(2, 3), p=1, dim=0)
F.normalize(torch.zeros(3, requires_grad=True), dim=0)
"""


@case
def margins(torch):
    return group(MARGINS, torch)


PRODUCTS = """
F.linear(R(2, 3), R(4, 3), R(4))
F.linear(R(2, 3), R(4, 3))
F.linear(R(3), R(4, 3), R(4))
F.linear(R(3), R(4, 3))
F.linear(R(2, 2, 3), R(4, 3), R(4))
F.linear(R(2, 2, 3), R(4, 3))
F.linear(R(2, 3), R(3))
F.linear(R(2, 3), R(4, 3), R(1))
F.linear(R(0, 3), R(4, 3), R(4))
F.linear(R(2, 3).bfloat16(), R(4, 3).bfloat16(), R(4).bfloat16())
F.linear(R(2, 3).half(), R(4, 3).half(), R(4).half())
F.bilinear(R(2, 3), R(2, 4), R(5, 3, 4), R(5))
F.bilinear(R(2, 3), R(2, 4), R(5, 3, 4))
torch.einsum('ij,jk->ik', R(2, 3), R(3, 4))
torch.einsum('bij,bjk', R(2, 2, 3), R(2, 3, 2))
torch.einsum('...ij,...jk', R(5, 2, 3), R(3, 4))
torch.einsum('ii', R(3, 3))
torch.einsum('i,j->ij', R(3), R(2))
torch.einsum('ij,ij->', R(2, 3), R(1, 3))
torch.einsum(R(2, 3), [0, 1], R(3, 4), [1, 2], [2, 0])
torch.einsum('a,b,c->abc', R(2), R(2), R(2))
torch.tensordot(R(2, 3, 4), R(4, 3), dims=([1, 2], [1, 0]))
torch.tensordot(R(2, 3), R(1, 4), ([1], [0]))
torch.linalg.multi_dot([R(2, 3), R(3, 4), R(4, 2)])
torch.linalg.multi_dot([R(3), R(3, 4), R(4)])
torch.chain_matmul(R(2, 3), R(3, 4))
torch.chain_matmul(R(2, 3))
torch.chain_matmul(R(2, 3), out=torch.empty(0))
torch.chain_matmul(R(2, 3), R(3))
torch.chain_matmul()
"""


@case
def products(torch):
    return group(PRODUCTS, torch)


TWICE = """
F.conv1d(R(2, 3, 7), R(4, 3, 3), R(4), stride=2, padding=1)
F.conv2d(R(1, 8, 3, 3), R(2, 8, 3, 3), padding=1)
F.max_pool2d(R(1, 2, 4, 4), 2)
"""


@case(rtol=1e-4, atol=1e-4, why="sums of many products, in another order")
def differentiable_twice(torch):
    return group(TWICE, torch)


CONVOLUTIONS = """
F.conv1d(R(3, 7), R(4, 3, 3))
F.conv2d(R(2, 1, 6, 6), R(3, 1, 3, 3), R(3), padding=1)
F.conv1d(R(2, 0, 7), R(4, 0, 3), R(4), 2, 1)
F.conv2d(R(2, 2, 6, 5), R(4, 2, 3, 2), R(4), stride=(2, 1), dilation=(1, 2))
F.conv2d(R(2, 4, 5, 5), R(4, 2, 3, 3), R(4), groups=2)
F.conv2d(R(2, 4, 5, 5), R(4, 1, 3, 3), R(4), groups=4, padding=(1, 0))
F.conv2d(R(2, 8, 5, 5), R(2, 8, 3, 3), padding='same')
F.conv2d(R(2, 2, 5, 5), R(2, 2, 2, 2), padding='same', dilation=(1, 2))
F.conv2d(R(2, 5, 5), R(3, 2, 1, 1), R(3), padding='valid')
F.conv2d(R(0, 2, 5, 5), R(3, 2, 2, 2), R(3))
F.conv3d(R(1, 2, 4, 4, 4), R(3, 2, 2, 2, 2), R(3), stride=(1, 2, 1), padding=1)
F.conv_transpose1d(R(2, 3, 5), R(3, 2, 3), R(2), stride=2, padding=1, output_padding=1)
F.conv_transpose2d(R(2, 4, 3, 3), R(4, 1, 3, 2), R(2), stride=2, groups=2, dilation=(1, 2))
F.conv_transpose2d(R(4, 3, 3), R(4, 2, 3, 3))
F.conv_transpose3d(R(1, 2, 2, 2, 2), R(2, 3, 2, 2, 2), R(3), stride=2)
F.unfold(R(2, 3, 4, 5), (2, 3), padding=1, stride=2)
F.fold(R(1, 8, 9), (4, 4), 2)
F.fold(R(1, 4, 4) > 0, (3, 3), 2)
F.fold(R(8, 4), (5, 4), 2, dilation=2, padding=(0, 1), stride=(1, 2))
"""


@case(
    rtol=1e-4,
    atol=1e-4,
    why="sums of many products, in another order",
    warnings=False,  # on a copy that PyTorch's kernel makes
)
def convolutions(torch):
    return group(CONVOLUTIONS, torch, False)


POOLS = """
F.max_pool1d(R(2, 3, 7), 2)
F.max_pool1d(R(2, 7), 3, 2, 1, ceil_mode=True)
F.max_pool2d(R(2, 2, 4, 4), 2)
F.max_pool2d(R(2, 2, 5, 5), 3, 2, 1)
F.max_pool2d(R(1, 2, 6, 7), (2, 3), stride=(2, 1), dilation=(1, 2), ceil_mode=True)
F.max_pool2d(R(2, 5, 5), 2, return_indices=True)
F.max_pool2d(R(1, 1, 5, 5), 3, 2, 1, return_indices=True)
F.max_pool2d(torch.zeros(1, 1, 4, 4, requires_grad=True), 2, return_indices=True)
F.max_pool3d(R(1, 1, 4, 4, 4), 2, return_indices=True)
F.max_pool2d(I(1, 2, 4, 4), 2)
F.avg_pool1d(R(2, 3, 7), 3, 2, 1)
F.avg_pool2d(R(2, 2, 4, 4), 2)
F.avg_pool2d(R(1, 2, 5, 6), 3, 2, 1, ceil_mode=True, count_include_pad=False)
F.avg_pool2d(R(1, 2, 5, 6), 3, 2, 1, ceil_mode=True)
F.avg_pool2d(R(1, 2, 4, 4), 4, divisor_override=3)
F.avg_pool3d(R(1, 2, 4, 4, 4), 2, 1)
F.avg_pool2d(R(1, 3, 3), 1048576, padding=1, ceil_mode=True)
F.max_pool2d(R(1, 3, 3), (1048576, 2), ceil_mode=True)
F.adaptive_avg_pool1d(R(2, 3, 7), 3)
F.adaptive_avg_pool2d(R(2, 3, 4, 6), 2)
F.adaptive_avg_pool2d(R(2, 3, 5, 7), (3, None))
F.adaptive_avg_pool2d(R(2, 3, 5, 7), 1)
F.adaptive_avg_pool2d(R(2, 3), 1)
F.adaptive_avg_pool1d(R(2, 3), 1)
F.adaptive_avg_pool3d(R(2, 2, 3).to(torch.complex64), 1)
F.adaptive_avg_pool3d(R(1, 1, 4, 5, 3), (2, 3, 1))
F.adaptive_max_pool1d(R(2, 3, 7), 3)
F.adaptive_max_pool2d(R(2, 3, 5, 4), (3, 2), return_indices=True)
F.adaptive_max_pool3d(R(1, 1, 4, 5, 3), 2, True)
F.lp_pool1d(P(1, 2, 6), 2, 2)
F.lp_pool2d(P(1, 2, 4, 4), 3., (2, 2), 1)
F.max_unpool2d(R(1, 1, 2, 2), torch.tensor([[[[0, 3], [8, 15]]]]), 2)
F.max_unpool1d(R(1, 1, 2), torch.tensor([[[1, 2]]]), 2, output_size=(5,))
"""


@case
def pools(torch):
    return group(POOLS, torch, False)


NORMS = """
F.batch_norm(R(4, 3), None, None, R(3), R(3), True)
F.batch_norm(R(2, 3, 4), None, None, training=True, eps=0.1)
F.batch_norm(R(2, 3, 2, 2), C(3), C(3, low=0.5, high=2.), R(3), R(3))
F.layer_norm(R(2, 3, 4), (4,), R(4), R(4))
F.layer_norm(R(2, 3, 4), (3, 4), R(3, 4))
F.layer_norm(R(2, 4), [4])
torch.layer_norm(R(2, 4), (4,), None, None, 1e-3, False)
F.rms_norm(R(2, 4), (4,), R(4))
F.rms_norm(R(2, 4), (4,), eps=0.1)
F.rms_norm(R(2, 4).to(torch.complex64) * (1 + 1j), (4,))
F.group_norm(R(2, 4, 3), 2, R(4), R(4))
F.group_norm(R(2, 4), 1)
F.instance_norm(R(2, 3, 4), None, None, R(3), R(3))
F.instance_norm(R(2, 3, 4), C(3), C(3, low=0.5, high=2.), use_input_stats=False)
F.local_response_norm(R(2, 5, 3), 3)
F.local_response_norm(I(1, 3, 2), 2, 2.)
F.local_response_norm(R(2, 5, 2, 2), 2, alpha=0.5, beta=0.5, k=2.)
"""


@case(rtol=1e-4, atol=1e-4, why="second derivatives of variances of few elements")
def norms(torch):
    return group(NORMS, torch)


@case
def running_statistics(torch):
    f = torch.nn.functional
    v = Values(torch)
    mean, var = torch.zeros(3), torch.ones(3)
    y = f.batch_norm(v.R(4, 3), mean, var, training=True)
    yield y, mean, var
    y.sum().backward()
    yield f.batch_norm(v.C(2, 3, 4), mean, var, training=True, momentum=0.5)
    yield mean, var, mean.requires_grad
    f.instance_norm(v.C(2, 3, 4), mean, var, momentum=0.3)
    yield mean, var
    yield f.batch_norm(v.C(4, 3), mean, var)


EMBEDDINGS = """
F.embedding(I(2, 3), R(4, 2))
F.embedding(torch.tensor([1, 1, 3]), R(4, 2), padding_idx=1)
F.embedding(torch.tensor([1, 1, 3]), R(4, 2), padding_idx=-1)
F.embedding(torch.tensor([1, 1, 3]), R(4, 2), scale_grad_by_freq=True)
F.embedding(I(3).int(), R(4, 2))
F.embedding(I(0), R(4, 2))
torch.embedding(R(4, 2), I(3))
F.embedding_bag(I(2, 3), R(4, 2))
F.embedding_bag(I(5), R(4, 2), torch.tensor([0, 2, 2]), mode='sum')
F.embedding_bag(I(5), R(4, 2), torch.tensor([0, 2, 2]), mode='max')
F.embedding_bag(I(5), R(4, 2), torch.tensor([0, 2, 5]), include_last_offset=True)
F.embedding_bag(I(5), R(4, 2), torch.tensor([0, 2, 3]), mode='sum', include_last_offset=True, padding_idx=3)
F.embedding_bag(I(5), R(4, 2), torch.tensor([0, 2, 2]), mode='max', include_last_offset=True)
F.embedding_bag(I(5), R(4, 2).double(), torch.tensor([0, 2, 2]), include_last_offset=True)
F.embedding_bag(I(4), R(4, 2), torch.tensor([0, 2]), mode='sum', per_sample_weights=R(4))
F.embedding_bag(torch.tensor([1, 2, 1]), R(4, 2), torch.tensor([0, 2]), padding_idx=1)
F.embedding_bag(torch.tensor([[1, 1, 3], [2, 2, 2]]), R(5, 2), mode='sum', scale_grad_by_freq=True)
F.embedding_bag(torch.tensor([[1, 2, 3], [4, 4, 1]]), R(5, 2), scale_grad_by_freq=True, padding_idx=1)
"""


@case
def embeddings(torch):
    return group(EMBEDDINGS, torch, False)


@case
def embedding_max_norm(torch):
    w = torch.tensor([[3.0, 4.0], [6.0, 8.0], [0.1, 0.1]], requires_grad=True)
    y = torch.nn.functional.embedding(torch.tensor([0, 2]), w, max_norm=1.0)
    y.sum().backward()
    return y, w, w.grad, w._version, w.is_leaf


DROPOUTS = """
F.dropout(R(3, 4))
F.dropout(R(3, 4), 0.3)
F.dropout(R(4, 3).T, 0.3)
F.dropout(R(3, 4), 1.)
F.dropout(R(3).double(), 0.5)
F.dropout(C(3).bfloat16(), 0.3)
F.dropout1d(R(2, 3, 2))
F.dropout1d(R(3, 2))
F.dropout2d(R(2, 3, 2, 2), 0.4)
F.dropout2d(R(2, 3, 2), 0.4)
F.dropout3d(R(3, 2, 2, 2))
F.alpha_dropout(R(3, 4), 0.3, True)
F.feature_alpha_dropout(R(2, 3, 2), 0.5, True)
F.rrelu(R(3, 4), training=True)
torch.dropout(R(5), 0.5, True), torch.feature_dropout(R(2, 3, 2), 0.5, True)
torch.dropout_(C(5), 0.5, True)
"""


@case
def dropouts(torch):
    return group(DROPOUTS, torch, False)


@case
def dropout_identity(torch):
    f = torch.nn.functional
    x = torch.ones(4)
    yield f.dropout(x, training=False) is x, f.dropout(x, 0.0) is x
    y = f.dropout(x, inplace=True)
    yield y is x, x
    yield torch.rand(2)


SHAPES = """
F.pad(R(1, 2, 3), (1, 2))
F.pad(R(2, 3), (1, -1, 0, 2), value=1.5)
F.pad(R(1, 2, 4), (1, 2), 'reflect')
F.pad(R(2, 3, 4), (1, 2, 2, 0), 'reflect')
F.pad(R(1, 2, 4), (2, 1), 'replicate')
F.pad(R(1, 1, 2, 2, 2), (1, 1, 0, 2, 1, 0), 'replicate')
F.pad(R(1, 2, 4), (3, 4), 'circular')
F.pad(R(2), (1, 1, 1, 1), 'replicate')
F.pad(R(2), (1, 1, 1), 'x')
F.pad(R(1, 2, 3, 4), (1, 2, 3, 0), 'circular')
F.pad(R(1, 2, 3, 4), (-1, 1, 1, -1), 'circular')
F.pad(R(1, 2, 4), (-2, -2), 'circular')
F.pad(C(2) > 0, (1, 1), value=True), F.pad(I(3), (2, 0), value=7)
F.pixel_shuffle(R(1, 8, 2, 3), 2)
F.pixel_unshuffle(R(2, 4, 6), 2)
F.channel_shuffle(R(1, 6, 2, 2), 3)
F.interpolate(R(1, 2, 3), scale_factor=2)
F.interpolate(R(1, 2, 3), size=5)
F.interpolate(R(1, 2, 3, 4), scale_factor=(1.5, 0.6))
F.interpolate(R(1, 2, 3, 4), size=(5, 3), mode='nearest-exact')
F.interpolate(R(1, 2, 3), size=5, mode='linear')
F.interpolate(I(1, 3, 4, 5).byte() * 50, size=(3, 7), mode='bilinear')
F.interpolate(I(1, 3, 6, 5).byte() * 50, size=(4, 3), mode='bicubic', antialias=True)
F.interpolate(R(1, 2, 3, 4), scale_factor=2, mode='bilinear')
F.interpolate(R(1, 2, 3, 4), size=(5, 3), mode='bilinear', align_corners=True)
F.interpolate(R(1, 2, 3, 4), scale_factor=1.7, mode='bilinear')
F.interpolate(R(1, 2, 3, 4), scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)
F.interpolate(R(1, 1, 2, 3, 4), size=(3, 3, 3), mode='trilinear')
F.interpolate(R(1, 2, 4, 4), size=(7, 3), mode='bicubic')
F.interpolate(R(1, 2, 4, 4), size=7, mode='bicubic', align_corners=True)
F.interpolate(R(1, 2, 6, 6), size=(3, 4), mode='bilinear', antialias=True)
F.interpolate(R(1, 2, 5, 5), size=(3, 2), mode='area')
F.upsample(R(1, 1, 2, 2), scale_factor=2), F.upsample_bilinear(R(1, 1, 2, 2), 3)
"""


@case(rtol=1e-5, atol=1e-5)
def shapes(torch):
    return group(SHAPES, torch, False)


ATTENTION = """
F.scaled_dot_product_attention(R(1, 2, 3, 4), R(1, 2, 3, 4), R(1, 2, 3, 4))
F.scaled_dot_product_attention(R(1, 2, 3, 4), R(1, 2, 3, 4), R(1, 2, 3, 4), is_causal=True)
F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 2), C(3, 5) > 0)
F.scaled_dot_product_attention(R(2, 3, 4), R(2, 5, 4), R(2, 5, 2), R(3, 5), scale=0.3)
F.scaled_dot_product_attention(R(3, 4), R(5, 4), R(5, 2))
F.scaled_dot_product_attention(R(2, 3, 4), R(2, 3, 4), R(2, 3, 4), dropout_p=0.4)
F.scaled_dot_product_attention(R(1, 4, 2, 2), R(1, 2, 2, 2), R(1, 2, 2, 2), enable_gqa=True)
F.scaled_dot_product_attention(R(1, 2, 2), R(1, 2, 2), R(1, 2, 2), torch.tensor([[True, False], [False, False]]))
"""


@case
def attention(torch):
    return group(ATTENTION, torch, False)
