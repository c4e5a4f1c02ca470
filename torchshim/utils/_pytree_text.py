"""Specs of trees as text, and read back: JSON, as `torch.utils._pytree` writes it."""

from __future__ import annotations

import functools
import importlib
import json
from collections import OrderedDict, defaultdict, deque
from enum import Enum
from typing import Any, NoReturn

from torchshim import _warnings as warnings
from torchshim._pytree import (
    NAMEDTUPLE,
    NO_NAME,
    SERIALIZED_TYPES,
    TYPE_OF_NAME,
    Serialized,
    TreeSpec,
)

# The only one there is.
PROTOCOL = 1
_UNKNOWN = "Unknown protocol {}. Available protocols: [1]"
_ADVICE = "or register a custom serializer using _register_pytree_node."


class EnumEncoder(json.JSONEncoder):
    """JSON that may hold members of enumerations."""

    def default(self, obj: Any) -> Any:
        """A member of an enumeration by the names of its class and itself."""
        if not isinstance(obj, Enum):
            return super().default(obj)
        kind = type(obj)
        place = f"{kind.__module__}:{kind.__qualname__}"
        return {"__enum__": True, "fqn": place, "name": obj.name}


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """A member of an enumeration, if an object of JSON is one."""
    if "__enum__" not in obj:
        return obj
    module, _, place = obj["fqn"].partition(":")
    kind: Any = importlib.import_module(module)
    for part in place.split("."):
        kind = getattr(kind, part)
    return kind[obj["name"]]


def treespec_dumps(treespec: Any, protocol: int | None = None) -> str:
    """The text of a spec.

    >>> from torchshim.utils._pytree import tree_structure
    >>> treespec_dumps(tree_structure(()))
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    protocol = PROTOCOL if protocol is None else protocol
    if protocol != PROTOCOL:
        raise ValueError(_UNKNOWN.format(protocol))
    return json.dumps((protocol, _told(treespec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that a text is of."""
    protocol, told = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(_UNKNOWN.format(protocol))
    return _read(told)


def pytree_to_str(treespec: TreeSpec) -> str:
    """Deprecated: `treespec_dumps`."""
    text = "`pytree_to_str` is deprecated. Please use `treespec_dumps` instead."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """Deprecated: `treespec_loads`."""
    text = "`str_to_pytree` is deprecated. Please use `treespec_loads` instead."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return treespec_loads(json)


def _told(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    kind = spec.type
    known = SERIALIZED_TYPES.get(kind)
    if known is None:
        raise NotImplementedError(f"Serializing {kind} in pytree is not registered.")
    if known.serialized_type_name == NO_NAME:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, "
                + _ADVICE
            ) from error
    children = [_told(child) for child in spec.children()]
    name = known.serialized_type_name
    return {"type": name, "context": context, "children_spec": children}


def _read(told: dict[str, Any]) -> TreeSpec:
    name, context, children = told["type"], told["context"], told["children_spec"]
    if name is None and context is None and not children:
        return TreeSpec(None, None, ())
    if name not in TYPE_OF_NAME:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    known = SERIALIZED_TYPES[TYPE_OF_NAME[name]]
    if known.from_dumpable_context is not None:
        context = known.from_dumpable_context(context)
    else:
        try:
            context = json.loads(told["context"], object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError(
                "Unable to deserialize context. Please make the context json "
                "load-able, " + _ADVICE
            ) from error
    return TreeSpec(known.typ, context, map(_read, children))


def _name_of_namedtuple(cls: Any) -> str:
    known = SERIALIZED_TYPES.get(cls)
    if known is None or known.serialized_type_name == NO_NAME:
        why = (
            "didn't register a serializated_type_name"
            if known is None
            else "couldn't find a serializated_type_name"
        )
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we {why}. "
            "Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _namedtuple_of_name(name: Any) -> Any:
    if name not in TYPE_OF_NAME:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we "
            "couldn't find a serializated name."
        )
    return TYPE_OF_NAME[name]


_FACTORY = ("default_factory_module", "default_factory_name", "dict_context")


def _factory_and_keys(context: Any) -> dict[str, Any]:
    factory, keys = context
    return dict(
        zip(_FACTORY, (factory.__module__, factory.__qualname__, keys), strict=True)
    )


def _of_factory_and_keys(told: Any) -> list[Any]:
    def fail(text: str) -> NoReturn:
        raise AssertionError(text)

    if not isinstance(told, dict):
        fail("dumpable_context must be a dict")
    if set(told) != set(_FACTORY):
        fail(f"dumpable_context keys must be {set(_FACTORY)}, got {set(told)}")
    for key in _FACTORY[:2]:
        if not isinstance(told[key], str):
            fail(f"{key} must be a string")
    module, name, keys = (told[key] for key in _FACTORY)
    return [getattr(importlib.import_module(module), name), keys]


def _register() -> None:
    for kind in (tuple, list, dict, OrderedDict, deque):
        name = f"{kind.__module__}.{kind.__name__}"
        SERIALIZED_TYPES[kind] = Serialized(kind, name, None, None)
    for kind, name, *ways in (
        (NAMEDTUPLE, "namedtuple", _name_of_namedtuple, _namedtuple_of_name),
        (defaultdict, "defaultdict", _factory_and_keys, _of_factory_and_keys),
    ):
        SERIALIZED_TYPES[kind] = Serialized(kind, f"collections.{name}", *ways)
    for kind, known in SERIALIZED_TYPES.items():
        if known.serialized_type_name != NO_NAME:
            TYPE_OF_NAME[known.serialized_type_name] = kind


_register()
