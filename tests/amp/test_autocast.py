"""Autocast: which operators run in which dtype on the CPU, and its switches."""

from __future__ import annotations

import torchshim
from tests.oracle import attempt, case, evaluate
from torchshim import _autocast
from torchshim._core.op import REGISTRY


def kinds(value):
    """The dtypes of a result's tensors."""
    if isinstance(value, Exception):
        return value
    if isinstance(value, (tuple, list)):
        return [kinds(v) for v in value]
    return str(value.dtype)


LINES = """
x @ x.T
torch.mm(x, x.T)
torch.addmm(x, x, x)
torch.einsum("ij,kj->ik", x, x)
torch.tensordot(x, x, 1)
torch.chain_matmul(x, x, x)
torch.linalg.multi_dot([x, x, x])
torch.mv(x, x[0])
torch.dot(x[0], x[0])
torch.outer(x[0], x[0])
F.linear(x, x, x[0])
F.conv1d(x[None], torch.ones(2, 3, 1))
F.conv2d(x[None, None], torch.ones(1, 1, 2, 2), torch.ones(1))
F.conv_transpose2d(x[None, None], torch.ones(1, 1, 2, 2))
F.prelu(x, torch.ones(1))
F.scaled_dot_product_attention(x[None], x[None], x[None])
torch._native_multi_head_attention(*[x[None]] * 3, 3, 1, *layer)
torch._transformer_encoder_layer_fwd(x[None], 3, 1, *layer, False, False, 0.1, *rest)
torch._transformer_encoder_layer_fwd(x[None], 3, 1, *layer, True, True, 0.1, *rest)
F.softmax(x, 1)
F.log_softmax(x, 1)
F.layer_norm(x, (3,), torch.ones(3), torch.zeros(3))
F.group_norm(x[None], 3)
F.batch_norm(x, torch.zeros(3), torch.ones(3))
F.gelu(x)
F.relu(x)
F.dropout(x, 0.0)
F.embedding(torch.tensor([0, 1]), x)
F.interpolate(x[None, None], scale_factor=2.0)
F.pad(x[None, None], (1, 1, 1, 1), mode="reflect")
F.pad(x[None, None], (1, 1, 1, 1), mode="replicate")
F.pad(x[None, None], (1, 1, 1, 1), mode="circular")
F.pad(x, (1, 1))
F.avg_pool2d(x[None], 2)
F.max_pool3d(x[None, None], 1)
F.adaptive_avg_pool3d(x[None, None], 1)
F.mse_loss(x, y)
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.kl_div(x, y, reduction="sum")
F.cross_entropy(x, torch.tensor([0, 1, 2]))
F.cross_entropy(x, y)
F.cross_entropy(x, torch.tensor([0, 1, 2]), label_smoothing=0.1)
F.nll_loss(x, torch.tensor([0, 1, 2]))
F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
F.binary_cross_entropy_with_logits(x, y)
F.hinge_embedding_loss(x, y)
F.margin_ranking_loss(x, y, x)
F.cosine_embedding_loss(x, y, torch.ones(3))
F.triplet_margin_loss(x, y, x)
F.poisson_nll_loss(x, y)
F.soft_margin_loss(x, y)
F.multi_margin_loss(x, torch.tensor([0, 1, 2]))
F.multilabel_margin_loss(x, torch.tensor([[0, 1, -1]] * 3))
F.gaussian_nll_loss(x, y, torch.ones(3, 3))
F.cosine_similarity(x, y)
F.pairwise_distance(x, y)
torch.cdist(x, y)
torch.exp(x)
torch.pow(x, 2)
x**0.5
x + y.bfloat16()
x.sum()
x.mean(0)
x.prod()
x.cumsum(0)
x.norm()
torch.cat([x, x.bfloat16()])
torch.cat([x.bfloat16(), x.bfloat16()])
torch.stack([x, x.bfloat16()])
torch.quantile(x, 0.5)
torch.trace(x)
torch.polar(x, x)
torch.view_as_complex(torch.ones(3, 2))
torch.inverse(x + torch.eye(3))
torch.linalg.svdvals(x)
torch.linalg.vecdot(x, x)
torch.linalg.cond(x)
torch.pinverse(x)
torch.fft.fft(x)
torch.fft.rfft2(x)
torch.fft.hfft2(x)
torch.cov(x)
x.double() @ y.double()
torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)
torch.mm(x, x, out=torch.empty_like(x))
torch.ones(3, 3).addmm_(x, x)
torch.ones(3, 3).add_(x.bfloat16())
nn.GRU(3, 4)(x)[0]
nn.RNN(3, 4)(x)
nn.LSTMCell(3, 4)(x)
nn.GRUCell(3, 4)(x)
nn.RNNCell(3, 4)(x)
q = torch.ones(2, 1, 4); nn.MultiheadAttention(4, 2)(q, q, q)
"""


