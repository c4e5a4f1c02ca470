"""What tracing makes of functions and modules: the code, compared as text."""
# ruff: noqa: UP006, UP035, UP045

# (Annotations are read when functions are traced: no `from __future__` here.)
import collections
import dataclasses
import enum
import importlib
import inspect
import math
from typing import Any, Dict, List, Optional, Tuple

import torchshim
from tests.oracle import attempt, case, evaluate


def code(torch, function, *args):
    return torch.fx.symbolic_trace(function, *args).code


@case.lines(
    """
    lambda x: torch.ones(2) + x
    lambda x: torch.ones(2) * x - torch.ones(2) @ x
    lambda x: torch.ones(2).add(x)
    lambda x: torch.add(torch.ones(2), x, alpha=2)
    lambda x: torch.where(x > 0, x, 0.0)
    lambda x: torch.zeros(x.shape[0]) + x.size(0)
    lambda x: x.view(x.size(0), -1).new_zeros(3).to(torch.float64).T
    lambda x: 1 + x - 2 * x / 3 // x % 4**x @ x << 1 >> x & x | x ^ 1
    lambda x: (1 - x, 1 / x, 1 // x, 1 % x, 2**x, 1 @ x, 1 << x, 1 >> x, 1 & x, 1 | x)
    lambda x: (1 ^ x, -x, +x, ~x, abs(x), x == 1, x != 1, x < 1, x > 1, x <= 1, x >= 1)
    lambda x: (x[0], x[..., None], x[1:, ::2], x[[0, 1]], x[x > 0], x[1 : x.size(0)])
    lambda *x: x[0] + x[1]
    lambda **x: x["a"]
    lambda x, y=1, *a, k=2, **kw: (x, y, a, k, kw)
    lambda self, x: self + x
    lambda x: (x, [x, (x,)], {"a": x, "b": None})
    lambda x: 3
    lambda: 3
    lambda x: x.a.b(x.c, k=x.d)(x)
    lambda x: x.add_(1).relu_()
    lambda x: torch.einsum("ij,jk->ik", x, x) + torch.matmul(x, x) + x.matmul(x)
    lambda x: torch.softmax(x, dim=-1).max(dim=1)[0].mean([2, 3], keepdim=True)
    lambda x: (torch.einsum("ij,j", [x, x]), torch.ones(2) == x, torch.ones(2) ** x)
    lambda x: torch.split(x, 2) + torch.chunk(x, 2, 1) + torch.unbind(x)
    lambda x: (torch.hstack(x), torch.cat(x), torch.cat((x, x), dim=1), torch.stack(x))
    lambda x: (torch.fft.fft(x, dim=1), torch.linalg.inv(x), torch.special.erfcx(x))
    lambda x: (torch.linalg.norm(x, dim=1), torch.norm(x), torch.cdist(x, x))
    lambda x: (torch.clamp(x, min=0), torch.clamp(x, 0, max=6), x.clamp(0, 1))
    lambda x: (torch.topk(x, 3), torch.sum(x, (1, 2)), torch.sum(x, dim=1), x.sum())
    lambda x: (torch.flatten(x, 1), torch.flatten(x, start_dim=1), x.flatten(1))
    lambda x: (torch.transpose(x, 1, 2), torch.permute(x, (0, 1)), x.permute(1, 0))
    lambda x: (torch.reshape(x, (-1,)), torch.squeeze(x, 0), torch.unsqueeze(x, dim=0))
    lambda x: (torch.meshgrid(x, x, indexing="ij"), torch.gather(x, 1, x))
    lambda x: (torch.zeros_like(x), torch.full((2,), x), torch.arange(x))
    lambda x: (torch.mean(x, dim=-1, keepdim=True), torch.std(x, 1), torch.var(x, 0))
    lambda x: (torch.add(x, x, alpha=2), torch.addmm(x, x, x, beta=0.5), torch.mm(x, x))
    lambda x: (torch.max(x, x), torch.max(x, 1), torch.max(x), torch.argmax(x, dim=1))
    lambda x: (torch.unique(x), torch.unique(x, return_counts=True), torch.sort(x))
    lambda x: (torch._assert(x, "m"), torch.is_tensor(x), isinstance(x, torch.Tensor))
    lambda x: (F.relu(x), F.relu(x, True), F.relu(x, inplace=True), F.relu_(x))
    lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.hardswish(x))
    lambda x: (F.linear(x, x), F.linear(x, x, bias=None), F.bilinear(x, x, x))
    lambda x: (F.conv2d(x, x), F.conv2d(x, x, stride=2), F.conv_transpose2d(x, x))
    lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, (2, 2)), F.adaptive_avg_pool2d(x, 1))
    lambda x: (F.interpolate(x, scale_factor=2), F.pad(x, (1, 1)), F.dropout(x, 0.1))
    lambda x: (F.cross_entropy(x, x), F.softmax(x, 1), F.log_softmax(x, -1))
    lambda x: (F.batch_norm(x, x, x), F.layer_norm(x, (3,)), F.group_norm(x, 2))
    lambda x: (F.embedding(x, x), F.one_hot(x), F.normalize(x), F.mse_loss(x, x))
    lambda x: (F.hardtanh(x, 0, 6), F.relu6(x), F.leaky_relu(x, 0.1), F.elu(x))
    lambda x: (F.sigmoid(x), F.tanh(x), F.softplus(x), F.threshold(x, 1, 2), F.glu(x))
    lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)
    lambda x: (F.nll_loss(x, x), F.l1_loss(x, x), F.kl_div(x, x), F.huber_loss(x, x))
    lambda x: (F.unfold(x, 2), F.pixel_shuffle(x, 2), F.grid_sample(x, x), F.mish(x))
    lambda x: (F.cosine_similarity(x, x), F.pairwise_distance(x, x), F.prelu(x, x))
    """
)
def functions(torch, line):
    return code(torch, evaluate(torch, line))


