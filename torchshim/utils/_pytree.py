"""`torch.utils._pytree`: nested containers as trees, and the ways to their leaves."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from torchshim import _warnings as warnings
from torchshim._core.meta import Size
from torchshim._pytree import (
    BUILTIN_TYPES as BUILTIN_TYPES,
)
from torchshim._pytree import (
    DICTS,
    NAMEDTUPLE,
    NO_NAME,
    Context,
    FlattenFn,
    IsLeaf,
    LeafSpec,
    PyTree,
    TreeSpec,
    UnflattenFn,
    define_node,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    node_type,
    register_pytree_node,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)
from torchshim._pytree import (
    SERIALIZED_TYPES as SUPPORTED_SERIALIZED_TYPES,
)
from torchshim._pytree import (
    SUPPORTED_NODES as SUPPORTED_NODES,
)
from torchshim._pytree import (
    TYPE_OF_NAME as SERIALIZED_TYPE_TO_PYTHON_TYPE,
)
from torchshim._pytree import (
    NodeDef as NodeDef,
)
from torchshim._pytree import (
    _broadcast_to_and_flatten as _broadcast_to_and_flatten,
)
from torchshim._pytree import (
    arg_tree_leaves as arg_tree_leaves,
)
from torchshim._pytree import (
    map_only as map_only,
)
from torchshim.utils._pytree_text import (
    PROTOCOL,
    treespec_dumps,
    treespec_loads,
)
from torchshim.utils._pytree_text import (
    EnumEncoder as EnumEncoder,
)
from torchshim.utils._pytree_text import (
    enum_object_hook as enum_object_hook,
)
from torchshim.utils._pytree_text import (
    pytree_to_str as pytree_to_str,
)
from torchshim.utils._pytree_text import (
    str_to_pytree as str_to_pytree,
)

_get_node_type = node_type  # PyTorch's name, which programs import
_is_namedtuple_instance = is_namedtuple_instance
NO_SERIALIZED_TYPE_NAME_FOUND = NO_NAME
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = PROTOCOL
# What contexts become to be written as JSON, and back.
DumpableContext = Any
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
FlattenFunc = FlattenFn
UnflattenFunc = UnflattenFn
PyTreeSpec = TreeSpec
_LEAF_SPEC = tree_structure(None)
STANDARD_DICT_TYPES = frozenset(DICTS)


def _is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Deprecated: `tree_is_leaf`."""
    warnings.warn(
        "torch.utils._pytree._is_leaf is private and will be removed in a future "
        "release. Please use torch.utils._pytree.tree_is_leaf instead.",
        FutureWarning,
        stacklevel=2,
    )
    return tree_is_leaf(tree, is_leaf)


__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "LeafSpec",
    "PyTree",
    "PyTreeSpec",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]


# Keys: how a leaf is reached ----------------------------------------------------------


class KeyEntry(Protocol):
    """One step on the way to a leaf."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any: ...


KeyPath = tuple[KeyEntry, ...]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """An index of a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple or a dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


# How builtin containers become nodes: programs register subclasses of them with these.
_tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple][1:3]
_list_flatten, _list_unflatten = SUPPORTED_NODES[list][1:3]
_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict][1:3]
_ordereddict_flatten, _ordereddict_unflatten = SUPPORTED_NODES[OrderedDict][1:3]
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_defaultdict_flatten, _defaultdict_unflatten = SUPPORTED_NODES[defaultdict][1:3]
_deque_flatten, _deque_unflatten = SUPPORTED_NODES[deque][1:3]
_namedtuple_flatten, _namedtuple_unflatten = SUPPORTED_NODES[NAMEDTUPLE][1:3]


def _tuple_flatten_with_keys(d: tuple[Any, ...]) -> tuple[list[Any], Context]:
    """The items of a tuple with their places, and the context."""
    items, context = _tuple_flatten(d)
    return [(SequenceKey(i), item) for i, item in enumerate(items)], context


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[Any], Context]:
    """The items of a list with their places, and the context."""
    items, context = _list_flatten(d)
    return [(SequenceKey(i), item) for i, item in enumerate(items)], context


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    """The values of a dict with their keys, and the context."""
    items, keys = _dict_flatten(d)
    return [(MappingKey(k), v) for k, v in zip(keys, items, strict=True)], keys


def _private_register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """As `register_pytree_node`, but replaces what is registered, with a warning."""
    define_node(
        NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn),
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **named: Any,
) -> None:
    """Deprecated: `register_pytree_node`; the two functions mean nothing any more."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use "
            "`to_dumpable_context` and `from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=2,
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **named)


def _deregister_pytree_node(cls: type) -> None:
    """Makes objects of a class leaves again."""
    del SUPPORTED_NODES[cls]
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[
        SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name
    ]
    del SUPPORTED_SERIALIZED_TYPES[cls]
    CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples a name in the texts of specs."""
    node = SUPPORTED_NODES[NAMEDTUPLE]
    known = SUPPORTED_SERIALIZED_TYPES[NAMEDTUPLE]
    _private_register_pytree_node(
        cls,
        node.flatten_fn,
        node.unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=known.to_dumpable_context,
        from_dumpable_context=known.from_dumpable_context,
        flatten_with_keys_fn=lambda d: (_named_items(d), type(d)),
    )