@case(warnings=False).over(half=[False, True])
def dtypes_of_results(torch, half):
    for line in LINES.strip().splitlines():
        x = torch.arange(1.0, 10.0).reshape(3, 3)
        y = torch.ones(3, 3)
        if half:
            x, y = x.bfloat16(), y.bfloat16()
        layer, rest = (x.repeat(3, 1), x.flatten(), x, x[0]), (*[x[0]] * 4, x, x[0])
        names = {"x": x, "y": y, "layer": layer, "rest": (*rest, x, x[0])}
        with torch.autocast("cpu"):
            yield line, kinds(attempt(evaluate, torch, line, **names))


@case
def float16(torch):
    with torch.autocast("cpu", dtype=torch.float16):
        x = torch.ones(2, 2)
        return kinds(
            [x @ x, torch.cat([x, x.half()]), torch.nn.functional.mse_loss(x, x)]
        )


@case(raises=AttributeError)
def widest_of_a_third_dtype(torch):
    with torch.autocast("cpu"):
        return attempt(torch.cat, [torch.ones(2).half(), torch.ones(2).bfloat16()])


@case
def training_step(torch):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.LayerNorm(8),
        torch.nn.Linear(8, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 32).reshape(2, 1, 4, 4)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            out = model(x)
            loss = torch.nn.functional.cross_entropy(out, torch.tensor([0, 2]))
        loss.backward()
        yield out.dtype, loss, [p.grad.dtype for p in model.parameters()]
        optimizer.step()
    yield [p.detach() for p in model.parameters()]


@case
def parameters_are_cast_once(torch):
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        first, second = (torch.mm(torch.ones(2, 2), w) for _ in range(2))
        a, b = (r.grad_fn.next_functions[1][0] for r in (first, second))
        yield a is b, a.name()
        with torch.no_grad():
            w.fill_(5.0)
        yield torch.mm(torch.ones(2, 2), w)
        torch.clear_autocast_cache()
        yield torch.mm(torch.ones(2, 2), w)
    with torch.autocast("cpu", cache_enabled=False):
        first, second = (torch.mm(torch.ones(2, 2), w) for _ in range(2))
        a, b = (r.grad_fn.next_functions[1][0] for r in (first, second))
        yield a is b
    (first + second).sum().backward()
    yield w.grad


@case
def gradients_meet_in_the_low_dtype(torch):
    # Both uses share one cast, so that their gradients are added in bfloat16.
    w = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu"):
        out = torch.full((1, 1), 256.0) @ w + torch.ones(1, 1) @ w
    out.sum().backward()
    return w.grad


@case
def nesting(torch):
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        yield torch.is_autocast_enabled("cpu"), (x @ x).dtype
        with torch.autocast("cpu", enabled=False):
            yield torch.is_autocast_enabled("cpu"), (x @ x).dtype
            with torch.autocast("cpu", dtype=torch.float16):
                yield torch.get_autocast_dtype("cpu"), (x @ x).dtype
        yield torch.get_autocast_dtype("cpu"), (x @ x).dtype
        yield attempt(torch.mm, x, torch.ones(3, 3))
    yield torch.is_autocast_enabled("cpu"), (x @ x).dtype


@case
def decorator(torch):
    @torch.autocast("cpu")
    def product(x):
        """What it does."""
        return x @ x

    yield product(torch.ones(2, 2)).dtype, product.__name__, product.__doc__
    yield attempt(torch.autocast("cpu"), 3)
    with attempt_block(torch) as error:
        with torch.autocast("cpu"):
            raise ValueError("inside")
    yield error, torch.is_autocast_enabled("cpu")


class attempt_block:
    def __init__(self, torch):
        self.seen = []

    def __enter__(self):
        return self.seen

    def __exit__(self, kind, error, traceback):
        self.seen.append(str(error))
        return True


