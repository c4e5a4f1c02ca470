"""Parts of graphs: what a backend takes, what is constant, what came of one call."""

from __future__ import annotations

import importlib
import operator

from tests.oracle import attempt, case


def fx(torch, name):
    return importlib.import_module(f"{torch.__name__}.fx.{name}")


def shown(module):
    return [(n.op, n.name, [str(a) for a in n.args]) for n in module.graph.nodes]


# Constants ----------------------------------------------------------------------------


def folded(torch, module, *inputs, **options):
    made = fx(torch, "experimental.const_fold").split_const_subgraphs(module, **options)
    yield shown(made), made.has_folding_been_run, made.fx_const_folded_attrs_name
    inner = made.const_subgraph_module
    yield inner and shown(inner)
    yield made(*inputs), module(*inputs), made.has_folding_been_run
    yield sorted(name for name, _ in made.named_parameters())
    yield attempt(made.run_folding)
    yield made(*inputs)


@case
def constants_computed_once(torch):
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([[2.0, 3.0]]))
            self.v = torch.nn.Parameter(torch.tensor([5.0]), requires_grad=False)
            self.lin = torch.nn.Linear(2, 2)

        def forward(self, x, y):
            a = self.w + self.w
            x = x - a
            return self.lin(x) + torch.sigmoid(self.v * 2) + y

    inputs = torch.ones(1, 2), torch.full((1, 2), 2.0)
    yield from folded(torch, Net(), *inputs)
    yield from folded(torch, torch.fx.symbolic_trace(Net()), *inputs)
    skip = {"skip_folding_node_fn": lambda n: n.target is torch.sigmoid}
    yield from folded(torch, Net(), *inputs, **skip)


@case
def one_constant_and_modules_of_constants(torch):
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Module()
            self.inner.w = torch.nn.Parameter(torch.tensor([[2.0, 3.0]]))
            self.inner.lin = torch.nn.Linear(2, 2)

        def forward(self, x):
            return x * self.inner.lin(self.inner.w)

    yield from folded(torch, Net(), torch.ones(3, 2))

    class Only(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([[2.0, 3.0]]))

        def forward(self):
            return self.w * 2

    yield from folded(torch, Only())


