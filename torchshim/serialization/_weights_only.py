"""An unpickler that executes nothing: the one of ``weights_only=True``.

It knows the few instructions that checkpoints are made of, and looks names up in a
list instead of importing them. Follows ``torch._weights_only_unpickler``.
"""

from __future__ import annotations

import functools
import io
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import cache
from pickle import UnpicklingError
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.dtypes import DTYPES
from torchshim._functions.legacy import TENSOR_TYPES
from torchshim._functions.nested_tensor import NestedTensor, _rebuild_njt
from torchshim._functions.rebuilding import _rebuild_from_type_v2
from torchshim._tensor import Tensor
from torchshim.nn.parameter import Parameter
from torchshim.serialization import _options
from torchshim.serialization._names import (
    NESTED,
    REBUILD,
    STORAGE_DTYPES,
    UNTYPED,
    DimRange,
    _get_layout,
    storage_type,
    torch_name,
)

# Never allowed, whatever a program allows.
_BLOCKED = ("sys", "os", "posix", "nt")
_PIECE = 1 << 20
_SETTABLE = (dict, OrderedDict, Counter)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    # What pickles make bytes of; other encodings would be looked up by import.
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise UnpicklingError(f"Can only encode strings as latin1, but got {encoding}")
    return text.encode(encoding)


def _bytearray(*args: Any) -> bytearray:
    # Not from a number, which would take that much memory.
    if args and type(args[0]) not in (bytes, bytearray, str):
        raise UnpicklingError(f"Can only make a bytearray of bytes, but got {args[0]}")
    return bytearray(*args)


@cache
def callables() -> dict[str, Any]:
    """What files may call or make instances of."""
    return {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": torchshim.Size,
        "torch.device": torchshim.device,
        "_codecs.encode": _encode,
        "builtins.bytearray": _bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        **{f"torch._utils.{name}": func for name, func in REBUILD.items()},
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
        f"{NESTED}._rebuild_njt": _rebuild_njt,
        "torch._dynamo.decorators._DimRange": DimRange,
    }


@cache
def allowed() -> dict[str, Any]:
    """What files may name: what they may call, and classes and constants."""
    return {
        **callables(),
        "torch.Tensor": Tensor,
        f"{NESTED}.NestedTensor": NestedTensor,
        **{repr(d): d for d in DTYPES if not d.name.startswith("bits")},
        **{f"torch.{name}": kind for name, kind in TENSOR_TYPES.items()},
        **{f"torch.{name}": storage_type(name) for name in STORAGE_DTYPES},
        **{f"torch.{name}": getattr(torchshim, name) for name in torchshim._SCHEMES},
        "torch.storage.TypedStorage": torchshim.storage.TypedStorage,
        "torch.storage.UntypedStorage": storage_type(UNTYPED),
    }


def allowed_by_user() -> dict[str, Any]:
    """What a program has allowed, by the name that files give it."""
    found: dict[str, Any] = {}
    for entry in _options.get_safe_globals():
        if not isinstance(entry, tuple):
            name = torch_name(entry) or (entry.__module__, entry.__qualname__)
            found[".".join(name)] = entry
            continue
        if len(entry) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but "
                f"got tuple of length: {len(entry)}"
            )
        if type(entry[1]) is not str:
            raise TypeError(
                "Expected second item in tuple to be str of callable full path, but "
                f"got: {type(entry[1])}"
            )
        found[entry[1]] = entry[0]
    return found