def _named_items(d: Any) -> list[Any]:
    return [(GetAttrKey(f), v) for f, v in zip(d._fields, d, strict=True)]


CONSTANT_NODES: set[type] = set()


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """A context that is the object itself."""

    value: Any


def register_constant(cls: type) -> None:
    """Makes objects of a class nodes without children, part of the spec."""
    for method, default in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, method) is default:
            raise TypeError(
                "register_constant(cls) expects `cls` to have a non-default "
                f"`{method}` implementation."
            )
    alone = lambda x: ([], ConstantNode(x))  # noqa: E731
    _private_register_pytree_node(
        cls, alone, lambda _, context: context.value, flatten_with_keys_fn=alone
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether a class was given to `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec: TreeSpec) -> bool:
    return isinstance(spec.context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not hold a constant")
    return tree_unflatten([], spec)


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple whose items have these."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (),
    /,
    **kwargs: TreeSpec,
) -> TreeSpec:
    """The spec of a dict whose values have these."""
    made = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in made.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {made!r}.")
    return TreeSpec(dict, list(made), made.values())


def _children_of_dataclass(
    cls: Any, names: list[str] | None, dropped: list[str]
) -> list[str]:
    """The fields that are children; raises where those that are named are not all."""
    if not dataclasses.is_dataclass(cls):
        if names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to "
                f"initialize {cls}, as it is not a dataclass."
            )
        return names
    fields = [f.name for f in dataclasses.fields(cls) if f.init]
    if names is None:
        return fields
    there, named = set(fields) - set(dropped), set(names)
    if there == named:
        return names
    text = "field_names does not include all dataclass fields.\n"
    if missing := there - named:
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these "
            "fields in the pytree, please add them to `field_names`, otherwise please "
            "add them to `drop_field_names`.\n"
        )
    if unexpected := named - there:
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these "
            "fields, or add them to `drop_field_names`.\n"
        )
    raise ValueError(text)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes objects of a dataclass nodes: their fields are the children.

    Fields in `drop_field_names` are left out, and must have defaults.
    """
    names = _children_of_dataclass(cls, field_names, drop_field_names or [])

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        given = [n for n in names if getattr(obj, n) is not None]
        absent = [n for n in names if getattr(obj, n) is None]
        return [getattr(obj, n) for n in given], [given, absent]

    def unflatten(items: Iterable[Any], context: Any) -> Any:
        given, absent = context
        return cls(**dict(zip(given, items, strict=True)), **dict.fromkeys(absent))

    def with_keys(obj: Any) -> tuple[list[Any], Any]:
        items, context = flatten(obj)
        pairs = zip(context[0], items, strict=True)
        return [(GetAttrKey(name), item) for name, item in pairs], context[0]

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )


# With paths ---------------------------------------------------------------------------


def _paths(
    path: tuple[Any, ...], tree: Any, is_leaf: IsLeaf
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = node_type(tree)
    node = SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is not None:
        pairs = node.flatten_with_keys_fn(tree)[0]
    elif kind in DICTS:
        pairs = [(MappingKey(key), item) for key, item in tree.items()]
    elif kind is NAMEDTUPLE:
        fields = type(tree)._fields
        pairs = [(GetAttrKey(f), v) for f, v in zip(fields, tree, strict=True)]
    elif kind in BUILTIN_TYPES or is_structseq_class(kind):
        pairs = [(SequenceKey(i), item) for i, item in enumerate(tree)]
    else:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, item in pairs:
        yield from _paths((*path, key), item, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[Any, Any]], TreeSpec]:
    """As `tree_flatten`, each leaf with the keys that lead to it."""
    return list(_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> list[tuple[Any, Any]]:
    """As `tree_leaves`, each leaf with the keys that lead to it."""
    return list(_paths((), tree, is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """As `tree_map`; `func` gets the keys first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [
        [path for path, _ in pairs],
        [leaf for _, leaf in pairs],
        *(spec.flatten_up_to(rest) for rest in rests),
    ]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def keystr(kp: tuple[Any, ...]) -> str:
    """The text of the keys that lead to a leaf."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: tuple[Any, ...]) -> Any:
    """What the keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj


# The items of a shape are its children, and what is put together again is a tuple.
register_pytree_node(
    Size,
    lambda shape: (list(shape), None),
    lambda items, context: tuple(items),
    serialized_type_name="torch.Size",
    flatten_with_keys_fn=lambda shape: (
        [(SequenceKey(at), item) for at, item in enumerate(shape)],
        None,
    ),
)
