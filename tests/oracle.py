"""The differential harness: write a case once, compare torchshim with PyTorch 2.13.0.

A case is a plain function written against PyTorch's API that is given the module::

    from tests.oracle import attempt, case, evaluate

    @case
    def pow_prints(torch):
        a = torch.tensor(5.0, requires_grad=True)
        print(a**3)
        return a**3, a.grad

Everything it shows is compared: the value returned (tensors by dtype, shape, values,
`requires_grad` and `grad_fn` name; numbers, strings, tuples, dicts, dtypes, sizes,
named tuples, NumPy arrays; any other object by its repr), what it printed, its
warnings, and the exception it ended with (type and whole text). A generator shows
each value as it is at that moment, which is the way to watch in-place changes::

    @case
    def add_in_place(torch):
        x = torch.zeros(3)
        yield x
        yield x.add_(1)
        yield x._version

Errors: let the case end with one, or show several by `attempt`, which calls and gives
the exception (or the result)::

    @case
    def errors(torch):
        x = torch.ones(2, 3)
        yield attempt(x.view, 4)
        yield attempt(lambda: x @ x)

Families: one function, one case for each parameter (keywords give the product; a
dict of parameters gives the names)::

    @case.over("float32", "bfloat16", "int64")
    def ones(torch, dtype):
        return torch.ones(3, dtype=getattr(torch, dtype))

    @case.over(dim=[0, -1], keepdim=[False, True])
    def total(torch, dim, keepdim): ...

    @case.over((1, 2), (3, 4))            # tuples are spread over the arguments
    def pair(torch, a, b): ...

    @case.lines('''
    torch.arange(5).sum()
    x = torch.zeros(2); x[0] = 1; x       # the last expression is the result
    ''')
    def short(torch, line):
        return evaluate(torch, line)

Options go to `case(...)`, or beside the parameters as `case(...).over(...)`:

- `exact=True`, `rtol=`, `atol=`: tighter than `torch.testing.assert_close`'s defaults
  for the dtype, which hold otherwise. Looser needs `why="..."` as well.
- `stride=True`: compare strides too.
- `warnings=False`: leave warnings out.
- `message=False`: compare the types of exceptions only, not their texts.
- `numbers_in_text=True`: numbers within printed text get float32's tolerance.
- `raises=AttributeError`: allow an outcome that otherwise looks like a mistake in the
  case (NameError, AttributeError, SyntaxError, ImportError, AssertionError).
- `compiled=False`: NumPy computes what it can, whatever `--compile` says: for sweeps of
  hundreds of calls whose programs would run once each.
- `xfail="reason"`: a known difference (strict: the case must fail).

A test module that says `LIVE = False` is compared with recorded results only. Of the
cases of a module a tenth is compiled, the others are run as with `compiled=False`,
unless it says otherwise (`COMPILED_EVERY = 1`), or `--compile=fast` is asked for.

Cases start with `manual_seed(0)`, default dtype float32, grad mode on, default print
options, validated distributions, and "once" warnings shown always. Keep results small.

Recording, under an interpreter that has torch 2.13.0::

    python -m tests.record test_autograd         # tests/expected/test_autograd.json.gz
    python -m tests.record                       # every module
    python -m tests.record test_autograd --show pow_prints

Testing: `pytest tests/test_autograd.py` compares with the recording and, where torch
2.13.0 can be imported, with torch live too. `--oracle=recorded` or `--oracle=live`
asks for one alone; `live` needs no recording. `--oracle=sampled` is what follows a run
with the records in `.ci/run`: one case in three as under `live`; for the others it asks
whether torch still does what the record says, which takes a fraction of the time.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import inspect
import itertools
import json
import re
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.outcome import Options, Outcome, Record, compare, observe

TORCH_VERSION = "2.13.0"
ROOT = Path(__file__).resolve().parent
EXPECTED = ROOT / "expected"

#: Exceptions that more often come from a slip in the case than from PyTorch.
SUSPICIOUS = (NameError, AttributeError, SyntaxError, ImportError, AssertionError)


# Declaring cases -------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One function with one choice of parameters."""

    name: str
    run: Callable[[Any], Any]
    options: Options

    def observe(self, torch: Any) -> Outcome:
        """Run against a module and record what is seen."""
        return observe(self.run, torch, self.options)


