"""`GraphModule`: what it is made of, its copies, and errors within it."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import linecache
import pickle
import sys
import tempfile
from pathlib import Path

import torchshim
from tests.oracle import attempt, case


def two_layers(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(3, 4)
            self.unused = torch.nn.Linear(1, 1)
            self.last = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))
            self.scale = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.last(self.first(x)) * self.scale

    return Net()


@case
def of_a_dict(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    weight, buffer = graph.get_attr("a.b.w"), graph.get_attr("a.buf")
    graph.output((graph.call_module("a.m", (x,)), weight, buffer))
    members = {
        "a.b.w": torch.nn.Parameter(torch.ones(1)),
        "a.buf": torch.zeros(2),
        "a.m": torch.nn.Linear(2, 2),
    }
    made = torch.fx.GraphModule(members, graph, "Made")
    print(made)
    yield list(made.state_dict()), made._get_name(), type(made).__name__, repr(made)
    yield made.add_submodule("z.y", torch.nn.ReLU()), made.delete_submodule("none")
    yield made.add_submodule("a.b.w.q", torch.nn.ReLU()), made.delete_submodule("a.buf")
    yield [name for name, _ in made.named_modules()]
    made.delete_all_unused_submodules()
    yield [name for name, _ in made.named_modules()]
    del members["a.m"]
    yield attempt(torch.fx.GraphModule, members, graph)
    yield attempt(torch.fx.GraphModule, 3, graph)
    yield attempt(setattr, made, "graph", 3)
    made.graph.find_nodes(op="call_module")[0].target = "a.nothing"
    yield attempt(made.graph.lint)
    made.graph.find_nodes(op="call_module")[0].target = "a.buf"
    yield attempt(made.graph.lint)


@case
def copies(torch):
    net = two_layers(torch)
    traced = torch.fx.symbolic_trace(net)
    x = torch.ones(2, 3)
    traced.meta["fact"] = 1
    deep, shallow = copy.deepcopy(traced), copy.copy(traced)
    pickled = pickle.loads(pickle.dumps(traced))
    saved = io.BytesIO()
    torch.save(traced, saved)
    saved.seek(0)
    loaded = torch.load(saved, weights_only=False)
    for made in (deep, shallow, pickled, loaded):
        yield type(made).__name__, made.code, list(made.state_dict()), made.meta
        yield torch.equal(made(x), net(x)), made.first is traced.first
        yield str(made.graph) == str(traced.graph), made.training
    with torch.no_grad():
        deep.scale.zero_()
    yield net.scale, deep.scale, type(deep) is type(traced)
    traced.load_state_dict(deep.state_dict())
    yield net.scale, hasattr(traced, "unused")


@case
def training(torch):
    net = two_layers(torch)
    traced = torch.fx.symbolic_trace(copy.deepcopy(net))
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    for model in (net, traced):
        parameters = [p for n, p in model.named_parameters() if "unused" not in n]
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        yield loss.detach(), model.scale
    yield traced.eval().training, traced.first.training


@case
def changed_graphs(torch):
    traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    node = traced.graph.find_nodes(op="call_function", target=torch.relu)[0]
    node.target = torch.neg
    yield traced(torch.tensor(2.0))
    yield traced.recompile().src, traced(torch.tensor(2.0))
    traced.graph = torch.fx.symbolic_trace(lambda x: x * 3).graph
    yield traced.code, traced(2)

    class Doubling(torch.fx.GraphModule):
        def __call__(self, *args):
            return 2 * super().__call__(*args)

    doubling = Doubling({}, traced.graph)
    yield doubling(2), type(doubling).__mro__[1] is Doubling
    yield isinstance(copy.deepcopy(doubling), Doubling), copy.deepcopy(doubling)(2)


@case
def hooks(torch):
    traced = torch.fx.symbolic_trace(two_layers(torch))
    traced.first.register_forward_hook(lambda m, args, out: out * 0)
    seen = []
    traced.register_forward_pre_hook(lambda m, args: seen.append(len(args)))
    yield traced(torch.ones(1, 3)).shape, seen
    told = []
    with traced._set_replace_hook(
        lambda old, new, user: told.append((old.name, new, user.name))
    ):
        nodes = {node.name: node for node in traced.graph.nodes}
        nodes["first"].replace_all_uses_with(nodes["x"])
        nodes["x"].name = "renamed"
    yield told
    made = []
    traced._register_create_node_hook(lambda node: made.append(node.name))
    traced._register_erase_node_hook(lambda node: made.append(f"-{node.name}"))
    traced.graph.erase_node(traced.graph.call_method("exp", (nodes["x"],)))
    yield made


@case
def errors_within(torch):
    traced = torch.fx.symbolic_trace(lambda x, y: torch.matmul(x + 1, y).sum())
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        yield attempt(traced, torch.ones(2, 3), torch.ones(2, 3))
    text = said.getvalue()
    yield text[text.index("Call using") :] if "Call using" in text else text
    yield attempt(traced, torch.ones(1))


@case
def readable(torch):
    traced = torch.fx.symbolic_trace(two_layers(torch))
    traced.add_submodule("inner", torch.fx.symbolic_trace(lambda x: x + 1))
    for node in traced.graph.nodes:
        node.meta["val"] = torch.ones(2, 3)
        node.meta["custom"] = {"stage": 1}
    traced.print_readable()
    yield traced.print_readable(False, True, True, True)
    yield traced.print_readable(False, expanded_def=True, additional_meta=["custom"])


@case(warnings=False)
def folders(torch):
    net = two_layers(torch)
    traced = torch.fx.symbolic_trace(net)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        traced.to_folder(made, "Net")
        yield (made / "module.py").read_text().replace(folder, "FOLDER")
        yield sorted(path.name for path in made.iterdir())
    assert "made" not in sys.modules


def test_sources_are_kept_as_long_as_their_code():
    def function(x):
        return x + 1

    traced = torchshim.fx.symbolic_trace(function)
    kept = set()
    for _ in range(3):
        traced.recompile()
        gc.collect()
        file = traced.forward.__code__.co_filename
        assert "add = x + 1" in "".join(linecache.getlines(file))
        assert kept.isdisjoint(linecache.cache)
        kept.add(file)


def test_modules_are_unpickled_apart():
    traced = torchshim.fx.symbolic_trace(lambda x: x + 1)
    again = pickle.loads(pickle.dumps(traced))
    assert again(1) == 2
    # Another thread may be unpickling one, too: what both are made of stays as it was.
    assert "forward" not in vars(torchshim.fx.graph_module._CodeOnlyModule)


@case
def a_replica_computes_the_same(torch):
    traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    replica = traced._replicate_for_data_parallel()
    yield replica(torch.tensor([-1.0, 2.0])), replica.code == traced.code
