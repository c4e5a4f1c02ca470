"""`Graph`, `Node` and `Proxy`: made and changed by hand."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings

from tests.oracle import attempt, case, evaluate


def small(torch):
    """A graph of five nodes, and they by name."""
    graph = torch.fx.Graph()
    a = graph.placeholder("a")
    b = graph.placeholder("b", type_expr=torch.Tensor, default_value=None)
    c = graph.call_function(torch.add, (a, b), {"alpha": 2})
    d = graph.call_method("relu", (c,))
    graph.output((d, {"k": c, "l": [a]}))
    return graph, {node.name: node for node in graph.nodes}


@case
def made_by_hand(torch):
    graph, nodes = small(torch)
    print(graph)
    print(graph.python_code("self").src)
    print(graph.python_code("root", verbose=True, expanded_def=True).src)
    yield list(map(str, graph.nodes)), list(map(str, reversed(graph.nodes)))
    yield len(graph.nodes), graph.lint(), str(graph.output_node())
    for node in graph.nodes:
        yield node.op, node.name, callable(node.target), repr(node.args)
        yield repr(node.kwargs), repr(node.users), repr(node.all_input_nodes)
        yield str(node.prev), str(node.next), node.type is None, node.is_impure()
        yield node.format_node(), node.meta, node.stack_trace
    a, b, c = nodes["a"], nodes["b"], nodes["add"]
    yield a < b, c > a, a <= a, b >= c, [n.name for n in sorted([c, b, a])]
    yield [n.name for n in graph.find_nodes(op="call_function", target=torch.add)]
    yield [n.name for n in graph.find_nodes(op="placeholder")]
    yield [n.name for n in graph.find_nodes(op="call_method", target="relu")]
    yield attempt(graph.find_nodes, op="call_function")


@case
def changes(torch):
    graph, nodes = small(torch)
    a, b, c, d = (nodes[k] for k in ("a", "b", "add", "relu"))
    with graph.inserting_after(c):
        e = graph.call_function(operator.mul, (c, 2))
    with graph.inserting_after(e):
        f = graph.call_function(operator.neg, (e,), name="negative")
    with graph.inserting_before(c):
        graph.call_function(torch.zeros, ((2,),), type_expr=torch.Tensor)
    print(graph)
    yield [n.name for n in c.replace_all_uses_with(f, lambda user: user is not e)]
    print(graph)
    yield repr(c.users), repr(f.users), repr(d.args)
    yield attempt(graph.erase_node, c), str(attempt(graph.eliminate_dead_code))
    print(graph)
    d.update_arg(0, a)
    d.update_kwarg("k", [b, {"x": b}])
    d.insert_arg(1, slice(a, 3))
    yield repr(d.args), repr(d.kwargs), repr(d.all_input_nodes), repr(a.users)
    yield attempt(d.insert_arg, 9, 3), attempt(d.update_arg, 9, 3)
    d.replace_input_with(a, b)
    yield repr(d.args), repr(b.users), graph.eliminate_dead_code()
    d.args = (b,)
    d.kwargs = {}
    d.target = "tanh"
    d.name = "other"
    d.type = torch.Tensor
    print(graph)
    yield [n.name for n in graph.find_nodes(op="call_method", target="tanh")]
    d.meta["x"] = 1
    last = graph.output_node()
    with graph.inserting_before(last):
        g = graph.call_method("exp", (d,))
    yield [n.name for n in d.replace_all_uses_with(g, propagate_meta=True)], g.meta
    yield attempt(g.replace_all_uses_with, d, propagate_meta=True)


@case
def order(torch):
    graph, nodes = small(torch)
    a, b, c, d = (nodes[k] for k in ("a", "b", "add", "relu"))
    c.append(a)
    yield list(map(str, graph.nodes)), a > c, attempt(graph.lint)
    b.prepend(a)
    yield list(map(str, graph.nodes)), graph.lint()
    d.prepend(d)
    other, found = small(torch)
    yield attempt(c.prepend, found["a"]), attempt(graph.inserting_before, found["a"])
    yield attempt(graph.inserting_after, found["a"]), attempt(graph.erase_node, d)
    with graph.inserting_before():
        graph.placeholder("first")
    with graph.inserting_after():
        graph.placeholder("last")
    yield list(map(str, graph.nodes)), attempt(graph.output_node)
    for node in graph.nodes:  # changed meanwhile
        if node.name in ("first", "last"):
            graph.erase_node(node)
    yield list(map(str, graph.nodes)), len(graph.nodes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        extra = graph.placeholder("x")
        graph.erase_node(extra)
        graph.erase_node(extra)
    yield [str(each.message) for each in caught]
    wrong = graph.call_function(torch.neg, (found["a"],))
    yield attempt(graph.lint), wrong.name, attempt(other.erase_node, wrong)


@case
def names(torch):
    graph = torch.fx.Graph()
    candidates = "LeakyReLU a.b.c 3x if print torch x_1 x_1 x self input sum add_1 add"
    made = [graph.create_node("get_attr", name).name for name in candidates.split()]
    made.append(graph.create_node("get_attr", "").name)
    made.append(graph.create_node("call_function", torch.nn.Linear, (2, 3)).name)
    made.append(graph.create_node("call_function", lambda x: x).name)
    made.append(graph.create_node("call_method", "__getitem__").name)
    made.append(graph.create_node("call_function", torch.nn.functional.gelu).name)
    made.append(graph.create_node("call_function", operator.and_).name)
    made.append(graph.create_node("call_module", "x", name="x_5").name)
    made.append(graph.create_node("call_module", "x", name="x").name)
    yield made


@case.lines(
    """
    fx.Graph().create_node("blah", "x")
    fx.Graph().create_node("call_function", "x")
    fx.Graph().create_node("call_method", 3)
    fx.Graph().create_node("call_function", torch.add, [1])
    fx.Graph().create_node("call_function", torch.add, (1,), [2])
    fx.map_arg(1, 2)
    fx.node.map_aggregate((1, [2, {"a": slice(1, 2, 3)}]), lambda v: (v,))
    type(fx.node.map_aggregate([1], lambda v: v)).__name__
    fx.Graph().call_function(torch.add, ([1, 2],)).args[0].append(3)
    fx.Graph().call_function(torch.add, (), {"a": 1}).kwargs.update(b=2)
    fx.immutable_collections.immutable_list([1, 2]) + [3]
    hash(fx.immutable_collections.immutable_dict(a=1)) == hash(frozenset([("a", 1)]))
    fx.Graph().call_function(torch._assert, (1, 2)).is_impure()
    fx.Graph().call_function(torch.rand, (1,)).is_impure()
    fx.Graph().call_function(torch.rand, (1,)).is_impure(False)
    fx.Graph().call_module("x").is_impure()
    fx.Graph().output_node()
    fx.GraphModule({}, fx.Graph()).graph.get_attr("x.y").name
    fx.GraphModule({}, fx.Graph()).graph.get_attr("x").name
    fx.GraphModule({}, fx.Graph()).graph.call_module("x").name
    str(fx.Graph()), fx.Graph().python_code("self").src
    """
)
def calls(torch, line):
    return attempt(evaluate, torch, line, fx=torch.fx)


@case
def proxies(torch):
    graph = torch.fx.Graph()
    x = torch.fx.Proxy(graph.placeholder("x"))
    yield repr(x), repr(x + 1), repr(x.foo(1, k=2)), repr((x - 1).node), repr(x(1))
    yield repr(x.attribute), type(x.attribute).__name__, repr(x.shape.node)
    yield attempt(bool, x), attempt(iter, x), attempt(len, x), repr(x.keys())
    a, b = x
    yield repr(a), repr(b), repr(torch.relu(a)), repr(torch.add(1, b)), repr(1 + b)
    yield torch.is_tensor(x), isinstance(x, torch.Tensor), repr(copy.deepcopy(x))
    graph.output(x.node)
    print(graph)


@case
def copies(torch):
    graph, nodes = small(torch)
    nodes["add"].meta["fact"] = [1]
    copied = copy.deepcopy(graph)
    print(copied)
    yield [n.meta for n in copied.nodes], copied.lint()
    other = torch.fx.Graph()
    known = {}
    value = other.graph_copy(graph, known)
    yield repr(value), {str(k): str(v) for k, v in known.items()}
    again = other.node_copy(nodes["add"], lambda n: known[n])
    yield again.name, repr(again.args), again.meta
    print(other)
    nodes["b"].type = None
    restored = pickle.loads(pickle.dumps(graph))
    yield str(restored) == str(graph), restored.lint()


@case(raises=ImportError)
def table(torch):
    yield small(torch)[0].print_tabular()


@case
def code_generators(torch):
    class Lists(torch.fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            names = ", ".join(free_vars)
            return (
                f"def forward(self, args_list: List[torch.Tensor])"
                f"{maybe_return_annotation}:\n    {names} = args_list"
            )

        def additional_globals(self):
            return [("List", list)]

        def process_inputs(self, *inputs):
            assert len(inputs) == 1
            return inputs[0]

        def generate_output(self, output_args):
            return f"return [{output_args}]"

        def process_outputs(self, outputs):
            return list(outputs)

    traced = torch.fx.symbolic_trace(lambda x, y: x + y)
    traced.graph.set_codegen(Lists())
    traced.recompile()
    yield traced.code, traced([1, 2]), traced.graph.process_inputs([1, 2])
    traced = torch.fx.symbolic_trace(lambda x, y: x + y)
    with traced.graph.on_generate_code(
        lambda current: lambda body: ["print('begin')\n", *body]
    ):
        traced.recompile()
        yield traced.code, traced(1, 2)
    traced.recompile()
    yield traced.code, traced(1, 2)
    made = traced.graph.python_code("self")
    yield sorted(made.globals), made._lineno_map, made._prologue_start