class Family:
    """A decorated function: its cases, still callable as the plain function."""

    def __init__(
        self, function: Callable[..., Any], parameters: dict[str, Any], options: Options
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.cases = [
            Case(
                f"{function.__name__}[{key}]" if key else function.__name__,
                functools.partial(_spread, function, arguments),
                options,
            )
            for key, arguments in parameters.items()
        ]
        _declare(self)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.function(*arguments, **keywords)


_DECLARED: dict[tuple[str, str], int] = {}


def _declare(family: Family) -> None:
    """Refuse a second case of the same name: it would silently hide the first."""
    function = family.function
    key = (function.__module__, function.__qualname__)
    line = function.__code__.co_firstlineno
    if _DECLARED.setdefault(key, line) != line:
        raise ValueError(
            f"{key[0]} has two cases named {key[1]}: lines {_DECLARED[key]} and {line}"
        )


@dataclass(frozen=True)
class Named:
    """Keyword arguments of one case, from `case.over(name=[...])`."""

    keywords: dict[str, Any]


def _spread(function: Callable[..., Any], arguments: Any, torch: Any) -> Any:
    if arguments is _NOTHING:
        return function(torch)
    if isinstance(arguments, Named):
        return function(torch, **arguments.keywords)
    if isinstance(arguments, tuple) and len(_parameters(function)) > 2:
        return function(torch, *arguments)
    return function(torch, arguments)


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


_NOTHING = object()


class _Declare:
    """The `case` decorator with its options."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        if function is None:
            if isinstance(raises := options.get("raises"), type):
                options["raises"] = (raises.__name__,)
            elif isinstance(raises, tuple | list):
                options["raises"] = tuple(r.__name__ for r in raises)
            return _Declare(replace(self._options, **options))
        return Family(function, {"": _NOTHING}, self._options)

    def over(self, *values: Any, **product: Any) -> Callable[[Any], Family]:
        """One case for each value, or for each combination of the keywords' values."""
        if values and product:
            raise TypeError("give parameters by position or by name, not both")
        parameters: dict[str, Any]
        if product:
            combinations = itertools.product(*product.values())
            named = [dict(zip(product, c, strict=True)) for c in combinations]
            pairs = [
                (",".join(f"{k}={_identify(v, i)}" for k, v in n.items()), Named(n))
                for i, n in enumerate(named)
            ]
        elif len(values) == 1 and isinstance(values[0], dict):
            pairs = list(values[0].items())
        else:
            pairs = [(_identify(value, i), value) for i, value in enumerate(values)]
        if not pairs:
            raise ValueError("a family without parameters has no cases")
        parameters = {}
        for key, value in pairs:
            if key in parameters:
                raise ValueError(f"two cases of one family have the parameters {key}")
            parameters[key] = value
        return lambda function: Family(function, parameters, self._options)

    def lines(self, text: str) -> Callable[[Any], Family]:
        """One case for each line of the text but blank lines and comments."""
        lines = [re.sub(r"\s+#\s.*$", "", line).strip() for line in text.splitlines()]
        return self.over(
            {line: line for line in lines if line and not line.startswith("#")}
        )


def _identify(value: Any, index: int) -> str:
    """A parameter's part of the case's name: stable between runs."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "-".join(_identify(item, index) for item in value)
    if callable(value):
        name = getattr(value, "__name__", "<lambda>")
        return name if name != "<lambda>" else str(index)
    text = repr(value)
    return text if "0x" not in text else str(index)


#: The decorator; see the top of this module.
case = _Declare(Options())


def attempt(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call, and give the result or, when it raises, the exception."""
    try:
        return function(*arguments, **keywords)
    except Exception as error:
        return error


def evaluate(torch: Any, text: str, **names: Any) -> Any:
    """Execute statements divided by `;`, with the value of the last expression."""
    scope = {"torch": torch, **names}
    functional = getattr(getattr(torch, "nn", None), "functional", None)
    if functional is not None:
        scope.setdefault("F", functional)
        scope.setdefault("nn", torch.nn)
    *statements, last = [part.strip() for part in _split(text)]
    for statement in statements:
        exec(statement, scope)
    try:
        code = compile(last, "<case>", "eval")
    except SyntaxError:
        exec(last, scope)
        return None
    return eval(code, scope)


def _split(text: str) -> list[str]:
    """Divide at `;`, but not within quotes."""
    parts = re.findall(r"""(?:"[^"]*"|'[^']*'|[^;"'])+""", text)
    return [part for part in parts if part.strip()]


# Finding cases and their expected records ------------------------------------


def cases_of(module: Any) -> Iterator[Case]:
    """The cases declared in a test module, in their order."""
    for value in list(vars(module).values()):
        if isinstance(value, Family) and value.__module__ == module.__name__:
            yield from value.cases


def expected_path(module_name: str) -> Path:
    """Where a test module's recorded results stand."""
    return EXPECTED / f"{module_name.removeprefix('tests.')}.json.gz"


@functools.cache
def expected_records(module_name: str) -> dict[str, Record]:
    """A test module's recorded results by case name; empty when never recorded."""
    path = expected_path(module_name)
    if not path.exists():
        return {}
    return json.loads(gzip.decompress(path.read_bytes()))["cases"]


def write_expected(module_name: str, records: dict[str, Record]) -> Path:
    """Write recorded results: the same records give the same bytes."""
    path = expected_path(module_name)
    path.parent.mkdir(exist_ok=True)
    content = {"torch": TORCH_VERSION, "cases": records}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    expected_records.cache_clear()
    return path


@functools.cache
def find_torch() -> Any:
    """The real PyTorch of the version compared with, or None."""
    if sys.modules.get("torch") is not None:
        torch = sys.modules["torch"]
    else:
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError:
            return None
    if torch.__name__ != "torch":  # torchshim under its alias
        return None
    return torch if torch.__version__.split("+")[0] == TORCH_VERSION else None


# Judging ---------------------------------------------------------------------


class Mismatch(AssertionError):
    """The outcomes differ; the text lists where."""


def check(case: Case, module_name: str, subject: Any, oracle: str = "auto") -> None:
    """Compare a case's outcome under `subject` with PyTorch's, or raise `Mismatch`."""
    torch = find_torch() if oracle != "recorded" else None
    if oracle in ("live", "sampled") and torch is None:
        raise Mismatch(f"--oracle={oracle} needs torch {TORCH_VERSION}")
    if oracle == "sampled" and zlib.crc32(case.name.encode()) % _SAMPLED:
        # Its record is what torchshim was compared with in a run of its own.
        outcome = case.observe(torch)
        _judge(case, "the recorded result", _recorded(case, module_name), outcome)
        return
    outcome = case.observe(subject)
    if oracle not in ("live", "sampled"):
        _judge(case, "the recorded result", _recorded(case, module_name), outcome)
    if torch is not None:
        live = case.observe(torch).record
        _judge(case, f"torch {TORCH_VERSION} live", live, outcome)


# One case in so many is run by torchshim, too, under `--oracle=sampled`.
_SAMPLED = 3


def _recorded(case: Case, module_name: str) -> Record:
    recorded = expected_records(module_name).get(case.name)
    if recorded is None:
        raise Mismatch(
            f"no recorded result for {case.name}; record it with `python -m "
            f"tests.record {module_name.removeprefix('tests.')}` under an "
            f"interpreter that has torch {TORCH_VERSION}"
        )
    return recorded


def _judge(case: Case, against: str, expected: Record, outcome: Outcome) -> None:
    # A round trip through JSON, as the recorded side has had.
    actual = json.loads(json.dumps(outcome.record))
    differences = compare(expected, actual, case.options)
    if not differences:
        return
    text = "\n".join([f"{case.name} differs from {against}:", *differences])
    if outcome.error is not None:
        text += "\n\n" + _traceback(outcome.error)
    raise Mismatch(text)


def _traceback(error: Exception) -> str:
    """The traceback without the harness's own frames."""
    own = {__file__, str(ROOT / "outcome.py")}
    summary = traceback.TracebackException.from_exception(error)
    summary.stack = traceback.StackSummary.from_list(
        [frame for frame in summary.stack if frame.filename not in own]
    )
    return "".join(summary.format())


def subject() -> Any:
    """The module under test."""
    return sys.modules.get("torchshim") or importlib.import_module("torchshim")
