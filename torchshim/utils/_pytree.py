"""`torch.utils._pytree`: nested containers as trees, and the ways to their leaves."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchshim._core.meta import Size
from torchshim._pytree import (
    BUILTIN_TYPES as BUILTIN_TYPES,
)
from torchshim._pytree import (
    DICTS,
    NAMEDTUPLE,
    Context,
    FlattenFn,
    IsLeaf,
    LeafSpec,
    PyTree,
    TreeSpec,
    UnflattenFn,
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
    SUPPORTED_NODES as SUPPORTED_NODES,
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

_get_node_type = node_type  # PyTorch's name, which programs import


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
    "treespec_pprint",
]


# Keys: how a leaf is reached ----------------------------------------------------------


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


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, **named: Any
) -> None:
    """Makes objects of a dataclass nodes: their fields are the children."""
    names = field_names
    if names is None:
        names = [f.name for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]

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
        return [(GetAttrKey(name), item) for name, item in pairs], context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys)


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
    flatten_with_keys_fn=lambda shape: (
        [(SequenceKey(at), item) for at, item in enumerate(shape)],
        None,
    ),
)