@case
def nothing_constant(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.split(x + self.w, 1)[0]

    yield from folded(torch, Net(), torch.ones(2))


@case
def two_results_used(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.arange(4.0))

        def forward(self, x):
            a, b = torch.chunk(self.w, 2)
            return x + a, x * b

    yield from folded(torch, Net(), torch.ones(2))


@case
def names_of_attributes(torch):
    unique = fx(torch, "experimental.const_fold").get_unique_attr_name_in_module
    module = torch.fx.symbolic_trace(lambda x: x)
    module.a, module.a_1, module.b_7 = 1, 2, 3
    for name in ("a", "b_7", "c", "1x", "a.b-c", "_"):
        yield unique(module, name)


# Common parts -------------------------------------------------------------------------


@case
def computed_once(torch):
    cse = fx(torch, "passes.dialect.common.cse_pass")
    aten = torch.ops.aten

    def twice(x):
        a, b = aten.sin(x), aten.sin(x)
        return aten.cat([a, b, aten.sin(b)]) + aten.cat([a, b, aten.sin(a)])

    def drawn(x):
        return aten.rand_like(x) + aten.rand_like(x)

    def once(x):
        return x + 1, x + 2, x + True

    for fn in (twice, drawn, once, lambda x, y: (x + y, y + x, x + y)):
        traced = torch.fx.symbolic_trace(fn)
        for banned in (None, cse.get_CSE_banned_ops()):
            result = cse.CSEPass(banned)(traced)
            yield result.modified, shown(result.graph_module)
            yield result.graph_module is traced
    yield aten.rand in cse.get_CSE_banned_ops(), aten.rand in cse.rand_ops
    yield aten.add_ in cse.inplace_ops


# What a backend takes -----------------------------------------------------------------


def supported(torch, *names):
    support = fx(torch, "passes.operator_support")
    return support.OperatorSupport(dict.fromkeys(names))


ADD = "_operator.add"


def partitions(torch, fn, support, **options):
    partitioner = fx(torch, "passes.infra.partitioner").CapabilityBasedPartitioner
    traced = torch.fx.symbolic_trace(fn)
    made = partitioner(traced, support, **options)
    found = made.propose_partitions()
    yield [[n.name for n in p.nodes] for p in found], [p.size() for p in found]
    fused = made.fuse_partitions(found)
    yield shown(fused)
    inputs = [torch.full((2,), 3.0), torch.full((2,), 2.0)][: fn.__code__.co_argcount]
    yield attempt(fused, *inputs), fn(*inputs)


def diamond(a, b):
    c = a + b
    d = c.relu()
    e = c + d
    f = e + a
    return f + b, d


def cycle(a, b):
    c = a + 1
    d = c * b
    e = c + 2
    return e + d


def apart(a, b):
    c = a + 1
    d = b + 1
    return c.relu(), (d + 3) * c, d


def items(a):
    parts = a.split(1)
    return parts[0] + parts[1], parts[0] + 1


@case
def proposed_partitions(torch):
    add = supported(torch, ADD)
    both = supported(torch, ADD, "relu")
    split = supported(torch, ADD, "split")
    alone = {"allows_single_node_partition": True}
    for fn in (diamond, cycle, apart, items):
        for support in (add, both, split):
            yield from partitions(torch, fn, support)
            yield from partitions(torch, fn, support, **alone)
            yield from partitions(torch, fn, support, skip_horizontal_fusion=True)
    yield from partitions(torch, diamond, add, non_compute_ops=[ADD])
    only = {"allowed_single_node_partition_ops": [ADD]}
    yield from partitions(torch, apart, add, **only)


@case
def edges_of_partitions(torch):
    partitioner = fx(torch, "passes.infra.partitioner").CapabilityBasedPartitioner

    def fn(a):
        b = operator.neg(a)
        c = operator.neg(b) + a
        d = operator.neg(c) + 1
        return operator.neg(operator.neg(d))

    traced = torch.fx.symbolic_trace(fn)
    support = supported(torch, ADD, "_operator.neg")
    made = partitioner(traced, support, non_compute_ops=["_operator.neg"])
    found = made.propose_partitions()
    yield [[n.name for n in p.nodes] for p in found]
    made.remove_bookend_non_compute_ops(found)
    yield [[n.name for n in p.nodes] for p in found]
    yield shown(partitioner(traced, support).partition_and_fuse("part_"))


@case
def a_partition(torch):
    partition = fx(torch, "passes.infra.partitioner").Partition
    node = next(iter(torch.fx.symbolic_trace(diamond).graph.nodes))
    made = partition(3, [node], [7])
    yield made, made.id, made.size()
    made.remove_node(node)
    made.add_node(node)
    yield made, partition(nodes=[node]).nodes, attempt(partition, 1, [node], [])


@case
def who_takes_a_node(torch):
    support = fx(torch, "passes.operator_support")
    prop = fx(torch, "passes.shape_prop").ShapeProp
    traced = torch.fx.symbolic_trace(lambda a, b: torch.add(a, other=b).relu() + a)
    prop(traced).propagate(torch.ones(2), torch.ones(2, dtype=torch.float64))
    nodes = list(traced.graph.nodes)
    single, double = [torch.float32], [torch.float64]
    name = support.OperatorSupport.__module__ and "torch.add"
    answers = [
        support.OperatorSupport(),
        support.OperatorSupport({name: None}),
        support.OperatorSupport({name: ([single], {"other": double})}),
        support.OperatorSupport({name: ([None, single], {"other": single})}),
        support.OperatorSupport({name: ([double], {})}),
        support.OpSupports.decline_if_input_dtype(torch.float64),
        support.OpSupports.decline_if_node_in_names({"add", "b"}),
        support.create_op_support(lambda mods, node: node.op == "call_method"),
    ]
    answers += [support.chain(*answers[1:3]), support.any_chain(*answers[4:7])]
    for answer in answers:
        yield [answer.is_node_supported({}, node) for node in nodes]
    yield attempt(support.OperatorSupportBase)


# What came of one call ----------------------------------------------------------------


@case
def sources(torch):
    matcher = fx(torch, "passes.utils.source_matcher_utils")
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2)
    )
    traced = torch.fx.symbolic_trace(net)
    nodes = {n.name: n for n in traced.graph.nodes}
    kinds = {"_0": torch.nn.Linear, "_1": torch.nn.ReLU, "_2": torch.nn.Linear}
    for name, kind in kinds.items():
        nodes[name].meta["source_fn_stack"] = [("outer", str), (name, kind)]
    wanted = [torch.nn.Linear, torch.nn.ReLU, "add"]

    def told(found):
        return [
            (
                *(key if isinstance(key, str) else key.__name__, p.nodes, p.params),
                # Of a set, in PyTorch.
                *(sorted(map(str, x)) for x in (p.input_nodes, p.output_nodes)),
            )
            for key, parts in found.items()
            for p in parts
        ]

    found = matcher.get_source_partitions(traced.graph, wanted)
    yield told(found)
    first, last = found[torch.nn.Linear]
    relu = found[torch.nn.ReLU][0]
    for a, b in ((first, relu), (relu, last), (first, last), (relu, first)):
        yield matcher.check_subgraphs_connected(a, b)
    only = matcher.get_source_partitions(traced.graph, wanted, lambda n: n.name != "_0")
    yield told(only)

    traced = torch.fx.symbolic_trace(lambda x, y: (x + y) + y)
    for i, node in enumerate(traced.graph.nodes):
        if node.op == "call_function":
            node.meta["torch_fn"] = (f"add_{i}", "function.add")
    yield told(matcher.get_source_partitions(traced.graph, wanted))
    for node in traced.graph.nodes:
        node.meta.pop("torch_fn", None)
        node.meta["nn_module_stack"] = {"a": ("a", str), "b": ("b", torch.nn.Linear)}
    yield told(matcher.get_source_partitions(traced.graph, wanted))
    for node in traced.graph.nodes:
        node.meta["nn_module_stack"] = {"a": ("a", "no.Such")}
    yield told(matcher.get_source_partitions(traced.graph, wanted))