@case.lines(
    """
    lambda x: x if x > 0 else -x
    lambda x: [i for i in x]
    lambda x: len(x)
    lambda x: print(*x)
    lambda x: not x
    lambda x: x and 3
    lambda x: 3 in x
    lambda x: int(x)
    lambda x: range(x)
    lambda x: object()
    lambda x: [x, {x: 1}]
    lambda x: x.__setitem__(0, 1)
    lambda x: x + torch.fx.Proxy(torch.fx.Graph().placeholder("y"))
    print
    3
    """
)
def refusals(torch, line):
    def message(error):
        return type(error).__name__, str(error).split(" object at ")[0]

    yield message(attempt(torch.fx.symbolic_trace, evaluate(torch, line)))


@case
def in_place_operators(torch):
    def function(x):
        x += 1
        x -= 2
        x *= 3
        x /= 4
        x //= 5
        x %= 6
        x **= 7
        x @= x
        x <<= 1
        x >>= 1
        x &= 1
        x |= 1
        x ^= 1
        return x

    yield code(torch, function)


@case
def item_assignment(torch):
    def function(x):
        x[0] = 1
        return x

    yield attempt(torch.fx.symbolic_trace, function)


@case
def unpacking(torch):
    def function(x):
        a, b = x
        (c, d), e = b, a
        return a + b + c + d + e

    yield code(torch, function)


@case
def annotations(torch):
    def function(
        x: torch.Tensor,
        y: List[torch.Tensor],
        z: Optional[int] = None,
        w: Dict[str, int] = {},  # noqa: B006
        v: "int" = 3,
        u: int | None = None,
        t: list[int] = [],  # noqa: B006
        s: Tuple[int, ...] = (),
        r: Any = None,
    ) -> Tuple[torch.Tensor, int]:
        return x + y[0], z

    traced = torch.fx.symbolic_trace(function)
    yield traced.code, str(traced.graph)
    yield list(inspect.signature(traced.forward).parameters)


