"""What a case did, as a JSON-able record, and how two records are compared.

Records are made by duck typing alone, so the same code reads PyTorch's objects,
torchshim's and those of a fake module in a test. Usage stands in `tests.oracle`.
"""

from __future__ import annotations

import base64
import contextlib
import difflib
import inspect
import io
import math
import random
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compat_suite.closeness import TOLERANCES, close
from compat_suite.text import text_close

Record = Any  # what `json` can write

#: Arrays up to this size are written as numbers, larger ones as base64 bytes.
INLINE = 64
#: A result above this size belongs in the case as a summary, not in the repository.
LARGEST = 1 << 16

# What Python says from 3.12 or 3.13 on, and what 3.11 does.
_NEWER = [
    (re.compile(form), older)
    for form, older in (
        (r"(unexpected keyword argument '\w+')\. Did you mean '\w+'\?", r"\1"),
        (" and no __dict__ for setting new attributes", ""),
        ("Can't get local object", "Can't pickle local object"),
        (r"OrderedDict\(\{'(\w+)': ([^{}]*)\}\)", r"OrderedDict([('\1', \2)])"),
        (r"weakref at (\w+); to 'torch\.", r"weakref at \1; to '"),
    )
]
_ABSTRACT = re.compile(r" without an implementation for abstract (methods?) (.*)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
# JAX's own: where both engines are in one process, and where another process is writing
# the entry of its cache that this one reads.
_OF_JAX = ("os.fork() was called", "Error reading persistent compilation cache")
_TRIGGERED = re.compile(r"\s*\(Triggered internally at [^)]*\)")


@dataclass(frozen=True)
class Options:
    """How a case is recorded and compared; see `tests.oracle.case`."""

    rtol: float | None = None
    atol: float | None = None
    exact: bool = False
    why: str | None = None
    stride: bool = False
    warnings: bool = True
    message: bool = True
    numbers_in_text: bool = False
    raises: tuple[str, ...] = ()
    compiled: bool = True
    xfail: str | None = None

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """The tolerance for a dtype: an override only loosens it with a reason."""
        if self.exact:
            return 0.0, 0.0
        rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
        pick = (lambda own, default: own) if self.why else min
        return (
            rtol if self.rtol is None else pick(self.rtol, rtol),
            atol if self.atol is None else pick(self.atol, atol),
        )


@dataclass
class Outcome:
    """A case's record, and the exception it ended with, for the traceback."""

    record: dict[str, Record]
    error: Exception | None = field(default=None, repr=False)


# Running ---------------------------------------------------------------------


def observe(function: Callable[[Any], Any], torch: Any, options: Options) -> Outcome:
    """Run `function(torch)` in a fresh state and record everything it shows."""
    record: dict[str, Record] = {}
    values: list[Record] = []
    error: Exception | None = None
    printed = io.StringIO()
    reset(torch)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
        ):
            warnings.simplefilter("always")
            try:
                result = function(torch)
                if inspect.isgenerator(result):
                    # Closed at once: what it has entered ends before the next case.
                    with contextlib.closing(result):
                        for value in result:
                            values.append(describe(value, torch, options))
                    record["yields"] = values
                else:
                    record["value"] = describe(result, torch, options)
            except Exception as raised:
                error = raised
                record.pop("value", None)
                if values:
                    record["yields"] = values
                record["error"] = describe_exception(raised)
    finally:
        reset(torch)
    if printed.getvalue():
        record["out"] = tidy(printed.getvalue())
    shown = [
        [w.category.__name__, _TRIGGERED.sub("", tidy(str(w.message)))]
        for w in caught
        if not str(w.message).startswith(_OF_JAX)
    ]
    if options.warnings and shown:
        # PyTorch's "once" warnings come at every call here (see `reset`), and how
        # often an implementation passes the place is not part of its behaviour.
        record["warnings"] = [w for i, w in enumerate(shown) if w not in shown[:i]]
    return Outcome(record, error)