@case
def named_nodes(torch):
    utils = fx(torch, "passes.utils.matcher_with_name_node_map_utils")
    matcher = utils.SubgraphMatcherWithNameNodeMap
    pytree = fx(torch, "_pytree")
    pytree_info = fx(torch, "graph")._PyTreeInfo
    codegen = fx(torch, "graph")._PyTreeCodeGen
    tree = importlib.import_module(f"{torch.__name__}.utils._pytree")

    def pattern(fn, count):
        graph = torch.fx.Graph()
        inputs = [graph.placeholder(f"x{i}") for i in range(count)]
        tracer = fx(torch, "proxy").GraphAppendingTracer(graph)
        result = fn(*(torch.fx.Proxy(n, tracer) for n in inputs))
        leaves, spec = tree.tree_flatten(tree.tree_map(lambda p: p.node, result))
        graph.output(leaves)
        given = tree.tree_flatten((tuple(inputs), {}))[1]
        names = [n.name for n in inputs]
        graph.set_codegen(codegen(pytree_info(names, given, spec)))
        return torch.fx.GraphModule({}, graph)

    def conv(x, w):
        made = torch.conv2d(x, w)
        return torch.relu(made), {"conv": made}

    target = torch.fx.symbolic_trace(lambda x, w: torch.relu(torch.conv2d(x, w)) * 2)
    found = matcher(pattern(conv, 2)).match(target.graph)
    yield [m.name_node_map for m in found], pytree is not None
    for wrong in (lambda x: torch.relu(x), lambda x: (torch.relu(x),)):
        yield attempt(matcher, pattern(wrong, 1))
    yield attempt(matcher, pattern(lambda x: (torch.relu(x), x), 1))


# What is noted ------------------------------------------------------------------------


@case
def attributes_of_modules(torch):
    fetch = fx(torch, "passes.param_fetch")
    layers = torch.nn.Linear(2, 3), torch.nn.MaxPool2d(2), torch.nn.ReLU()
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(*layers))
    fetch.lift_lowering_attrs_to_nodes(traced)
    for node in traced.graph.nodes:
        if node.op == "call_module":
            yield node.target, sorted(node.attrs_for_lowering)
    yield fetch.extract_attrs_for_lowering(torch.nn.BatchNorm2d(2))
    yield attempt(fetch.extract_attrs_for_lowering, torch.nn.Tanh())

    class Newer(torch.nn.Linear):
        _version = 2

    fetch.module_fetch_book[Newer] = (1, [], fetch.default_matching)
    try:
        fetch.extract_attrs_for_lowering(Newer(1, 1))
    except RuntimeError as error:  # the class says where it is from
        yield str(error).replace(f"{__name__}.", "").partition("fetch ")[2]
    yield len(fetch.module_fetch_book)
    yield fetch.default_matching("a", 3)


@case
def types_of_items(torch):
    annotate = fx(torch, "passes.annotate_getitem_nodes").annotate_getitem_nodes
    import collections
    import typing

    class Named(typing.NamedTuple):
        a: int
        b: str

    kinds = (
        *(typing.Tuple[int, str], typing.Tuple[int, ...], typing.List[str]),  # noqa: UP006
        *(tuple[int, str], tuple[int, ...], list[str], Named, torch.Tensor, None),
        collections.OrderedDict,
    )
    for kind in kinds:
        graph = torch.fx.Graph()
        x = graph.placeholder("x", type_expr=kind)
        item = graph.call_function(operator.getitem, (x, 1))
        refusal = None
        if kind is not collections.OrderedDict:
            refusal = attempt(annotate, graph)
        yield refusal, item.type
    for kind in (tuple[int, str], typing.Tuple[int, str]):  # noqa: UP006
        graph = torch.fx.Graph()
        x = graph.placeholder("x", type_expr=kind)
        graph.call_function(operator.getitem, (x, 4))
        yield attempt(annotate, graph)
