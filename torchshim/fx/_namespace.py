"""Names in a graph and in generated code: valid, and each of them once."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import sys
from typing import Any, NamedTuple

from torchshim import _pytree as pytree
from torchshim._core.device import device
from torchshim.fx import _pytree as fx_pytree


class _CustomBuiltin(NamedTuple):
    """What every generated function finds among its globals."""

    import_str: str
    obj: object


_custom_builtins = {
    "inf": _CustomBuiltin("from math import inf", math.inf),
    "nan": _CustomBuiltin("from math import nan", math.nan),
    "NoneType": _CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": _CustomBuiltin("import torch", sys.modules[__name__.partition(".")[0]]),
    "device": _CustomBuiltin("from torch import device", device),
    "fx_pytree": _CustomBuiltin("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": _CustomBuiltin("import torch.utils._pytree as pytree", pytree),
}
# Names that stand for something else; only that may have them.
_illegal_names: dict[str, Any] = {
    **{name: object() for name in keyword.kwlist},
    # `_` is there while a console shows values.
    **{name: each for name, each in vars(builtins).items() if name != "_"},
    **{name: each.obj for name, each in _custom_builtins.items()},
}

_illegal_characters = re.compile("[^0-9a-zA-Z_]+")
# A name, and the number at its end.
_name = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_camel = re.compile("(?<=[a-z])([A-Z])")


def _is_magic(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _snake_case(name: str) -> str:
    """A class's name as that of a variable: `LeakyReLU` -> `leaky_re_lu`."""
    return _camel.sub(r"_\1", name).lower()


class _Namespace:
    """Gives objects names that are used for nothing else."""

    def __init__(self) -> None:
        self._obj_to_name: dict[object, str] = {}
        self._used_names: set[str] = set()
        # The last number that a name without its number got.
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object | None) -> str:
        """A name like the candidate; an object that has one keeps it."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _name.match(candidate)
        if match is None:
            candidate = _illegal_characters.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
            match = _name.match(candidate)
            assert match is not None
        base, number = match.group(1, 2)
        if number is None or candidate in self._used_names:
            count = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self._used_names:
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Says whose a name is; AssertionError if the object has one."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: object, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