class Colour(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Both:
    a: Any
    b: int = 3


@case
def values_as_arguments(torch):
    def function(x):
        y = torch.ops.aten.add.Tensor(x, 1)
        x.f(Colour.RED, Pair(1, 2), [x, {"k": x, 3: 4}], slice(1, x), torch.float32)
        x.g(torch.device("cpu"), math.inf, float("nan"), None, ..., 1j, "s'", range(3))
        x.h(Pair(x, 2), torch.Size([1, 2]), torch.strided, torch.channels_last, True)
        return y, Both(y, 2)

    yield code(torch, function)


@case
def constants(torch):
    weight = torch.ones(2)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Module()
            self.inner.kept = torch.zeros(2)
            self.register_buffer("buffer", torch.ones(2))
            self.parameter = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            x = x + self.inner.kept + self.buffer + weight + weight + torch.ones(2)
            return x * self.parameter * self.parameter

    net = Net()
    traced = torch.fx.symbolic_trace(net)
    yield traced.code, list(traced.state_dict()), list(net.state_dict())
    yield traced(torch.ones(2))
    yield code(torch, lambda x: x + weight)
    other = torch.nn.Parameter(torch.ones(2))
    yield attempt(torch.fx.symbolic_trace, lambda x: x + other)


@case
def modules(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.norm = nn.LayerNorm(size)
            self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
            self.act = nn.GELU()

        def forward(self, x, scale=1.0):
            for layer in self.layers:
                x = self.act(layer(self.norm(x)))
            return x * scale

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(4), Block(4))
            self.by_name = nn.ModuleDict({"a.b".replace(".", "_"): nn.Identity()})
            self.head = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.by_name["a_b"](self.blocks(x))
            return self.head(x), self.head(x), self.head.weight.shape[0]

    net = Net()
    traced = torch.fx.symbolic_trace(net)
    print(traced)
    print(traced.graph)
    traced.print_readable()
    yield torch.equal(traced(torch.ones(3, 4))[0], net(torch.ones(3, 4))[0])
    for node in traced.graph.nodes:
        stack = node.meta.get("nn_module_stack", {})
        yield node.name, [(k, v[0], v[1].__name__) for k, v in stack.items()]
    yield code(torch, nn.Sequential(Block(4), nn.Linear(4, 2)))
    yield code(torch, nn.Linear(2, 2))


@case
def concrete_arguments(torch):
    fx = torch.fx

    def function(a, b, c=None):
        return a if b else a * 2

    def sums(x):
        out = 0
        for value in x.values():
            out += value
        return out

    def nested(x, y):
        return {"a": x[0] + y, "b": (x[1]["k"], [y])}

    yield code(torch, function, {"b": False})
    yield code(torch, function, {"b": False, "c": None})
    yield code(torch, function, {"b": True, "c": 3.5})
    yield code(torch, function, (fx.PH, True, None))
    yield attempt(fx.symbolic_trace, function, (fx.PH, True))
    traced = fx.symbolic_trace(sums, {"x": {"a": fx.PH, "b": fx.PH}})
    yield traced.code, traced({"a": 1, "b": 2}), attempt(traced, {"a": 1})
    traced = fx.symbolic_trace(nested, {"x": (fx.PH, {"k": fx.PH})})
    yield traced.code, traced((1, {"k": 2}), 3), repr(fx.PH)
    yield attempt(code, torch, lambda *args: args[0], (fx.PH, fx.PH))

    class Variadic(torch.nn.Module):
        def forward(self, *args):
            return args[0] + args[1]

    yield code(torch, Variadic(), (fx.PH, fx.PH))
    checked = fx.symbolic_trace(function, {"b": True, "c": None})
    yield attempt(checked, 1, False, None), attempt(checked, 1, True, 3)


@case
def tracers(torch):
    fx, nn = torch.fx, torch.nn

    class Deep(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    class Marked(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            with_name = self.path_of_module(m)
            result = super().call_module(m, forward, args, kwargs)
            result.node.meta["path"] = with_name
            return result

        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            node = super().create_node(kind, target, args, kwargs, name, type_expr)
            node.meta["kind"] = kind
            return node

    class Known(fx.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1], obj[2]])

        def keys(self, obj):
            return ["a", "b"]

    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    print(Deep().trace(nn.Linear(2, 3)))
    for node in Marked().trace(net).nodes:
        yield node.name, node.meta["kind"], node.meta.get("path")

    def function(x):
        if x > 0:
            return [i + 1 for i in x], dict(**x)
        return x

    tracer = Known()
    graph = tracer.trace(function)
    yield fx.GraphModule(tracer.root, graph).code
    yield attempt(fx.Tracer().path_of_module, net), attempt(tracer.path_of_module, net)

    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 3))
            self.register_buffer("mean", torch.ones(3))

        def forward(self, x):
            assert self.weight.shape[0] == 2 and self.weight.dim() == 2
            return x @ self.weight - self.mean.sum()

    constant, weighted = fx.Tracer(param_shapes_constant=True), Weighted()
    print(constant.trace(weighted))
    plain = fx.Tracer()
    plain.proxy_buffer_attributes = True
    yield attempt(plain.trace, weighted)
    constant.proxy_buffer_attributes = True
    yield attempt(constant.trace, weighted)


def helper(x):
    return math.sqrt(x) + math.floor(x)


def doubled(x):
    return x * 2


@case
def wrapped_functions(torch):
    yield code(torch, lambda x: helper(x) + math.sin(x) + math.pi)
    tracer = torch.fx.Tracer(autowrap_functions=(doubled,))
    print(tracer.trace(lambda x: doubled(x) + doubled(3)))
    print(torch.fx.symbolic_trace(lambda x: doubled(x)).graph)
    yield doubled.__name__, math.sqrt(4), attempt(torch.fx.wrap, "doubled")
    names = {"__name__": "program", "wrap": torch.fx.wrap}
    exec("wrap('nowhere')", names)
    yield attempt(torch.fx.symbolic_trace, lambda x: x)
    del torch.fx._symbolic_trace._wrapped_fns_to_patch[id(names), "nowhere"]