def reset(torch: Any) -> None:
    """Bring the module's global state, and Python's generators, to their defaults."""
    random.seed(0)
    np.random.seed(0)
    _call(torch, "set_grad_enabled", True)
    _call(torch, "set_default_dtype", getattr(torch, "float32", None))
    _call(torch, "set_printoptions", profile="default")
    _call(torch, "set_warn_always", True)
    get_device = getattr(torch, "get_default_device", None)
    if get_device is not None and str(get_device()) != "cpu":
        _call(torch, "set_default_device", None)
    _call(torch, "manual_seed", 0)
    # Told once in a process, whatever `set_warn_always` says.
    storage = getattr(torch, "storage", None)
    _call(storage, "_reset_warn_typed_storage_removal")
    name = f"{getattr(torch, '__name__', None)}.profiler.profiler"
    if profiler := sys.modules.get(name):
        profiler._WARNINGS_SHOWN.clear()
    # PyTorch's compiler, which `flex_attention` calls, ends validation for good.
    name = f"{getattr(torch, '__name__', None)}.distributions"
    if distributions := sys.modules.get(name):
        distributions.Distribution.set_default_validate_args(True)


def _call(torch: Any, name: str, *arguments: Any, **keywords: Any) -> None:
    function = getattr(torch, name, None)
    if function is not None:
        function(*arguments, **keywords)


# Describing ------------------------------------------------------------------


def tidy(text: str) -> str:
    """The text without what differs from run to run, or between Pythons."""
    for form, older in _NEWER:
        text = form.sub(older, text)
    text = _ABSTRACT.sub(
        lambda found: f" with abstract {found[1]} {found[2].replace(chr(39), '')}", text
    )
    return _ADDRESS.sub("0x...", text)


def describe_exception(error: BaseException) -> Record:
    """Type, nearest built-in base and text; the explicit cause too, if there is one."""
    base = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    record = {
        "$": "exception",
        "type": type(error).__name__,
        "base": base.__name__,
        "text": tidy(str(error)),
    }
    if error.__cause__ is not None:
        record["cause"] = describe_exception(error.__cause__)
    return record


