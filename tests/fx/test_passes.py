"""Interpreters, replacing of patterns, and passes."""

from __future__ import annotations

import copy
import importlib
import operator

from tests.oracle import attempt, case


def passes(torch, name):
    return importlib.import_module(f"{torch.__name__}.fx.{name}")


def model(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = torch.nn.Parameter(torch.rand(3, 4))
            self.linear = torch.nn.Linear(4, 5)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x, y):
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            w = self.drop(self.linear(y)).clamp(min=0.0, max=1.0)
            return z + w

    return Net().eval()


def traced_with_inputs(torch):
    net = model(torch)
    return net, torch.fx.symbolic_trace(net), (torch.rand(3, 4), torch.rand(3, 4))


# Interpreters -------------------------------------------------------------------------


@case
def interpreting(torch):
    net, traced, inputs = traced_with_inputs(torch)

    class Shown(torch.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            print(n.op, n.name, tuple(getattr(result, "shape", ())), len(self.env))
            return result

    yield torch.equal(Shown(traced).run(*inputs), net(*inputs))
    kept = torch.fx.Interpreter(traced, garbage_collect_values=False)
    kept.run(*inputs)
    yield [node.name for node in kept.env]
    nodes = {node.name: node for node in traced.graph.nodes}
    known = {nodes["clamp"]: torch.zeros(3, 5), nodes["clamp_1"]: torch.ones(3, 5)}
    yield torch.fx.Interpreter(traced).run(*inputs, initial_env=known)
    given = list(inputs)
    yield torch.equal(torch.fx.Interpreter(traced).boxed_run(given), net(*inputs))
    yield given, attempt(torch.fx.Interpreter(traced).boxed_run, [1])
    yield attempt(torch.fx.Interpreter(traced).boxed_run, [1, 2, 3])
    yield attempt(torch.fx.Interpreter(traced).run, inputs[0])
    yield attempt(torch.fx.Interpreter(traced).fetch_attr, "linear.nothing")
    looked_up = torch.fx.symbolic_trace(lambda d, k=1, *rest: (d[k], rest))
    yield torch.fx.Interpreter(looked_up).run({1: 2})
    yield torch.fx.Interpreter(looked_up).run({1: 2}, 1, 3, 4)
    yield attempt(torch.fx.Interpreter(looked_up).run, {}, 3)
    yield attempt(torch.fx.Interpreter(looked_up).run, [], 3)


@case
def transforming(torch):
    class Swapped(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                self_obj, *rest = args
                return self_obj.sigmoid(*rest, **kwargs)
            return super().call_method(target, args, kwargs)

    traced = torch.fx.symbolic_trace(lambda x, y=1: torch.sigmoid(x).neg() + y)
    made = Swapped(traced).transform()
    yield made.code, made(torch.ones(2)), type(made).__name__
    _, traced, inputs = traced_with_inputs(torch)
    for node in traced.graph.nodes:
        node.meta["mark"] = node.name
        node.meta["custom"] = {"of": node.name}
    made = torch.fx.Transformer(traced).transform()
    yield made.code, torch.equal(made(*inputs), traced(*inputs))
    for node in made.graph.nodes:
        yield node.name, node.meta.get("mark"), node.meta.get("custom")
        yield [source.name for source in node.meta.get("from_node", [])]
    nested = torch.fx.symbolic_trace(
        lambda x: {"a": x["k"] + 1}, concrete_args={"x": {"k": torch.fx.PH}}
    )
    yield torch.fx.Transformer(nested).transform().code
    yield torch.fx.Interpreter(nested).run({"k": 1})


# Patterns -----------------------------------------------------------------------------


def _both(torch, function, pattern, replacement):
    traced = torch.fx.symbolic_trace(function)
    found = torch.fx.replace_pattern(traced, pattern, replacement)
    traced.graph.lint()
    for match in found:
        names = {str(k): str(v) for k, v in match.nodes_map.items()}
        print(type(match).__name__, match.anchor.name, names)
    return traced.code


@case
def replacing(torch):
    add = torch.add

    def cats(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    yield _both(
        torch,
        cats,
        lambda w1, w2: torch.cat([w1, w2]),
        lambda w1, w2: torch.stack([w1, w2]),
    )
    yield _both(
        torch,
        lambda x: torch.neg(torch.neg(torch.neg(x))),
        lambda x: torch.neg(torch.neg(x)),
        lambda x: x,
    )
    yield _both(
        torch,
        lambda x, y: (add(x, y), add(y, x), add(x, 1), add(x, y, alpha=2)),
        lambda a, b: add(a, b),
        lambda a, b: a - b,
    )
    yield _both(
        torch,
        lambda x: torch.relu(x + 1) * (x + 1),
        lambda x: torch.relu(x + 1),
        lambda x: torch.relu6(x) if hasattr(torch, "relu6") else torch.tanh(x),
    )
    yield _both(  # what is between is used elsewhere
        torch,
        lambda x: (lambda y: y + torch.relu(y))(x.exp()),
        lambda x: torch.relu(x.exp()),
        lambda x: x,
    )
    yield _both(
        torch,
        lambda x, y: (x.chunk(2)[0] + y, x.chunk(2)[1]),
        lambda x: (x.chunk(2)[0], x.chunk(2)[1]),
        lambda x: (x, -x),
    )
    yield attempt(
        _both, torch, lambda x: x + 1, lambda x: x + 1, lambda x, y: torch.add(x, y)
    )
    yield attempt(_both, torch, lambda x: x, lambda x: (x + 1, x)[1], lambda x: x)


@case
def replacing_with_modules(torch):
    nn = torch.nn

    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x)

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.other = nn.Linear(2, 2)
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.other(x) * self.weight

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x + 1) * 2

    traced = torch.fx.symbolic_trace(Net())
    replacement = torch.fx.symbolic_trace(Replacement())
    yield len(torch.fx.replace_pattern(traced, Pattern(), replacement))
    yield traced.code, list(traced.state_dict()), traced(torch.ones(1, 2)).shape


@case
def replacing_where_filters_say(torch):
    rewriter = passes(torch, "subgraph_rewriter")

    def function(x):
        return x.mul(2).mul(3) + x.mul(4)

    def pattern(x):
        return x.mul(2)

    traced = torch.fx.symbolic_trace(function)
    found = rewriter.replace_pattern_with_filters(
        traced, pattern, lambda x: x + x, ignore_literals=True
    )
    yield traced.code, [[n.name for n in each.replacements] for each in found]
    traced = torch.fx.symbolic_trace(function)
    rewriter.replace_pattern_with_filters(
        traced,
        pattern,
        lambda x: x.exp(),
        [lambda match, graph, pattern_graph: match.anchors[0].op == "call_method"],
    )
    yield traced.code

    def callback(match, graph, pattern_graph):
        number = next(iter(match.returning_nodes)).args[1]
        return torch.fx.symbolic_trace(lambda x: x * (number * 10)).graph

    traced = torch.fx.symbolic_trace(function)
    rewriter.replace_pattern_with_filters(
        traced, pattern, ignore_literals=True, replacement_callback=callback
    )
    yield traced.code
    yield attempt(rewriter.replace_pattern_with_filters, traced, pattern)


# Passes -------------------------------------------------------------------------------


@case
def shapes(torch):
    _, traced, inputs = traced_with_inputs(torch)
    found = passes(torch, "passes.shape_prop")
    found.ShapeProp(traced).propagate(*inputs)
    for node in traced.graph.nodes:
        yield node.name, repr(node.meta["tensor_meta"]), node.meta["type"].__name__
    traced.print_readable()
    several = torch.fx.symbolic_trace(lambda x: (x.split(1), {"a": x.size(0)}))
    found.ShapeProp(several).propagate(
        torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)
    )
    yield repr(several.graph.output_node().meta["tensor_meta"])
    sizes = passes(torch, "passes.graph_manipulation")
    sizes.get_size_of_all_nodes(traced, list(inputs))
    yield [repr(getattr(node, "size_bytes", None)) for node in traced.graph.nodes]
    sizes.replace_target_nodes_with(
        traced, "call_function", operator.add, "call_function", torch.mul
    )
    yield traced.graph.find_nodes(op="call_function", target=torch.mul) != []
    tools = passes(torch, "passes.tools_common")
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op in tools.CALLABLE_NODE_OPS:
            yield (
                tools.get_node_target(modules, node),
                tools.is_node_output_tensor(node),
            )