@case
def within_a_trace(torch):
    fx = torch.fx

    def flags():
        return torch.fx._symbolic_trace.is_fx_symbolic_tracing()

    seen = []

    def function(x):
        seen.append(flags())
        return x + 1

    fx.symbolic_trace(function)
    yield seen, flags()

    class Vector(metaclass=fx.ProxyableClassMeta):
        def __init__(self, a, b):
            self.a, self.b = a, b

    def uses(x):
        pair = Vector(x, 3)
        return pair.a + Vector(1, 2).b

    traced = fx.symbolic_trace(uses)
    yield traced.code, traced(4)
    annotated = fx.symbolic_trace(
        lambda x: (
            torch.fx.annotate.annotate(x + 1, torch.Tensor)
            if hasattr(torch.fx, "annotate")
            else x
        )
    )
    yield len(annotated.graph.nodes) > 1


@case
def recorded_stacks(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            y = torch.relu(x)
            return y + 1

    tracer = torch.fx.Tracer()
    tracer.record_stack_traces = True
    for node in tracer.trace(Net()).nodes:
        lines = (node.stack_trace or "").split("\n")[:2]
        yield node.name, [line.rpartition("/")[2] for line in lines]


@case.lines(
    """
    nn.Conv2d(1, 1, 1)
    nn.Conv1d(1, 1, 1, padding_mode="circular", padding=1)
    nn.BatchNorm2d(2)
    nn.BatchNorm1d(2).eval()
    nn.LayerNorm(2)
    nn.RMSNorm(2)
    nn.Embedding(2, 2)
    nn.Flatten()
    nn.GELU()
    nn.Dropout(0.1)
    nn.MaxPool2d(2)
    nn.CrossEntropyLoss()
    nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Sigmoid())
    nn.Bilinear(2, 2, 2)
    """
)
def into_layers(torch, line):
    class Twice(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x, y):
            return self.layer(self.layer(x), y)

    class Deep(torch.fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    layer = evaluate(torch, line)
    tracer = Deep()
    yield torch.fx.GraphModule(layer, tracer.trace(layer)).code
    if "Bilinear" in line:
        twice = Twice(layer)
        yield torch.fx.GraphModule(twice, tracer.trace(twice)).code


@case
def what_looks_at_its_condition(torch):
    def chosen(x):
        return torch.cond(x[0] == 0, torch.sin, torch.neg, (x,))

    def repeated(x):
        return torch.while_loop(lambda x: x < 3, lambda x: x + 1, (x,))

    yield attempt(torch.fx.symbolic_trace, chosen)
    yield type(attempt(torch.fx.symbolic_trace, repeated))


@case(warnings=False)
def scripted_modules(torch):
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.jit.script(torch.nn.Sequential(torch.nn.Tanh()))

        def forward(self, x):
            return self.inner(x) + 1

    traced = torch.fx.symbolic_trace(Outer())
    yield traced(torch.ones(2))


@case
def assertions_become_calls(torch):
    def checked(x, y: int = 3, *, z=4):
        assert x.sum() > 0, """not
positive"""
        assert x.mean()
        w: int = x + y + z
        return w

    tracer = rewriter(torch).RewritingTracer()
    # PyTorch finds what rewritten code calls among the function's own names.
    names = {"torch": torch, "annotate": annotation(torch).annotate}
    globals().update(names)
    try:
        graph = tracer.trace(checked)
    finally:
        for name in names:
            del globals()[name]
    yield [(node.name, node.type) for node in graph.nodes]
    made = torch.fx.GraphModule(torch.nn.Module(), graph)
    yield made.code, made(torch.ones(2))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.ones(2))
            self.layer = torch.nn.ReLU()

        def forward(self, x, size: int):
            return self.layer(x + self.bias)

    graph = tracer.trace(Net())
    yield torch.fx.GraphModule(tracer.root, graph, "made").code


def rewriter(torch):
    return importlib.import_module(f"{torch.__name__}.fx.experimental.rewriter")


def annotation(torch):
    return importlib.import_module(f"{torch.__name__}.fx.annotate")


def test_rewritten_functions_keep_what_they_close_over():
    amount = 5

    def function(x):
        assert x.sum() > 0
        return x + amount

    tracer = rewriter(torchshim).RewritingTracer()
    made = torchshim.fx.GraphModule(torchshim.nn.Module(), tracer.trace(function))
    assert made(torchshim.ones(2)).tolist() == [6, 6]
    assert "torch._assert(gt, '')" in made.code
