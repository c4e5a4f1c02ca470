"""The harness itself, on a tiny fake module in place of PyTorch and torchshim."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from collections import OrderedDict, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import oracle, record
from tests.oracle import Case, attempt, case, evaluate
from tests.outcome import Options, compare, describe, observe, read_array


class Tensor:
    """As much of a tensor as the harness looks at."""

    def __init__(self, data: Any, dtype: str = "float32", grad_fn: Any = None) -> None:
        carrier = "float32" if dtype == "bfloat16" else dtype
        self.array = np.array(data, carrier)
        self.dtype = f"torch.{dtype}"
        self.grad_fn = grad_fn
        self.requires_grad = grad_fn is not None
        self.shape = self.array.shape

    def detach(self) -> Tensor:
        return self

    def to(self, dtype: str) -> Tensor:
        return Tensor(self.array, dtype)

    def numpy(self) -> np.ndarray:
        return self.array

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


class PowBackward0:
    pass


def fake(**names: Any) -> SimpleNamespace:
    return SimpleNamespace(tensor=Tensor, float32="float32", **names)


def see(function: Any, torch: Any = None, **options: Any) -> dict[str, Any]:
    outcome = observe(function, torch or fake(), Options(**options))
    return json.loads(json.dumps(outcome.record))


def differ(expected: Any, actual: Any, **options: Any) -> list[str]:
    """The differences between two returned values."""
    return compare(
        see(lambda torch: expected, **options),
        see(lambda torch: actual, **options),
        Options(**options),
    )


# What is recorded


def test_a_tensor_is_described_by_everything_visible() -> None:
    seen = see(lambda torch: torch.tensor([[1, 2]], grad_fn=PowBackward0()))
    assert seen["value"] == {
        "$": "tensor",
        "dtype": "float32",
        "shape": [1, 2],
        "data": [1.0, 2.0],
        "requires_grad": True,
        "grad_fn": "PowBackward0",
    }


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("size", [0, 3, 100])
def test_values_survive_the_record(dtype: str, size: int) -> None:
    array = (np.random.default_rng(0).normal(size=size) * 3).astype(dtype)
    record = json.loads(json.dumps(describe(Tensor(array, dtype), fake(), Options())))
    back = read_array(record)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_non_finite_values_and_signed_zeros_survive_the_record() -> None:
    array = np.array([np.nan, np.inf, -np.inf, -0.0], "float32")
    record = json.loads(json.dumps(describe(Tensor(array), fake(), Options())))
    np.testing.assert_array_equal(read_array(record), array)
    assert math.copysign(1, read_array(record)[3]) == -1


def test_a_result_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="too large to record"):
        describe(Tensor(np.zeros(100_000)), fake(), Options())


def test_python_values_keep_their_kinds() -> None:
    pair = namedtuple("pair", "values indices")
    values = [1, 1.0, True, None, "text", 1j, (1,), [1], {"a": 1}, {2, 1}, pair(1, 2)]
    values += [OrderedDict(a=1), np.float32(1), np.zeros(2), int, ValueError("no")]
    records = [json.dumps(describe(v, fake(), Options())) for v in values]
    assert len(set(records)) == len(records)
    assert json.loads(records[10])["names"] == ["values", "indices"]


def test_generators_show_each_value_as_it_is_then() -> None:
    def changes(torch: Any) -> Any:
        x = torch.tensor([0.0])
        yield x
        x.array += 1
        yield x
        raise RuntimeError("the end")

    seen = see(changes)
    assert [value["data"] for value in seen["yields"]] == [[0.0], [1.0]]
    assert seen["error"]["text"] == "the end"


def test_printed_text_is_kept_without_addresses() -> None:
    assert see(lambda torch: print("<X at 0x7f12ab34cd>"))["out"] == "<X at 0x...>\n"


def test_warnings_are_kept_once_without_source_places() -> None:
    def warn(torch: Any) -> None:
        for _ in range(2):
            warnings.warn("old (Triggered internally at /a/b.cpp:12.)", stacklevel=1)

    assert see(warn)["warnings"] == [["UserWarning", "old"]]
    assert "warnings" not in see(warn, warnings=False)


def test_exceptions_keep_type_builtin_base_text_and_cause() -> None:
    class LinAlgError(RuntimeError):
        pass

    def fail(torch: Any) -> None:
        raise LinAlgError("singular") from ValueError("zero")

    error = see(fail)["error"]
    assert (error["type"], error["base"]) == ("LinAlgError", "RuntimeError")
    assert error["cause"]["text"] == "zero"


def test_each_case_starts_and_ends_in_the_default_state() -> None:
    calls: list[Any] = []
    state = fake(
        manual_seed=lambda seed: calls.append(("seed", seed)),
        set_default_dtype=lambda dtype: calls.append(("dtype", dtype)),
        set_grad_enabled=lambda mode: calls.append(("grad", mode)),
        set_printoptions=lambda profile: calls.append(("print", profile)),
    )

    def fail(torch: Any) -> None:
        calls.append("run")
        raise RuntimeError

    see(fail, state)
    defaults = [("grad", True), ("dtype", "float32"), ("print", "default"), ("seed", 0)]
    assert calls == [*defaults, "run", *defaults]


# How records are compared


@pytest.mark.parametrize(
    ("dtype", "inside", "outside"),
    [
        ("float16", 5e-4, 2e-3),
        ("bfloat16", 1e-2, 2e-2),
        ("float32", 5e-6, 2e-5),
        ("float64", 1e-8, 3e-7),
        ("complex64", 5e-6, 2e-5),
    ],
)
def test_tolerances_follow_the_dtype(dtype: str, inside: float, outside: float) -> None:
    carrier = "float64" if dtype == "float64" else "float32"

    def off_by(distance: float) -> Tensor:
        tensor = Tensor([1.0], dtype)
        tensor.array = tensor.array.astype(np.result_type(tensor.array, carrier))
        tensor.array = tensor.array + np.array(distance, carrier)
        return tensor

    assert differ(Tensor([1.0], dtype), off_by(inside)) == []
    [difference] = differ(Tensor([1.0], dtype), off_by(outside))
    assert "1 of 1 values differ" in difference


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (Tensor([1]), Tensor([1], "float64")),
        (Tensor([1]), Tensor([[1]])),
        (Tensor([1]), Tensor([1], grad_fn=PowBackward0())),
        (Tensor([1], "int64"), Tensor([2], "int64")),
        (Tensor([np.nan]), Tensor([0.0])),
        (Tensor([np.inf]), Tensor([3e38])),
        (Tensor([np.nan + 0j], "complex64"), Tensor([0j], "complex64")),
        (1, 1.0),
        (1, True),
        ("a", "b"),
        (1.0, 1.0001),
        (math.nan, 1.0),
        ((1,), [1]),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (None, Tensor([1])),
        (ValueError("a"), ValueError("b")),
        (ValueError("a"), TypeError("a")),
        (np.zeros(2), Tensor([0, 0])),
    ],
)
def test_differences_are_found(expected: Any, actual: Any) -> None:
    assert differ(expected, actual)
    assert not differ(expected, expected)
    assert not differ(actual, actual)


def test_exact_tells_signed_zeros_apart_but_not_nans() -> None:
    assert differ(Tensor([0.0]), Tensor([-0.0])) == []
    assert differ(Tensor([0.0]), Tensor([-0.0]), exact=True)
    assert differ(0.0, -0.0, exact=True)
    assert differ(Tensor([1.0]), Tensor([1.0 + 2e-7]), exact=True)
    assert differ(Tensor([np.nan]), Tensor([np.nan]), exact=True) == []


def test_an_override_only_loosens_with_a_reason() -> None:
    near = Tensor([1.0]), Tensor([1.001])
    assert differ(*near, rtol=0.1)
    assert differ(*near, rtol=0.1, why="an iterative method") == []
    assert differ(Tensor([1.0]), Tensor([1.0 + 1e-6]), rtol=0, atol=0)


def test_a_float_that_float32_holds_is_judged_as_one() -> None:
    assert differ(float(np.float32(0.1)), 0.1) == []
    assert differ(0.1, 0.1 + 1e-6)


def test_strides_are_compared_when_asked() -> None:
    plain = Tensor(np.zeros((2, 3)))
    transposed = Tensor(np.zeros((2, 3)))
    transposed.array = np.asfortranarray(transposed.array)
    assert differ(plain, transposed) == []
    assert differ(plain, transposed, stride=True)


def test_error_texts_may_be_left_out() -> None:
    first, second = (see(lambda t, w=w: evaluate(t, w)) for w in ("1/0", "1//0"))
    assert compare(first, second, Options())
    assert compare(first, second, Options(message=False)) == []


def test_missing_and_unexpected_parts_are_named() -> None:
    prints, raises = see(lambda t: print("a")), see(lambda t: evaluate(t, "1/0"))
    assert compare(prints, raises, Options()) == [
        "unexpected error: ZeroDivisionError: division by zero",
        "expected out: 'a\\n'",
        "expected value: None",
    ]


def test_numbers_within_text_when_asked() -> None:
    options = Options(numbers_in_text=True)
    for numbers in ((1.0, 1.000001), (0.5 + 2.5j, 0.5 + 2.500001j)):
        first, second = (see(lambda t, x=x: print("loss", x)) for x in numbers)
        assert compare(first, second, Options())
        assert compare(first, second, options) == []
    assert compare(first, see(lambda t: print("loss", 0.5 + 2.6j)), options)


# Declaring


def names(family: Any) -> list[str]:
    return [case.name for case in family.cases]


def test_families() -> None:
    @case.over("a", 1, None)
    def single(torch: Any, value: Any) -> Any:
        return value

    @case.over((1, 2), (3, 4))
    def pair(torch: Any, a: int, b: int) -> int:
        return a * b

    @case.over(dim=[0, -1], keepdim=[False, True])
    def product(torch: Any, dim: int, keepdim: bool) -> Any:
        return dim, keepdim

    @case.over({"one": 1, "two": [2]})
    def named(torch: Any, value: Any) -> Any:
        return value

    @case.lines("""
        # a comment
        x = [1]; x.append(2); x

        1 + 1   # two
        ";"
    """)
    def lines(torch: Any, line: str) -> Any:
        return evaluate(torch, line)

    assert names(single) == ["single[a]", "single[1]", "single[None]"]
    assert [c.run(None) for c in pair.cases] == [2, 12]
    assert names(product)[1] == "product[dim=0,keepdim=True]"
    assert product.cases[1].run(None) == (0, True)
    assert [c.run(None) for c in named.cases] == [1, [2]]
    assert [c.run(None) for c in lines.cases] == [[1, 2], 2, ";"]
    assert single(None, 5) == 5
    for family in (single, pair, product, named, lines):
        for made in family.cases:  # so that no case of this module is a test
            assert isinstance(made, Case)


def test_names_must_differ() -> None:
    with pytest.raises(ValueError, match="have the parameters 1"):
        case.over(1, 1)

    @case
    def twice(torch: Any) -> None: ...

    with pytest.raises(ValueError, match=r"two cases named .*twice"):

        @case
        def twice(torch: Any) -> None: ...


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="tolerance"):
        case(tolerance=1)


def test_attempt_gives_the_result_or_the_exception() -> None:
    assert attempt(int, "3") == 3
    assert isinstance(attempt(int, "x"), ValueError)


# Recording and judging


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(oracle, "EXPECTED", tmp_path)
    oracle.expected_records.cache_clear()
    return tmp_path


@case
def doubles(torch: Any) -> Any:
    return torch.double(torch.tensor([1.5]))


@case(raises=AttributeError)
def reads_what_is_missing(torch: Any) -> Any:
    return torch.missing


@case
def has_a_slip(torch: Any) -> Any:
    return torhc.tensor(1)  # noqa: F821


# The three above are for the tests below: pytest is not to collect them.
CASES = {f.__name__: f.cases[0] for f in (doubles, reads_what_is_missing, has_a_slip)}
del doubles, reads_what_is_missing, has_a_slip

RIGHT = fake(double=lambda x: Tensor(x.array * 2))
WRONG = fake(double=lambda x: Tensor(x.array + 2))


def test_recording_then_checking(recorded: Path) -> None:
    record.record_module("tests.test_m", [CASES["doubles"]], RIGHT, errors=False)
    first = (recorded / "test_m.json.gz").read_bytes()
    record.record_module("tests.test_m", [CASES["doubles"]], RIGHT, errors=False)
    assert (recorded / "test_m.json.gz").read_bytes() == first
    oracle.check(CASES["doubles"], "tests.test_m", RIGHT, "recorded")
    with pytest.raises(oracle.Mismatch, match=r"expected 3\.0, got 3\.5"):
        oracle.check(CASES["doubles"], "tests.test_m", WRONG, "recorded")
    assert record.check_module("tests.test_m", [CASES["doubles"]], RIGHT) == 0
    assert record.check_module("tests.test_m", [CASES["doubles"]], WRONG) == 1


def test_a_missing_recording_says_how_to_record(recorded: Path) -> None:
    with pytest.raises(oracle.Mismatch, match=r"python -m tests\.record test_m"):
        oracle.check(CASES["doubles"], "tests.test_m", RIGHT, "recorded")


def test_a_slip_in_a_case_is_not_recorded(recorded: Path) -> None:
    cases = [CASES["has_a_slip"], CASES["reads_what_is_missing"]]
    assert record.record_module("tests.test_m", cases, RIGHT, errors=False) == 1
    assert list(oracle.expected_records("tests.test_m")) == ["reads_what_is_missing"]


def test_live_comparison(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "find_torch", lambda: RIGHT)
    oracle.check(CASES["doubles"], "tests.test_m", RIGHT, "live")
    with pytest.raises(oracle.Mismatch, match="live"):
        oracle.check(CASES["doubles"], "tests.test_m", WRONG, "live")
    # A stale recording is no excuse: both are compared.
    record.record_module("tests.test_m", [CASES["doubles"]], WRONG, errors=False)
    for module in (RIGHT, WRONG):
        with pytest.raises(oracle.Mismatch):
            oracle.check(CASES["doubles"], "tests.test_m", module, "auto")
    monkeypatch.setattr(oracle, "find_torch", lambda: None)
    with pytest.raises(oracle.Mismatch, match="needs torch"):
        oracle.check(CASES["doubles"], "tests.test_m", RIGHT, "live")


SCRIPT = """
import sys, types
from pathlib import Path
from tests import oracle
from tests.oracle import case

