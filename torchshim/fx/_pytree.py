"""Taking nested arguments apart as a spec says: what generated code calls."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from torchshim import return_types
from torchshim._pytree import PyTree, TreeSpec, tree_flatten

FlattenFnSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[PyTree, TreeSpec], bool]

SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any,
    flatten_fn_spec: FlattenFnSpec,
    flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None,
) -> None:
    """Says which parts of objects of a class a spec of theirs means."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: Any) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree at the places of a spec's; RuntimeError if it differs.

    >>> spec = tree_flatten([0, (0,)])[1]
    >>> tree_flatten_spec([1, (2, 3)], spec)
    [1, 2]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        parts = SUPPORTED_NODES[spec.type](pytree, spec)
        return [
            leaf
            for part, inner in zip(parts, spec.children(), strict=False)
            for leaf in tree_flatten_spec(part, inner)
        ]
    found, own = tree_flatten(pytree)
    if spec != own:
        raise RuntimeError(
            f"Real spec {own} of object {pytree} is different from expected spec "
            f"{spec}. Please file an issue at https://github.com/pytorch/pytorch/"
            "issues/new?template=bug-report.yml"
        )
    return found


def _items(values: Any, spec: TreeSpec) -> list[Any]:
    return [values[i] for i in range(spec.num_children)]


def _entries(values: Any, spec: TreeSpec) -> list[Any]:
    return [values[key] for key in spec.context]


def _as_long(values: Any, spec: TreeSpec) -> bool:
    return len(values) == spec.num_children


_KINDS = [getattr(return_types, name) for name in return_types.__all__]
register_pytree_flatten_spec(dict, _entries, _as_long)
for _kind in (list, tuple, *_KINDS, namedtuple):
    register_pytree_flatten_spec(_kind, _items, _as_long)