def describe(value: Any, torch: Any, options: Options) -> Record:
    """The record of any value a case may return."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return tidy(value) if kind is str else value
    if kind is list:
        return [describe(item, torch, options) for item in value]
    if kind is complex:
        return {"$": "complex", "parts": [value.real, value.imag]}
    if isinstance(value, np.ndarray | np.generic):
        name = "ndarray" if isinstance(value, np.ndarray) else "numpy scalar"
        return {"$": name, **_array_fields(np.asarray(value), str(value.dtype))}
    if _is_tensor(value):
        return _describe_tensor(value, torch, options)
    if isinstance(value, tuple):
        record = {"$": "tuple", "items": [describe(v, torch, options) for v in value]}
        if kind is not tuple:
            record["type"] = kind.__name__
            if names := list(getattr(kind, "__match_args__", ())):
                record["names"] = names
        return record
    if isinstance(value, dict):
        pairs = [
            [describe(k, torch, options), describe(v, torch, options)]
            for k, v in value.items()
        ]
        record = {"$": "dict", "items": pairs}
        return record if kind is dict else {**record, "type": kind.__name__}
    if isinstance(value, set | frozenset):
        items = sorted((describe(v, torch, options) for v in value), key=repr)
        return {"$": kind.__name__, "items": items}
    if isinstance(value, BaseException):
        return describe_exception(value)
    if isinstance(value, type):
        return {"$": "type", "name": value.__name__}
    # What is left (dtype, device, layout, a module, a grad_fn) is told by its text.
    return {"$": "object", "type": kind.__name__, "text": tidy(repr(value))}


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and all(
        hasattr(value, name) for name in ("dtype", "detach", "requires_grad")
    )


def _describe_tensor(tensor: Any, torch: Any, options: Options) -> Record:
    record: dict[str, Record] = {"$": "tensor"}
    if type(tensor).__name__ != "Tensor":
        record["type"] = type(tensor).__name__
    if tensor.requires_grad:
        record["requires_grad"] = True
        if tensor.grad_fn is not None:
            record["grad_fn"] = type(tensor.grad_fn).__name__
    if options.stride:
        record["stride"] = list(tensor.stride())
    device = getattr(tensor, "device", "cpu")
    if str(device) != "cpu":
        record["device"] = str(device)
    dtype = str(tensor.dtype).removeprefix("torch.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = tensor.detach()
        layout = str(getattr(plain, "layout", "torch.strided"))
        if layout != "torch.strided":
            record["layout"] = layout
            plain = plain.to_dense()
        if str(device) == "meta":
            return {**record, "dtype": dtype, "shape": list(plain.shape)}
        plain = plain.cpu() if str(device) != "cpu" else plain
        for resolve in ("resolve_conj", "resolve_neg"):
            plain = getattr(plain, resolve, lambda plain=plain: plain)()
        if _carrier(dtype) != dtype:
            plain = plain.to(getattr(torch, _carrier(dtype)))
        return {**record, **_array_fields(np.asarray(plain.numpy()), dtype)}


def _carrier(dtype: str) -> str:
    """The NumPy dtype that holds values of `dtype` exactly."""
    if dtype == "complex32":
        return "complex64"
    if dtype.startswith(("bfloat", "float8")):
        return "float32"  # NumPy knows these names only once ml_dtypes is imported
    try:
        np.dtype(dtype)
    except TypeError:
        return "float32"
    return dtype


def _array_fields(array: np.ndarray, dtype: str) -> dict[str, Record]:
    if array.size > LARGEST:
        raise ValueError(
            f"a result of {array.size} values is too large to record: return a summary"
        )
    fields: dict[str, Record] = {"dtype": dtype, "shape": list(array.shape)}
    if array.dtype.kind == "O":
        fields["data"] = [tidy(repr(item)) for item in array.ravel()]
    elif array.dtype.kind not in "biufc":
        fields["data"] = [str(item) for item in array.ravel()]
    elif array.size > INLINE:
        ordered = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        fields["base64"] = base64.b64encode(ordered.tobytes()).decode()
    elif array.dtype.kind == "c":
        fields["data"] = [[v.real, v.imag] for v in array.ravel().tolist()]
    else:
        fields["data"] = array.ravel().tolist()
    return fields


def read_array(record: dict[str, Record]) -> np.ndarray:
    """The array of a tensor's record (bfloat16 and 8-bit floats as float32)."""
    carrier, shape = _carrier(record["dtype"]), record["shape"]
    if "base64" in record:
        raw = base64.b64decode(record["base64"])
        return np.frombuffer(raw, np.dtype(carrier).newbyteorder("<")).reshape(shape)
    data = record["data"]
    if carrier.startswith("complex"):
        data = [complex(*parts) for parts in data]
    if np.dtype(carrier).kind not in "biufc":
        return np.array(data, object).reshape(shape)
    return np.array(data, carrier).reshape(shape)


# Comparing -------------------------------------------------------------------


def compare(expected: Record, actual: Record, options: Options) -> list[str]:
    """Every difference between two cases' records, in words; empty when equal."""
    differences: list[str] = []
    for part in ("error", "out", "warnings", "yields", "value"):
        if part == "warnings" and not options.warnings:
            continue
        if part not in expected and part not in actual:
            continue
        if part not in expected or part not in actual:
            side, record = ("expected", expected)
            if part in actual:
                side, record = ("unexpected", actual)
            differences.append(f"{side} {part}: {_show(record[part])}")
        else:
            differences += _compare(part, expected[part], actual[part], options)
    return differences


def _compare(path: str, a: Record, b: Record, options: Options) -> list[str]:
    if isinstance(a, dict) and isinstance(b, dict) and a["$"] == b["$"]:
        return _compare_tagged(path, a, b, options)
    if isinstance(a, list) and isinstance(b, list):
        differences = []
        if len(a) != len(b):
            differences.append(f"{path}: expected {len(a)} items, got {len(b)}")
        for i, (left, right) in enumerate(zip(a, b, strict=False)):
            differences += _compare(f"{path}[{i}]", left, right, options)
        return differences
    if type(a) is not type(b):
        return [f"{path}: expected {_show(a)}, got {_show(b)}"]
    if isinstance(a, float):
        return _compare_floats(path, a, b, options)
    if isinstance(a, str) and a != b:
        rtol, atol = options.tolerance("float32")
        if options.numbers_in_text and text_close(a, b, rtol, atol):
            return []
        return [_text_difference(path, a, b)]
    return [] if a == b else [f"{path}: expected {_show(a)}, got {_show(b)}"]


