"""A model in stages, each run by itself; shapes known beforehand."""

import torch
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            for _ in range(2)
        )
        self.out = nn.Linear(8, 20)
        self.offset = nn.Parameter(torch.zeros(8))

    def forward(self, tokens):
        x = self.embed(tokens) + self.offset
        skip = x
        for layer in self.layers:
            x = layer(x)
        return self.out(x + skip)


net = Net().eval()
traced = fx.symbolic_trace(net)
tokens = torch.randint(20, (3, 5))
ShapeProp(traced).propagate(tokens)
for node in traced.graph.nodes:
    meta = node.meta["tensor_meta"]
    print(node.op, node.name, tuple(meta.shape), meta.dtype, meta.stride)

stage = 0


def by_stage(node):
    global stage
    if node.op == "call_module" and node.target.startswith("layers"):
        stage += 1
    return stage


split = split_module(traced, net, by_stage)
print(split)
for name, child in split.named_children():
    print(name, child.code)
torch.testing.assert_close(split(tokens), net(tokens))


class Stages(fx.Interpreter):
    def call_module(self, target, args, kwargs):
        out = super().call_module(target, args, kwargs)
        sizes = [tuple(o.shape) for o in (out if isinstance(out, tuple) else (out,))]
        print(target, len(args), sizes)
        return out


torch.testing.assert_close(Stages(split).run(tokens), net(tokens))
micro = torch.cat([split(piece) for piece in tokens.split(1)])
torch.testing.assert_close(micro, net(tokens))
split(tokens).sum().backward()
print(net.offset.grad is not None)
