"""Convolutions take batch norms over, by hand."""

import copy

import torch
from torch import nn
from torch.fx import GraphModule, symbolic_trace
from torch.nn.utils.fusion import fuse_conv_bn_weights

torch.manual_seed(0)


class WrappedBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.mod = nn.BatchNorm2d(1)

    def forward(self, x):
        return self.mod(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 1, 1)
        self.bn1 = nn.BatchNorm2d(1)
        self.conv2 = nn.Conv2d(1, 1, 1)
        self.nested = nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 1, 1))
        self.wrapped = WrappedBatchNorm()

    def forward(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.conv2(x)
        x = self.nested(x)
        return self.wrapped(x)


def fuse_conv_bn_eval(conv, bn):
    fused_conv = copy.deepcopy(conv)
    fused_conv.weight, fused_conv.bias = fuse_conv_bn_weights(
        fused_conv.weight,
        fused_conv.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
    )
    return fused_conv


def parent_name(target):
    *parent, name = target.rsplit(".", 1)
    return parent[0] if parent else "", name


def replace_node_module(node, modules, new_module):
    parent, name = parent_name(node.target)
    setattr(modules[parent], name, new_module)


def fuse(model):
    model = copy.deepcopy(model)
    fx_model = symbolic_trace(model)
    modules = dict(fx_model.named_modules())
    for node in fx_model.graph.nodes:
        if node.op != "call_module":
            continue
        if type(modules[node.target]) is nn.BatchNorm2d and (
            type(modules.get(node.args[0].target)) is nn.Conv2d
        ):
            if len(node.args[0].users) > 1:
                continue
            conv, bn = modules[node.args[0].target], modules[node.target]
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(conv, bn))
            node.replace_all_uses_with(node.args[0])
            fx_model.graph.erase_node(node)
    fx_model.graph.lint()
    fx_model.recompile()
    return fx_model


model = Model()
model(torch.rand(4, 1, 3, 3))
model.eval()
traced = symbolic_trace(model)
print(traced.graph)
fused = fuse(model)
print(fused.code)
print(isinstance(fused, GraphModule), type(fused).__name__)
inp = torch.randn(5, 1, 1, 1)
torch.testing.assert_close(fused(inp), model(inp))
print(sorted(set(model.state_dict()) - set(fused.state_dict())))
