"""Nested containers as trees: taken apart into leaves and put together again.

`torch.utils._pytree` makes this public. Lists, tuples, named tuples, dicts,
`OrderedDict`, `defaultdict`, `deque` and what `register_pytree_node` adds are nodes;
everything else, None included, is a leaf.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from torchshim import _warnings as warnings

__all__ = [
    "Context",
    "FlattenFn",
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
    "treespec_pprint",
]

PyTree = Any
Context = Any
FlattenFn = Callable[[Any], tuple[list[Any], Any]]
UnflattenFn = Callable[[Iterable[Any], Any], Any]
IsLeaf = Callable[[Any], bool] | None


# Kinds of nodes -----------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How a kind of node is taken apart and put together."""

    type: type
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class is a named tuple's."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object or class is a named tuple('s)."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of `torch.return_types`, or a struct sequence of C's."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_fields", None), int)
        and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is a struct sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object or class is a struct sequence('s)."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _named(cls: Any) -> Callable[..., Any]:
    """How a struct sequence of this class is made of its items."""
    return lambda items, context: cls(list(items))


# As PyTorch has it, the function in the place of a class.
NAMEDTUPLE = cast(type, namedtuple)

DICTS = (dict, OrderedDict, defaultdict)

SUPPORTED_NODES: dict[Any, NodeDef] = {
    tuple: NodeDef(
        tuple, lambda d: (list(d), None), lambda items, context: tuple(items), None
    ),
    list: NodeDef(
        list, lambda d: (list(d), None), lambda items, context: list(items), None
    ),
    dict: NodeDef(
        dict,
        lambda d: (list(d.values()), list(d)),
        lambda items, keys: dict(zip(keys, items, strict=True)),
        None,
    ),
    OrderedDict: NodeDef(
        OrderedDict,
        lambda d: (list(d.values()), list(d)),
        lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
        None,
    ),
    defaultdict: NodeDef(
        defaultdict,
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda items, context: defaultdict(
            context[0], zip(context[1], items, strict=True)
        ),
        None,
    ),
    deque: NodeDef(
        deque,
        lambda d: (list(d), d.maxlen),
        lambda items, maxlen: deque(items, maxlen=maxlen),
        None,
    ),
    NAMEDTUPLE: NodeDef(
        NAMEDTUPLE,
        lambda d: (list(d), type(d)),
        lambda items, cls: cls._make(items),
        None,
    ),
}
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


class Serialized(NamedTuple):
    """What stands for a kind of node, and for its context, in a spec's text."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


NO_NAME = "NO_SERIALIZED_TYPE_NAME_FOUND"
SERIALIZED_TYPES: dict[Any, Serialized] = {}
TYPE_OF_NAME: dict[str, Any] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Makes objects of a class nodes.

    `flatten_fn(object)` gives (children, context), `unflatten_fn(children, context)`
    the object. In the text of a spec the class goes by `serialized_type_name`, the
    context is what `to_dumpable_context` makes of it (by default its JSON).
    Raises ValueError for a class that is registered.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    define_node(
        NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn),
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def define_node(
    node: NodeDef,
    name: str | None = None,
    to_dumpable: Callable[[Any], Any] | None = None,
    from_dumpable: Callable[[Any], Any] | None = None,
) -> None:
    """Makes objects of a class nodes, in the place of what they were before."""
    cls = node.type
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous "
            "registration.",
            stacklevel=3,
        )
    SUPPORTED_NODES[cls] = node
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be "
            "None or registered."
        )
    name = NO_NAME if name is None else name
    SERIALIZED_TYPES[cls] = Serialized(cls, name, to_dumpable, from_dumpable)
    TYPE_OF_NAME[name] = cls


def node_type(tree: Any) -> Any:
    kind = type(tree)
    # What is registered for a class of named tuples only gives it a name.
    if isinstance(tree, tuple) and is_namedtuple_class(kind):
        return NAMEDTUPLE
    if kind in SUPPORTED_NODES:
        return kind
    if is_structseq_class(kind):
        define_node(NodeDef(kind, lambda d: (list(d), None), _named(kind), None))
    return kind


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a tree is one leaf."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return node_type(tree) not in SUPPORTED_NODES


# Specs --------------------------------------------------------------------------------


class TreeSpec:
    """The structure of a tree: its nodes without the leaves."""

    __slots__ = (
        "_children",
        "_context",
        "num_children",
        "num_leaves",
        "num_nodes",
        "type",
    )

    def __init__(
        self, type: Any, context: Context, children_specs: Iterable[TreeSpec]
    ) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        if type is None:
            self.num_nodes = self.num_leaves = 1
        else:
            self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
            self.num_leaves = sum(c.num_leaves for c in self._children)

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        start = f"TreeSpec({self.type.__name__}, {self._context}, ["
        indent += 2
        inner = ""
        if self._children:
            texts = [child.__repr__(indent) for child in self._children]
            inner = (",\n" + " " * indent).join(texts)
        return f"{start}{inner}])"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            str(self.type) == str(other.type)
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = context[0], tuple(context[1])
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        elif not (context is None or isinstance(context, (str, int, type))):
            context = None
        return hash((self.type, context, tuple(self._children)))

    @property
    def context(self) -> Context:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The old name of `children()`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to "
            "access a single child, or `treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """Whether this is the spec of a leaf."""
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self) -> list[TreeSpec]:
        """The specs one step below."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """One of the specs one step below."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves; ValueError if there are too many or too few."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but "
                f"the spec refers to a pytree that holds {self.num_leaves} items "
                f"({self})."
            )
        return self._made_of(iter(leaves))

    def _made_of(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        items = [child._made_of(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(items, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of a tree at the places of this spec's leaves.

        Raises ValueError where the tree has another structure.
        """
        found: list[Any] = []
        self._walk(tree, found)
        return found

    def _walk(self, node: Any, found: list[Any]) -> None:
        if self.is_leaf():
            found.append(node)
            return
        for child, part in zip(self._children, self._parts(node), strict=True):
            child._walk(part, found)

    def _parts(self, node: Any) -> list[Any]:
        """The children of a node that has this kind and number of them."""
        kind = node_type(node)
        dicts = self.type in DICTS and kind in DICTS
        if kind != self.type and not dicts:
            word = "Node type" if self.type in BUILTIN_TYPES else "Type"
            raise ValueError(
                f"{word} mismatch; expected {self.type!r}, but got {kind!r}."
            )
        items, context = SUPPORTED_NODES[kind].flatten_fn(node)
        if len(items) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got "
                f"{len(items)}."
            )
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            missing, extra = set(keys) - set(node), set(node) - set(keys)
            text = f"; missing key(s): {missing}" if missing else ""
            text += f"; extra key(s): {extra}" if extra else ""
            if text:
                raise ValueError(f"Node keys mismatch{text}.")
            return [node[key] for key in keys]
        if kind is not deque and context != self._context:
            if self.type not in BUILTIN_TYPES:
                raise ValueError(
                    f"Node context mismatch for custom node type {self.type!r}."
                )
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected "
                f"{self._context!r}, but got {context!r}."
            )
        return items


class _LeafMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_LeafMeta):
    """The spec of a leaf: deprecated."""

    __slots__ = ()

    def __init__(self) -> None:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, "
            "TreeSpec) and treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(None, None, ())


_LEAF = TreeSpec(None, None, ())


# Taking apart and putting together ----------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree in order, and its structure.

    >>> tree_flatten({"a": 1, "b": (2, None)})[0]
    [1, 2, None]
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = node_type(tree)
    items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(i, leaves, is_leaf) for i in items])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of this structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterates over the leaves."""
    yield from tree_leaves(tree, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree in order."""
    leaves: list[Any] = []
    _flatten(tree, leaves, is_leaf)
    return leaves


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return _flatten(tree, [], is_leaf)


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """A tree of the results of `func` on each leaf (and what `rests` have there).

    >>> tree_map(lambda x: x + 1, {"a": 1, "b": [2, 3]})
    {'a': 2, 'b': [3, 4]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Calls `func` on each leaf, for what it does; gives the tree back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def map_only(which: Any, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function as it is for leaves of a type (or where a test holds); others stay."""
    if isinstance(which, (type, tuple, types.UnionType)):
        chosen: Callable[[Any], Any] = lambda x: isinstance(x, which)  # noqa: E731
    elif callable(which):
        chosen = which
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrapper(func: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: func(x) if chosen(x) else x

    return wrapper


def tree_map_only(
    type_or_types_or_pred: Any,
    /,
    func: Callable[..., Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """As `tree_map`, for leaves of a type only."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    /,
    func: Callable[..., Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """As `tree_map_`, for leaves of a type only."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds of all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds of any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> bool:
    """Whether something holds of all leaves of a type."""
    chosen = (x for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))
    return all(pred(x) for x in chosen)


def tree_any_only(
    type_or_types: Any,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> bool:
    """Whether something holds of any leaf of a type."""
    chosen = (x for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))
    return any(pred(x) for x in chosen)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of a call's arguments."""
    return tree_leaves(list(args)) + tree_leaves(list(kwargs.values()))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """A leaf of `tree` for each leaf below it in a structure; None if it fits not."""
    full = treespec.unflatten([0] * treespec.num_leaves)
    result: list[Any] = []

    def add(leaf: Any, part: Any) -> None:
        result.extend([leaf] * tree_structure(part, is_leaf).num_leaves)

    try:
        tree_map_(add, tree, full, is_leaf=is_leaf)
    except ValueError:
        return None
    return result


class _Star(str):
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as a tree of stars."""
    return repr(treespec.unflatten([_Star("*")] * treespec.num_leaves))
