"""Specs of trees, made and written as text, compared with PyTorch."""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

from tests.oracle import attempt, case


class Colour(enum.Enum):
    RED = 1


def pytree(torch):
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def boxes(name="Box"):
    """A class of its own for each test, as registering is for good."""
    return type(name, (), {"__init__": lambda self, x: setattr(self, "x", x)})


@case
def written_and_read(torch):
    tree = pytree(torch)
    for each in (
        *(1, [1, 2], (1,), {"a": 1, 3: [2]}, OrderedDict(a=1), deque([1], maxlen=3)),
        *(defaultdict(list, {"a": [1]}), torch.Size([2])),
    ):
        spec = tree.tree_structure(each)
        text = tree.treespec_dumps(spec)
        yield text, tree.treespec_loads(text) == spec
    yield attempt(tree.treespec_dumps, "a")
    yield attempt(tree.treespec_dumps, tree.treespec_leaf(), protocol=-1)
    yield attempt(tree.treespec_loads, "[-1, {}]")
    unknown = '[1, {"type": "zz", "context": null, "children_spec": []}]'
    yield attempt(tree.treespec_loads, unknown)
    yield attempt(tree.pytree_to_str, tree.treespec_leaf())


@case
def named_tuples(torch):
    tree = pytree(torch)
    Point = namedtuple("Point", "x y")
    spec = tree.tree_structure(Point(1, 2))
    yield attempt(tree.treespec_dumps, spec)
    tree._register_namedtuple(Point, serialized_type_name="m.Point")
    yield tree.treespec_dumps(spec), str(tree.tree_structure(Point(1, 2)))[:20]
    yield tree.treespec_loads(tree.treespec_dumps(spec)) == spec
    yield attempt(tree.treespec_dumps, tree.tree_structure(torch.ones(2).max(0)))


@case
def registered_with_names(torch):
    tree = pytree(torch)

    def register(context, **named):
        cls = boxes()
        take, make = lambda box: ([box.x], context), lambda xs, c: cls(*xs)
        told = attempt(tree.register_pytree_node, cls, take, make, **named)
        spec = tree.tree_structure(cls(1))
        return cls, told if told is None else type(told).__name__, spec

    cls, told, spec = register(Colour.RED, serialized_type_name="t.Red")
    text = tree.treespec_dumps(spec)
    yield told, text, tree.treespec_loads(text).context is Colour.RED
    again = attempt(tree.register_pytree_node, cls, None, None)
    yield type(again), "already registered" in str(again)
    tree._deregister_pytree_node(cls)
    yield tree.tree_structure(cls(1)).is_leaf()
    _, told, spec = register(object(), serialized_type_name="t.Object")
    yield told, attempt(tree.treespec_dumps, spec)
    ways = {"to_dumpable_context": str, "from_dumpable_context": int}
    _, told, spec = register(7, serialized_type_name="t.Seven", **ways)
    text = tree.treespec_dumps(spec)
    yield told, text, tree.treespec_loads(text).context
    yield register(7, to_dumpable_context=str)[1]
    yield register(7)[1]


@case
def constants(torch):
    tree = pytree(torch)

    class Same:
        def __eq__(self, other):
            return isinstance(other, Same)

        def __hash__(self):
            return 1

        def __repr__(self):
            return "same"

    class Unhashed:
        def __eq__(self, other):
            return True

    yield attempt(tree.register_constant, boxes())
    yield attempt(tree.register_constant, Unhashed)
    tree.register_constant(Same)
    yield tree.is_constant_class(Same), tree.is_constant_class(3)
    leaves, spec = tree.tree_flatten([Same(), 1])
    yield leaves, str(spec), tree.tree_unflatten([5], spec)
    yield tree.tree_leaves_with_path([Same(), 1])


@case
def put_together(torch):
    tree = pytree(torch)
    leaf = tree.treespec_leaf()
    yield str(tree.treespec_tuple([leaf, tree.treespec_tuple()]))
    yield str(tree.treespec_dict({"a": leaf}, b=tree.treespec_tuple()))
    yield attempt(tree.treespec_tuple, [1]), attempt(tree.treespec_dict, a=1)


@case
def dataclasses_as_nodes(torch):
    tree = pytree(torch)

    @dataclasses.dataclass
    class Pair:
        x: int
        y: int = 3

    for names in (["x"], ["x", "z"]):
        yield attempt(tree.register_dataclass, Pair, field_names=names)
    told = attempt(tree.register_dataclass, boxes())
    yield type(told), str(told)[:60]
    dropped = {"drop_field_names": ["y"], "serialized_type_name": "t.Pair"}
    tree.register_dataclass(Pair, field_names=["x"], **dropped)
    leaves, spec = tree.tree_flatten(Pair(1, 2))
    yield leaves, tree.treespec_dumps(spec), tree.tree_unflatten([5], spec).y
    yield tree.tree_leaves_with_path([Pair(1, 2)])


@case(warnings=False)
def lists_and_dicts_of_graphs_have_paths(torch):
    lib = pytree(torch)
    fx = importlib.import_module(f"{torch.__name__}.fx.immutable_collections")
    tree = fx.immutable_dict(a=fx.immutable_list([1, 2]), b=3)
    found, spec = lib.tree_flatten_with_path(tree)
    yield [(lib.keystr(path), leaf) for path, leaf in found], str(spec)
    yield lib.treespec_loads(lib.treespec_dumps(spec)) == spec


@case(warnings=False)
def specs_made_by_hand(torch):
    lib = pytree(torch)
    pair = namedtuple("pair", "a b")
    spec = lib.tree_structure(pair(1, 2))
    yield spec.type is namedtuple, str(spec)
    yield attempt(spec.flatten_up_to, (1, 2))
    yield attempt(lib.TreeSpec, list, None)
    leaf = lib.tree_structure(1)
    made = lib.TreeSpec(type=list, context=None, children_specs=[leaf])
    yield made == lib.tree_structure([1]), lib.LeafSpec() == leaf
    yield attempt(lib.tree_unflatten, [1], 3)
    yield sorted(lib.__all__), lib.FlattenFunc is lib.FlattenFn