@case.lines(
    """
    torch.autocast("foo")
    torch.autocast("meta")
    torch.autocast(3)
    torch.autocast("cpu", dtype=torch.float32)._enabled
    torch.autocast("cpu", dtype=torch.int32)._enabled
    torch.autocast("cpu", cache_enabled=False).__dict__
    torch.autocast("mps").__dict__
    torch.autocast("cpu:0").device
    torch.amp.autocast is torch.autocast
    torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta")
    torch.amp.is_autocast_available("foo")
    torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu")
    torch.is_autocast_enabled("meta")
    torch.is_autocast_enabled(3)
    torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
    torch.get_autocast_dtype("meta")
    torch.get_autocast_cpu_dtype()
    torch.get_autocast_gpu_dtype()
    torch.is_autocast_cpu_enabled()
    torch.set_autocast_enabled("cpu", 3)
    torch.set_autocast_enabled("cpu")
    torch.set_autocast_enabled()
    torch.set_autocast_dtype("cpu", 3)
    torch.set_autocast_dtype("cpu")
    torch.set_autocast_cache_enabled(3)
    torch.set_autocast_cpu_enabled(1)
    torch.is_autocast_cache_enabled()
    torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    torch.cpu.amp.autocast()._enabled
    torch.cpu.amp.autocast(True, torch.float16, False).__dict__
    torch.amp.custom_fwd(len)
    torch.amp.custom_fwd(len, device_type=3)
    torch.amp.custom_bwd(len, device_type=3)
"""
)
def questions(torch, line):
    return evaluate(torch, line)


@case
def switches(torch):
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    x = torch.ones(2, 2)
    yield (x @ x).dtype, torch.is_autocast_enabled("cpu")
    torch.set_autocast_cpu_dtype(torch.bfloat16)
    yield (x @ x).dtype
    torch.set_autocast_cpu_enabled(False)
    yield (x @ x).dtype


@case
def custom_functions(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            ctx.seen = x.dtype, torch.is_autocast_enabled("cpu")
            Product.seen = [ctx.seen]
            return x @ w

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            Product.seen.append((grad.dtype, torch.is_autocast_enabled("cpu")))
            return grad @ w.T, x.T @ grad

    class Plain(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x):
            Product.seen = [torch.is_autocast_enabled("cpu")]
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            Product.seen.append(torch.is_autocast_enabled("cpu"))
            return grad * 2

    for function, inputs in ((Product, 2), (Plain, 1)):
        args = [torch.ones(2, 2, requires_grad=True) for _ in range(inputs)]
        with torch.autocast("cpu"):
            out = function.apply(*(a.bfloat16() for a in args))
        out.sum().backward()
        yield out.dtype, args[0].grad, Product.seen
    out = Product.apply(*(torch.ones(2, 2).bfloat16() for _ in range(2)))
    yield out.dtype, Product.seen


@case
def threads_have_their_own(torch):
    import threading

    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(
            target=lambda: seen.append(torch.is_autocast_enabled("cpu"))
        )
        thread.start()
        thread.join()
    return seen


# What only torchshim has to keep ------------------------------------------------------


def test_the_lists_name_operators():
    names = {_autocast.torch_name(op) for op in REGISTRY.values()}
    names |= _autocast.FUNCTIONS
    names |= {f"fft_{name}" for name in torchshim.fft.__all__}
    names |= {f"{k}_pad{n}d" for k in ("reflection", "replication") for n in (1, 2, 3)}
    listed = {*_autocast.CPU_RULES, *_autocast.ACCELERATOR_RULES}
    # What is listed and not there must not be there under its public name either.
    for name in listed - names:
        space, _, short = name.partition("_")
        if space in _autocast._PREFIXED:
            assert not hasattr(getattr(torchshim, space), short), name
        else:
            functional = torchshim.nn.functional
            found = getattr(torchshim, name, getattr(functional, name, None))
            assert found is None, name


def test_steps_repeat_their_program():
    torch = torchshim
    model = torch.nn.Linear(3, 3)

    def step():
        with torch.autocast("cpu"):
            loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        return loss.item()

    step(), step()
    before = torch.explain()
    step()
    assert not torch.explain(before).programs


@case
def parameters_cast_without_grad_mode_first(torch):
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(3, 3), torch.ones(2, 3)
    first = (torch.no_grad, torch.inference_mode, torch.enable_grad)
    for mode in first:
        layer.zero_grad()
        with torch.autocast("cpu"):
            with mode():
                before = layer(x)
            after = layer(x)
            with torch.no_grad():
                between = layer(x)
            again = layer(x)
        yield before.requires_grad, after.requires_grad, between.requires_grad
        (after.sum() + again.sum()).backward()
        yield layer.weight.grad, layer.bias.grad
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        with torch.no_grad():
            torch.mm(w, w)
        first, second = (torch.mm(torch.ones(2, 2), w) for _ in range(2))
    a, b = (r.grad_fn.next_functions[1][0] for r in (first, second))
    yield a is b, a.name()