OPTIONS = {
    "plain": {},
    "in their order": {"keep_original_order": True},
    "as tuples": {"tuple_return": True, "partition_affix": "pp"},
    "names": {"keep_original_node_name": True, "keep_original_input_name": False},
}


@case.over(*OPTIONS)
def splitting(torch, key):
    net, traced, inputs = traced_with_inputs(torch)
    split_module = passes(torch, "passes.split_module").split_module
    names = [n.name for n in traced.graph.nodes]
    qualified = {}

    def two(node):
        return int(names.index(node.name) > 5)

    split = split_module(traced, net, two, qualified, **OPTIONS[key])
    print(split)
    for name, child in split.named_children():
        print(name, child.code)
    yield qualified, sorted(split.meta["partition_names"])
    yield torch.equal(split(*inputs), net(*inputs))
    yield attempt(split_module, traced, net, lambda n: names.index(n.name) % 2)


@case
def splitting_by_tags(torch):
    net, traced, inputs = traced_with_inputs(torch)
    split_by_tags = passes(torch, "passes.split_utils").split_by_tags
    for i, node in enumerate(traced.graph.nodes):
        if node.op not in ("placeholder", "get_attr", "output"):
            node.tag = "left" if i < 6 else "right"
    split, names = split_by_tags(traced, ["left", "right"], return_fqn_mapping=True)
    yield split.code, split.left.code, split.right.code, names
    yield torch.equal(split(*inputs), net(*inputs))
    yield split_by_tags(traced, ["left", "right"], return_tuple=True).code
    yield attempt(split_by_tags, traced, ["right", "left"])


