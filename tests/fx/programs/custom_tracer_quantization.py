"""Observers put behind layers, and quantized layers in their place."""

import torch
from torch import fx, nn

torch.manual_seed(1)


class Observer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(float("-inf")))

    def forward(self, x):
        self.low = torch.minimum(self.low, x.detach().min())
        self.high = torch.maximum(self.high, x.detach().max())
        return x

    def scale(self):
        return torch.maximum(self.low.abs(), self.high.abs()) / 127


class QuantLinear(nn.Module):
    def __init__(self, linear, in_scale):
        super().__init__()
        self.w_scale = linear.weight.detach().abs().max() / 127
        weight = torch.round(linear.weight.detach() / self.w_scale)
        self.register_buffer("weight", weight.clamp(-128, 127).to(torch.int8))
        self.bias = linear.bias
        self.in_scale = in_scale

    def forward(self, x):
        q = torch.round(x / self.in_scale).clamp(-128, 127)
        out = q @ self.weight.to(x.dtype).t()
        return out * (self.in_scale * self.w_scale) + self.bias


class QuantTracer(fx.Tracer):
    """Leaves whole blocks, and what is an observer, as they are."""

    def __init__(self, skipped=()):
        super().__init__()
        self.skipped = skipped

    def is_leaf_module(self, m, module_qualified_name):
        return (
            isinstance(m, (Observer, QuantLinear))
            or module_qualified_name in self.skipped
            or super().is_leaf_module(m, module_qualified_name)
        )


class Quantizer:
    def __init__(self, model, skipped=()):
        tracer = QuantTracer(skipped)
        self.gm = fx.GraphModule(model, tracer.trace(model))
        self.observed = {}

    def prepare(self):
        modules = dict(self.gm.named_modules())
        for node in list(self.gm.graph.nodes):
            if node.op == "call_module" and isinstance(modules[node.target], nn.Linear):
                name = f"observer_{len(self.observed)}"
                self.gm.add_module(name, Observer())
                with self.gm.graph.inserting_before(node):
                    seen = self.gm.graph.call_module(name, node.args)
                node.args = (seen,)
                self.observed[node.target] = name
        self.gm.graph.lint()
        self.gm.recompile()
        return self.gm

    def convert(self):
        modules = dict(self.gm.named_modules())
        for node in list(self.gm.graph.nodes):
            if node.op == "call_module" and node.target in self.observed:
                observer = modules[self.observed[node.target]]
                made = QuantLinear(modules[node.target], observer.scale())
                self.gm.add_submodule(f"{node.target}_q".replace(".", "_"), made)
                seen = node.args[0]
                node.args = seen.args
                node.target = f"{node.target}_q".replace(".", "_")
                self.gm.graph.erase_node(seen)
        self.gm.delete_all_unused_submodules()
        self.gm.graph.lint()
        self.gm.recompile()
        return self.gm


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


net = Net().eval()
data = torch.randn(64, 8)
quantizer = Quantizer(net, skipped=("blocks.1",))
prepared = quantizer.prepare()
print(prepared.code)
torch.testing.assert_close(prepared(data), net(data))
converted = quantizer.convert()
print(converted.code)
print([name for name, _ in converted.named_modules()])
print((converted(data) - net(data)).abs().max().item() < 0.1)
