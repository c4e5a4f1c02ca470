"""Lists and dicts that refuse to be changed: what arguments of nodes are kept in.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node.args
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from torchshim._pytree import SUPPORTED_NODES, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]

_HELP = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n"
    "    node.args = new_args"
)


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. {_HELP}"
    )


_LIST_CHANGES = (
    *("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear"),
    *("extend", "insert", "pop", "remove", "reverse", "sort"),
)
_DICT_CHANGES = (
    *("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem"),
    *("setdefault", "update"),
)


def _refusing(*names: str) -> Callable[[type], type]:
    def add(cls: type) -> type:
        for name in names:
            setattr(cls, name, _no_mutation)
        return cls

    return add


class immutable_list(list[Any]):
    """A list that cannot be changed: TypeError.

    >>> immutable_list([1, 2])[0]
    1
    """

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed: TypeError.

    >>> immutable_dict(a=1)
    {'a': 1}
    """

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


_refusing(*_LIST_CHANGES)(immutable_list)
_refusing(*_DICT_CHANGES)(immutable_dict)


def _keyed(plain: type, tree: Any) -> Any:
    keys = importlib.import_module("torchshim.utils._pytree")
    return getattr(keys, f"_{plain.__name__}_flatten_with_keys")(tree)


def _register(cls: type, plain: type) -> None:
    node = SUPPORTED_NODES[plain]
    register_pytree_node(
        cls,
        node.flatten_fn,
        lambda items, context: cls(node.unflatten_fn(items, context)),
        serialized_type_name=f"torch.fx.immutable_collections.{cls.__name__}",
        # The plain one's, in a layer above this one.
        flatten_with_keys_fn=lambda tree: _keyed(plain, tree),
    )


_register(immutable_list, list)
_register(immutable_dict, dict)