@case
def fusing_nodes(torch):
    net, traced, inputs = traced_with_inputs(torch)
    fuser = passes(torch, "passes.utils.fuser_utils")
    nodes = {node.name: node for node in traced.graph.nodes}
    yield fuser.validate_partition([nodes["linear"], nodes["clamp"]])
    yield fuser.validate_partition([nodes["add"], nodes["clamp"]])
    groups = [dict.fromkeys([nodes["linear"], nodes["clamp"]])]
    fused = fuser.fuse_by_partitions(traced, groups)
    yield fused.code, fused.fused_0.code, torch.equal(fused(*inputs), net(*inputs))
    compare = passes(torch, "passes.utils").compare_graphs
    yield compare(fused.graph, copy.deepcopy(fused).graph)
    yield compare(fused.graph, torch.fx.symbolic_trace(net).graph)
    yield attempt(compare, fused.graph, copy.deepcopy(fused.graph))
    tools = passes(torch, "passes.tools_common")
    linear = fused.graph.find_nodes(op="call_module")[0]
    fused.graph.output_node().append(linear)
    yield tools.legalize_graph(fused).code, fused.graph.lint()
    yield tools.stable_topological_sort(fused).code


@case
def passes_in_order(torch):
    base = passes(torch, "passes.infra.pass_base")
    managing = passes(torch, "passes.infra.pass_manager")

    class Renamed(base.PassBase):
        def requires(self, graph_module):
            print("requires")

        def call(self, graph_module):
            for node in graph_module.graph.find_nodes(op="call_method", target="clamp"):
                node.target = "clip"
                return base.PassResult(graph_module, True)
            return base.PassResult(graph_module, False)

        def ensures(self, graph_module):
            print("ensures")

    def nothing(gm):
        print("nothing")

    def failing(gm):
        raise ValueError("no")

    _, traced, _ = traced_with_inputs(torch)
    wrapped = managing.pass_result_wrapper(nothing)
    yield wrapped(traced).modified, wrapped.__name__
    renamed = Renamed()
    manager = managing.PassManager([renamed], steps=3)
    manager.add_checks(lambda gm: gm.graph.lint())
    result = manager(traced)
    yield result.modified, result.graph_module.code
    yield attempt(managing.PassManager([renamed, failing]), traced)
    yield attempt(managing.PassManager([nothing]), traced)
    first = managing.this_before_that_pass_constraint(wrapped, renamed)
    manager = managing.PassManager([renamed, wrapped], [first])
    yield type(attempt(manager.validate_constraints)).__name__
    manager.solve_constraints()
    yield manager.passes == [wrapped, renamed], manager.validate_constraints()
    manager.add_constraint(managing.this_before_that_pass_constraint(renamed, wrapped))
    yield type(attempt(manager.solve_constraints)).__name__
    yield attempt(manager.add_checks, lambda: None)


@case(warnings=False)
def faster_layers(torch):
    nn = torch.nn
    optimization = passes(torch, "experimental.optimization")
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout()]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(18, 3), nn.BatchNorm1d(3))
    net(torch.rand(4, 1, 5, 5))
    net.eval()
    x = torch.rand(2, 1, 5, 5)
    fused = optimization.fuse(net)
    print(fused)
    yield torch.allclose(fused(x), net(x), atol=1e-6)
    yield optimization.remove_dropout(net).code
    config = {"mkldnn_layout_optimize": False}
    yield optimization.optimize_for_inference(net, config).code
    nodes = list(fused.graph.nodes)
    yield optimization.extract_subgraph(fused, nodes[2:4], nodes[1:2], nodes[3:4]).code
    modules = dict(fused.named_modules())
    yield [
        optimization.matches_module_pattern((nn.Conv2d, nn.ReLU), node, modules)
        for node in nodes
    ]


@case
def arguments_by_signature(torch):
    net, traced, _ = traced_with_inputs(torch)
    node = traced.graph.find_nodes(op="call_module")[0]
    yield repr(node.normalized_arguments(net)).replace("ArgsKwargsPair", "")
    yield repr(node.normalized_arguments(net, normalize_to_only_use_kwargs=True))
    functional = torch.nn.functional
    traced = torch.fx.symbolic_trace(lambda x: functional.dropout(x, p=0.1))
    node = traced.graph.find_nodes(op="call_function", target=functional.dropout)[0]
    yield repr(node.normalized_arguments(net, normalize_to_only_use_kwargs=True))
    yield traced.graph.output_node().normalized_arguments(net)


@case
def one_product_for_several(torch):
    merging = passes(torch, "experimental.merge_matmul")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(3, 4))

        def forward(self, x, y, z):
            first = torch.matmul(x, self.w)
            again = torch.matmul(first, z)  # this one needs the first
            return first, torch.matmul(y, self.w), torch.matmul(x, z.t()), again

    net, given = Net(), (torch.rand(2, 3), torch.rand(5, 3), torch.rand(4, 3))
    merged = merging.merge_matmul(net)
    yield merged.code
    for one, other in zip(merged(*given), net(*given), strict=True):
        yield torch.allclose(one, other)
    nodes = list(merged.graph.nodes)
    yield merging.are_nodes_independent(nodes[:2]), merging.may_depend_on(*nodes[-2:])
    yield merging.may_depend_on(nodes[-1], nodes[0], search_depth=0)