class Unpickler:
    """Reads one pickle; `persistent_load` gives its storages."""

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        self.encoding = encoding
        self._file = file

    def load(self) -> Any:
        """The object; UnpicklingError for whatever is not allowed.

        What is no pickle, or ends too early, raises what Python does where it is read:
        EOFError, KeyError, IndexError, struct.error, UnicodeDecodeError.
        """
        self.memo: dict[int, Any] = {}
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        while True:
            code = self._file.read(1)
            if isinstance(code, str) and code:
                raise AssertionError("Expected bytes, got str")
            if not code:
                raise EOFError
            if code == pickle.STOP:
                return self.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            step(self)

    # -- reading -----------------------------------------------------------------------

    def read(self, count: int) -> bytes:
        if count > _PIECE:  # no more memory than there is to fill it
            here = self._file.tell()
            count = min(count, self._file.seek(0, io.SEEK_END) - here)
            self._file.seek(here)
        return self._file.read(count)

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def line(self) -> str:
        return self._file.readline()[:-1].decode("utf-8")

    def popped(self) -> list[Any]:
        """What was pushed since the last mark."""
        items, self.stack = self.stack, self.marks.pop()
        return items

    @functools.cached_property
    def _users(self) -> dict[str, Any]:
        return allowed_by_user()  # whose errors are of files that need it

    # -- what could do harm ------------------------------------------------------------

    def find(self, module: str, name: str) -> Any:
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {path} whose module {module} is "
                "blocked."
            )
        found = allowed().get(path)
        if found is None:
            found = self._users.get(path)
        if found is None:
            if path.startswith("builtins."):
                path = name
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {path} was not an allowed global by "
                "default. Please use `torch.serialization.add_safe_globals("
                f"[{path}])` or the `torch.serialization.safe_globals([{path}])` "
                "context manager to allowlist this global if you trust this "
                "class/function."
            )
        return found

    def may_call(self, func: Any) -> bool:
        if any(func is f for f in callables().values()):
            return True
        return any(func is f for f in self._users.values())

    def global_(self) -> None:
        module, name = self.line(), self.line()
        # As Python 2 called it: what protocol 2 writes.
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        else:
            module = IMPORT_MAPPING.get(module, module)
        self.stack.append(self.find(module, name))

    def reduce(self) -> None:
        args = self.stack.pop()
        func = self.stack[-1]
        if not self.may_call(func):
            text = f"Trying to call reduce for unrecognized function {func}"
            if hasattr(func, "__self__"):
                text += f" which belongs to {func.__self__}"
            raise UnpicklingError(text)
        if func is _rebuild_from_type_v2 and not self.may_call(args[0]):
            text = f"Trying to call reduce for unrecognized function {args[0]}"
            raise UnpicklingError(text)
        self.stack[-1] = func(*args)

    def new(self) -> None:
        args = self.stack.pop()
        cls = self.stack.pop()
        tensors = cls is Tensor or cls in TENSOR_TYPES.values()
        if cls is Parameter:
            made = Parameter(*args)
        elif tensors and not args:
            made = torchshim.empty(0, dtype=getattr(cls, "dtype", None))
        elif isinstance(cls, type) and self.may_call(cls):
            made = cls.__new__(cls, *args)
        else:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted "
                f"via `add_safe_globals` but got {cls}"
            )
        self.stack.append(made)

    def build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        kind = type(made)
        if kind is Tensor:
            storage, offset, size, stride = state  # as files of PyTorch 0.1 have it
            made.data = REBUILD["_rebuild_tensor"](storage, offset, size, stride)
        elif kind is DimRange:
            made.__setstate__(state)
        elif kind is OrderedDict:
            made.__dict__.update(state)
        elif any(kind is k for k in self._users.values()):
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
                return
            slots = None
            if isinstance(state, tuple) and len(state) == 2:
                state, slots = state
            made.__dict__.update(state or {})
            for name, value in (slots or {}).items():
                setattr(made, name, value)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted "
                f"via `add_safe_globals`, but got {kind}"
            )

    def persistent(self) -> None:
        key = self.stack.pop()
        if type(key) is not tuple and type(key) is not int:
            raise UnpicklingError(
                f"persistent_load id must be tuple or int, but got {type(key)}"
            )
        if type(key) is tuple and key and key[0] not in ("storage", b"storage"):
            raise UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(key[0])}"
            )
        self.stack.append(self.persistent_load(key))

    def persistent_load(self, saved: Any) -> Any:
        """What a file means by its description of a storage; set by who reads it."""
        raise UnpicklingError("unsupported persistent id encountered")

    # -- containers --------------------------------------------------------------------

    def append(self) -> None:
        item = self.stack.pop()
        self._list("append to").append(item)

    def appends(self) -> None:
        items = self.popped()
        self._list("extend").extend(items)

    def _list(self, verb: str) -> list[Any]:
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only {verb} lists, but got {type(target)}")
        return target

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._dict("SETITEM")[key] = value

    def set_items(self) -> None:
        items = self.popped()
        target = self._dict("SETITEMS")
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def _dict(self, instruction: str) -> Any:
        target = self.stack[-1]
        if type(target) not in _SETTABLE:
            raise UnpicklingError(
                f"Can only {instruction} for dict, collections.OrderedDict, "
                f"collections.Counter, but got {type(target)}"
            )
        return target

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def tuple_(self) -> None:
        items = self.popped()
        self.stack.append(tuple(items))

    def last(self, count: int) -> None:
        items = [self.stack[at] for at in range(-count, 0)]
        self.stack[-count:] = [tuple(items)]

    # -- values ------------------------------------------------------------------------

    def protocol(self) -> None:
        number = self.read(1)[0]
        if number != 2:
            warnings.warn(
                f"Detected pickle protocol {number} in the checkpoint, which was not "
                "the default pickle protocol used by `torch.load` (2). The "
                "weights_only Unpickler might not support all instructions implemented "
                "by this protocol, please file an issue for adding support if you "
                "encounter this.",
                stacklevel=2,
            )

    def string(self) -> None:
        data: Any = self.read(self.read(1)[0])
        if self.encoding != "bytes":
            data = data.decode(self.encoding, "strict")
        self.stack.append(data)

    def text(self) -> None:
        data = self.read(self.number("<I"))
        self.stack.append(str(data, "utf-8", "surrogatepass"))

    def recall(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def keep(self, index: int) -> None:
        self.memo[index] = self.stack[-1]


def _pushes(value: Callable[[], Any]) -> Callable[[Unpickler], None]:
    return lambda reader: reader.stack.append(value())


def _reads(form: str) -> Callable[[Unpickler], None]:
    return lambda reader: reader.stack.append(reader.number(form))


_STEPS: dict[bytes, Callable[[Any], None]] = {
    pickle.PROTO: Unpickler.protocol,
    pickle.GLOBAL: lambda r: r.global_(),
    pickle.REDUCE: lambda r: r.reduce(),
    pickle.NEWOBJ: lambda r: r.new(),
    pickle.BUILD: lambda r: r.build(),
    pickle.BINPERSID: lambda r: r.persistent(),
    pickle.APPEND: Unpickler.append,
    pickle.APPENDS: Unpickler.appends,
    pickle.SETITEM: Unpickler.set_item,
    pickle.SETITEMS: Unpickler.set_items,
    pickle.MARK: Unpickler.mark,
    pickle.TUPLE: Unpickler.tuple_,
    pickle.TUPLE1: lambda r: r.last(1),
    pickle.TUPLE2: lambda r: r.last(2),
    pickle.TUPLE3: lambda r: r.last(3),
    pickle.NONE: _pushes(lambda: None),
    pickle.NEWFALSE: _pushes(bool),
    pickle.NEWTRUE: _pushes(lambda: True),
    pickle.EMPTY_TUPLE: _pushes(tuple),
    pickle.EMPTY_LIST: _pushes(list),
    pickle.EMPTY_DICT: _pushes(dict),
    pickle.EMPTY_SET: _pushes(set),
    pickle.BININT: _reads("<i"),
    pickle.BININT1: lambda r: r.stack.append(r.read(1)[0]),
    pickle.BININT2: _reads("<H"),
    pickle.BINFLOAT: _reads(">d"),
    pickle.LONG1: lambda r: r.stack.append(pickle.decode_long(r.read(r.read(1)[0]))),
    pickle.BINUNICODE: Unpickler.text,
    pickle.SHORT_BINSTRING: Unpickler.string,
    pickle.BINGET: lambda r: r.recall(r.read(1)[0]),
    pickle.LONG_BINGET: lambda r: r.recall(r.number("<I")),
    pickle.BINPUT: lambda r: r.keep(r.read(1)[0]),
    pickle.LONG_BINPUT: lambda r: r.keep(r.number("<I")),
}