def _compare_tagged(path: str, a: dict, b: dict, options: Options) -> list[str]:
    if "dtype" in a:
        return _compare_arrays(path, a, b, options)
    names = _names(a) if a["$"] == b["$"] == "dict" else None
    if names is not None and names == _names(b):
        # Named entries are told by their names.
        return [
            difference
            for name, (_, left), (_, right) in zip(
                names, a["items"], b["items"], strict=True
            )
            for difference in _compare(f"{path}[{name!r}]", left, right, options)
        ]
    skip = {"$"} if options.message or a["$"] != "exception" else {"$", "text", "cause"}
    differences = []
    for key in dict.fromkeys([*a, *b]):
        if key in skip:
            continue
        place = path if key in ("items", "parts") else f"{path}.{key}"
        if key in a and key in b:
            differences += _compare(place, a[key], b[key], options)
        else:
            left, right = (_show(side.get(key)) for side in (a, b))
            differences.append(f"{place}: expected {left}, got {right}")
    return differences


def _names(record: dict[str, Record]) -> list[Record] | None:
    keys = [key for key, _ in record["items"]]
    plain = "type" not in record and all(isinstance(key, str) for key in keys)
    return keys if plain else None


def _compare_floats(path: str, a: float, b: float, options: Options) -> list[str]:
    if math.isnan(a) and math.isnan(b):
        return []
    # `item()` of a float32 gives a float that float32 can hold: judge it as one.
    with np.errstate(over="ignore"):
        single = math.isfinite(a) and float(np.float32(a)) == a
    rtol, atol = options.tolerance("float32" if single else "float64")
    if options.exact:
        same = a == b and math.copysign(1, a) == math.copysign(1, b)
    else:
        same = a == b or (
            math.isfinite(a) and math.isfinite(b) and abs(a - b) <= atol + rtol * abs(a)
        )
    return [] if same else [f"{path}: expected {a!r}, got {b!r}"]


def _compare_arrays(path: str, a: dict, b: dict, options: Options) -> list[str]:
    differences = []
    for key in dict.fromkeys([*a, *b]):
        if key not in ("$", "data", "base64") and a.get(key) != b.get(key):
            differences.append(
                f"{path}.{key}: expected {a.get(key)!r}, got {b.get(key)!r}"
            )
    valued = all({"data", "base64"} & side.keys() for side in (a, b))
    if a["shape"] != b["shape"] or not valued:
        return differences
    if a["dtype"] != b["dtype"]:
        return [*differences, f"{path}: expected {_show(a)}, got {_show(b)}"]
    left, right = read_array(a), read_array(b)
    wrong = ~close(left, right, *options.tolerance(a["dtype"]), options.exact)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f" first at {list(first)}" if first else ""
        line = (
            f"{path}: {int(wrong.sum())} of {left.size} values differ,{place}: "
            f"expected {left[first].item()!r}, got {right[first].item()!r}"
        )
        if left.dtype.kind in "fc":
            line += f" (tolerance {options.tolerance(a['dtype'])})"
        if 1 < left.size <= INLINE:
            line += f"\n  expected {left.tolist()}\n  got      {right.tolist()}"
        differences.append(line)
    return differences


def _text_difference(path: str, a: str, b: str) -> str:
    if "\n" not in a.strip("\n") and "\n" not in b.strip("\n"):
        return f"{path}:\n  expected {a!r}\n  got      {b!r}"
    lines = difflib.unified_diff(
        a.splitlines(), b.splitlines(), "expected", "got", lineterm="", n=2
    )
    return f"{path}:\n" + "\n".join(f"  {line}" for line in lines)


def _show(record: Record) -> str:
    """A record in one short line for a message."""
    if isinstance(record, dict):
        if record["$"] == "exception":
            return f"{record['type']}: {record['text']}"
        if record["$"] == "tuple":
            return f"({', '.join(_show(item) for item in record['items'])})"
        if "data" in record or "base64" in record:
            values = read_array(record)
            text = values.tolist() if values.size <= INLINE else "..."
            return f"{record['$']}({text}, {record['dtype']}, {record['shape']})"
    text = str(record) if isinstance(record, dict) else repr(record)
    return text if len(text) <= 500 else text[:500] + "..."
