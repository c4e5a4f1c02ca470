"""Operators replaced by others, by nodes and by proxies."""

import operator

import torch
import torch.nn.functional as F
from torch import fx


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x, y):
        z = torch.add(x, y) + x.add(y)
        return F.relu(self.linear(z)) - torch.relu(z)


traced = fx.symbolic_trace(M())
patterns = {operator.add, torch.add, "add"}
for n in traced.graph.nodes:
    if n.target in patterns:
        with traced.graph.inserting_after(n):
            new_node = traced.graph.call_function(torch.bitwise_and, n.args, n.kwargs)
            n.replace_all_uses_with(new_node)
        traced.graph.erase_node(n)
traced.recompile()
print(traced.code)


def relu_decomposition(x):
    return (x > 0) * x


decomposition_rules = {F.relu: relu_decomposition, torch.relu: relu_decomposition}


def decompose(model, tracer_class=fx.Tracer):
    graph = tracer_class().trace(model)
    new_graph = fx.Graph()
    env = {}
    tracer = torch.fx.proxy.GraphAppendingTracer(new_graph)
    for node in graph.nodes:
        if node.op == "call_function" and node.target in decomposition_rules:
            proxy_args = [
                fx.Proxy(env[x.name], tracer) if isinstance(x, fx.Node) else x
                for x in node.args
            ]
            output_proxy = decomposition_rules[node.target](*proxy_args)
            env[node.name] = output_proxy.node
        else:
            env[node.name] = new_graph.node_copy(node, lambda x: env[x.name])
    return fx.GraphModule(model, new_graph)


model = M()
made = decompose(model)
print(made.code)
x, y = torch.randn(2, 3), torch.randn(2, 3)
torch.testing.assert_close(made(x, y), model(x, y))


def invert(model):
    """The inverse of a chain of functions."""
    inverse_ops = {torch.sin: torch.asin, torch.exp: torch.log, torch.tan: torch.atan}
    fx_model = fx.symbolic_trace(model)
    new_graph = fx.Graph()
    env = {}
    for node in reversed(fx_model.graph.nodes):
        if node.op == "call_function":
            new_node = new_graph.call_function(
                inverse_ops[node.target], (env[node.name],)
            )
            env[node.args[0].name] = new_node
        elif node.op == "output":
            new_node = new_graph.placeholder(node.name)
            env[node.args[0].name] = new_node
        elif node.op == "placeholder":
            new_graph.output(env[node.name])
    new_graph.lint()
    return fx.GraphModule(fx_model, new_graph)


f = invert(lambda x: torch.exp(torch.sin(torch.tan(x))))
print(f.code)
print(f.graph)


def inline_activation(gm):
    """Wraps what a module gives, with proxies."""
    for node in list(gm.graph.nodes):
        if node.op == "call_module":
            with gm.graph.inserting_before(node.next):
                proxy = fx.Proxy(node)
                new = torch.tanh(proxy) * 2
                node.replace_all_uses_with(new.node)
                new.node.args[0].args = (node,)
    gm.graph.lint()
    gm.recompile()
    return gm


print(inline_activation(fx.symbolic_trace(M())).code)
