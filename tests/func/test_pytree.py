"""`torch.utils._pytree`."""

import collections
import dataclasses
import importlib

from tests.oracle import attempt, case


@dataclasses.dataclass
class Point:
    x: int
    y: int | None = None


Pair = collections.namedtuple("Pair", "a b")


def tree():
    return {
        "b": [1, (2, 3)],
        "a": Pair(4, None),
        "c": collections.OrderedDict(x=5),
        "d": collections.deque([6], maxlen=3),
        "e": collections.defaultdict(list, {"q": 7}),
        "f": (),
    }


@case
def apart_and_together(torch):
    p = torch.utils._pytree
    leaves, spec = p.tree_flatten(tree())
    yield leaves, repr(spec)
    yield spec.num_nodes, spec.num_leaves, spec.num_children, spec.type, spec.context
    yield p.tree_unflatten(leaves, spec) == tree()
    yield p.treespec_pprint(spec)
    yield [repr(p.tree_structure(t)) for t in (1, (1, [2]), [], ((),), {1: 2, "a": 3})]
    yield p.tree_flatten(tree(), is_leaf=lambda x: isinstance(x, list))[0]
    yield p.tree_leaves(None), p.arg_tree_leaves(1, 2, a=3), list(p.tree_iter([1, [2]]))
    yield repr(spec.child(0)), len(spec.children()), spec.is_leaf()
    yield spec.flatten_up_to(tree()), spec.unflatten(leaves) == tree()
    yield p.tree_structure((1, 2)) == p.tree_structure((3, 4))
    yield p.tree_structure((1, 2)) == p.tree_structure([3, 4])
    yield isinstance(p.tree_structure(1), p.TreeSpec)


@case
def subclasses_of_containers(torch):
    p = torch.utils._pytree

    class Output(dict):
        pass

    p.register_pytree_node(
        Output,
        p._dict_flatten,
        lambda values, keys: Output(p._dict_unflatten(values, keys)),
        serialized_type_name="Output",
        flatten_with_keys_fn=p._dict_flatten_with_keys,
    )
    tree = Output(b=1, a=[2])
    yield p.tree_leaves(tree), type(p.tree_map(lambda x: x, tree)).__name__
    yield [(p.keystr(path), leaf) for path, leaf in p.tree_flatten_with_path(tree)[0]]
    for kind, value in {"list": [5, 6], "tuple": (5, 6), "dict": {"k": 5}}.items():
        flatten, keys = (getattr(p, f"_{kind}_flatten{w}") for w in ("", "_with_keys"))
        yield flatten(value), [(str(key), item) for key, item in keys(value)[0]]
        yield getattr(p, f"_{kind}_unflatten")(*flatten(value))


@case
def maps(torch):
    p = torch.utils._pytree
    yield repr(p.tree_map_only(int, lambda x: x + 1, tree()))
    yield p.tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)])
    yield p.tree_map(lambda a, b: (a, b), [1, 2], [3, (4, 5)])
    seen = []
    yield p.tree_map_(seen.append, [1, {"a": 2}]), seen
    yield p.tree_any(lambda x: x > 1, [1, 2]), p.tree_all(lambda x: x > 1, [1, 2])
    yield p.tree_all_only(int, lambda x: x > 1, [1, "a"])
    yield p.tree_any_only(str, lambda x: x == "a", [1, "a"])
    yield repr(p.tree_map_with_path(lambda k, x: p.keystr(k), tree()))
    yield [(str(k), v) for k, v in p.tree_leaves_with_path({"a": [1]})]
    one = p.tree_structure((1, (2, 3)))
    yield p._broadcast_to_and_flatten((0, None), one)
    yield p._broadcast_to_and_flatten((0, None, 1), one)
    yield p.is_namedtuple(Pair), p.is_namedtuple_instance((1, 2))


@case
def errors(torch):
    p = torch.utils._pytree
    spec = p.tree_structure([1, (2, 3)])
    yield attempt(p.tree_unflatten, [1], spec)
    yield attempt(p.tree_unflatten, 5, spec)
    yield attempt(p.tree_map, lambda a, b: a, [1, 2], [3])
    yield attempt(p.tree_map, lambda a, b: a, [1, 2], (3, 4))
    yield attempt(p.tree_map, lambda a, b: a, {"a": 1}, {"b": 4})
    yield attempt(p.tree_map_only, 3, lambda a: a, [1])


@case
def registered(torch):
    p = torch.utils._pytree

    class Box:
        def __init__(self, a):
            self.a = a

    p.register_pytree_node(Box, lambda c: ([c.a], "x"), lambda items, _: Box(items[0]))
    yield p.tree_map(lambda x: x * 2, [Box(3)])[0].a
    yield repr(p.tree_structure(Box(2)))
    again = lambda: p.register_pytree_node(Box, list, list)  # noqa: E731
    yield type(attempt(again))
    yield attempt(p.tree_leaves_with_path, Box(1)).args[0][:50]


@case
def dataclasses_of_exports(torch):
    export = importlib.import_module(f"{torch.__name__}.export")
    export.register_dataclass(Point, serialized_type_name="Point")
    p = torch.utils._pytree
    yield p.tree_leaves([Point(1), Point(2, 3)])
    yield p.tree_map(lambda v: v + 1, Point(1, 2)) == Point(2, 3)
    yield [(p.keystr(path), leaf) for path, leaf in p.tree_leaves_with_path(Point(4))]
