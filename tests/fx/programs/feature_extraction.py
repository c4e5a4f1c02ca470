"""What is computed in between, by the names of modules (as torchvision has it)."""

import re
from collections import OrderedDict
from copy import deepcopy

import torch
from torch import fx, nn


class LeafModuleAwareTracer(fx.Tracer):
    def __init__(self, *args, **kwargs):
        self.leaf_modules = {}
        if "leaf_modules" in kwargs:
            self.leaf_modules = kwargs.pop("leaf_modules")
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m, module_qualname):
        if isinstance(m, tuple(self.leaf_modules)):
            return True
        return super().is_leaf_module(m, module_qualname)


class NodePathTracer(LeafModuleAwareTracer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.current_module_qualname = ""
        self.node_to_qualname = OrderedDict()

    def call_module(self, m, forward, args, kwargs):
        old_qualname = self.current_module_qualname
        try:
            module_qualname = self.path_of_module(m)
            self.current_module_qualname = module_qualname
            if not self.is_leaf_module(m, module_qualname):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", module_qualname, args, kwargs)
        finally:
            self.current_module_qualname = old_qualname

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        self.node_to_qualname[proxy.node] = self._get_node_qualname(
            self.current_module_qualname, proxy.node
        )
        return proxy

    def _get_node_qualname(self, module_qualname, node):
        node_qualname = module_qualname
        if node.op != "call_module":
            if len(node_qualname) > 0:
                node_qualname += "."
            node_qualname += str(node)
        if re.match(r".+_[0-9]+$", node_qualname) is not None:
            node_qualname = node_qualname.rsplit("_", 1)[0]
        for existing_qualname in reversed(self.node_to_qualname.values()):
            if re.match(rf"{node_qualname}(_[0-9]+)?$", existing_qualname) is not None:
                postfix = existing_qualname.replace(node_qualname, "")
                number = int(postfix[1:]) + 1 if len(postfix) else 1
                node_qualname += f"_{number}"
                break
        return node_qualname


def create_feature_extractor(model, return_nodes):
    tracer = NodePathTracer()
    graph = tracer.trace(deepcopy(model))
    name = model.__class__.__name__
    graph_module = fx.GraphModule(tracer.root, graph, name)
    available = list(tracer.node_to_qualname.values())
    for query in return_nodes:
        if not any(re.match(rf"^{query}(\.|$)", n) is not None for n in available):
            raise ValueError(f"node: '{query}' is not present in model")
    orig_output_nodes = [n for n in graph_module.graph.nodes if n.op == "output"]
    assert len(orig_output_nodes) == 1
    graph_module.graph.erase_node(orig_output_nodes[0])
    nodes = list(graph_module.graph.nodes)
    output_nodes = OrderedDict()
    remaining = dict(return_nodes)
    for n in reversed(nodes):
        qualname = tracer.node_to_qualname.get(n)
        if qualname is None:
            continue
        for query in list(remaining):
            depth = query.count(".")
            if query == ".".join(qualname.split(".")[: depth + 1]):
                output_nodes[remaining.pop(query)] = n
                break
    output_nodes = OrderedDict(reversed(list(output_nodes.items())))
    with graph_module.graph.inserting_after(nodes[-1]):
        graph_module.graph.output(dict(output_nodes))
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return fx.GraphModule(graph_module, graph_module.graph, name), available


class Residual(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(size)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.relu(self.bn(self.conv(x)))
        out += identity
        return self.relu(out)


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.layer1 = nn.Sequential(Residual(4), Residual(4))
        self.layer2 = nn.Sequential(Residual(4))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(4, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.pool(x), 1))


torch.manual_seed(0)
net = SmallNet().eval()
extractor, names = create_feature_extractor(
    net, {"layer1": "a", "layer2.0.add": "b", "flatten": "c"}
)
print(names)
print(extractor)
x = torch.randn(1, 3, 8, 8)
for key, value in extractor(x).items():
    print(key, tuple(value.shape))
print([name for name, _ in extractor.named_parameters()])
loss = extractor(x)["c"].sum()
loss.backward()
print(extractor.stem.weight.grad is not None)
try:
    create_feature_extractor(net, {"layer9": "a"})
except ValueError as error:
    print(error)
