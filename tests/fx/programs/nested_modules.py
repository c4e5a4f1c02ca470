"""Graphs within graphs, one for training and one for evaluation, and transforms."""

import copy

import torch
import torch.fx.traceback
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY, _copy_attr


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.linear = nn.Dropout(), nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(F.dropout(self.drop(x), 0.3, self.training))


class DualGraphModule(fx.GraphModule):
    def __init__(self, root, train_graph, eval_graph, class_name="GraphModule"):
        super(fx.GraphModule, self).__init__()
        self.__class__.__name__ = class_name
        self.train_graph = train_graph
        self.eval_graph = eval_graph
        for node in [*train_graph.nodes, *eval_graph.nodes]:
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)
        self.train()
        self.graph = train_graph
        self._tracer_cls = self.graph._tracer_cls

    def train(self, mode=True):
        if mode and not self.training:
            self.graph = self.train_graph
        elif not mode and self.training:
            self.graph = self.eval_graph
        return super().train(mode=mode)


net = Net()
graphs = [fx.Tracer().trace(net.train(mode)) for mode in (True, False)]
dual = DualGraphModule(net, *graphs, "Net")
for mode in (True, False):
    print(dual.train(mode).code)
print(type(dual).__name__)


class KeepTraced(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        traced = isinstance(m, fx.GraphModule)
        return traced or super().is_leaf_module(m, module_qualified_name)


traced = fx.symbolic_trace(net)
print(fx.symbolic_trace(nn.Sequential(traced, traced)).code)
tracer = KeepTraced()
graph = tracer.trace(nn.Sequential(traced, nn.ReLU()))
outer = fx.GraphModule(tracer.root, graph)
print(outer)
outer.print_readable()
traced.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = {"config": 3}
print(copy.deepcopy(traced).config)
sine = fx.symbolic_trace(lambda x: torch.sin(x) + 1)
print(torch.vmap(sine)(torch.zeros(3)))
print(torch.func.grad(lambda x: sine(x).sum())(torch.zeros(2)))
with fx.traceback.preserve_node_meta(), fx.traceback.annotate({"stage": 1}):
    nodes = fx.Tracer().trace(lambda x: x + 1).nodes
    print([node.meta.get("custom") for node in nodes])