sys.modules["torchshim"] = types.SimpleNamespace(one=lambda: 1)
oracle.EXPECTED = Path(__file__).parent

@case
def good(torch):
    return torch.one()

@case.over(1, 2)
def family(torch, n):
    return torch.one() * n

@case(xfail="known")
def known(torch):
    return torch.one()

@case(xfail="gone")
def fixed(torch):
    return torch.one()

@case
def broken(torch):
    raise RuntimeError("no such luck")

oracle.write_expected(__name__, {
    "good": {"value": 1}, "family[1]": {"value": 1}, "family[2]": {"value": 3},
    "known": {"value": 2}, "fixed": {"value": 1}, "broken": {"value": 1},
})
"""


def test_pytest_runs_cases(tmp_path: Path) -> None:
    script = tmp_path / "test_made.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p"]
    command += ["no:cacheprovider", "-rA", "--oracle=recorded", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [*command, "-c", "/dev/null", str(script)],
        cwd=oracle.ROOT.parent,
        capture_output=True,
        text=True,
    )
    text = done.stdout
    assert "3 failed, 2 passed, 1 xfailed" in text, text + done.stderr
    assert "value: expected 3, got 2" in text
    assert "test_made.py::family[2]" in text
    assert "[XPASS(strict)] gone" in text
    assert "RuntimeError: no such luck" in text
    assert "outcome.py" not in text
