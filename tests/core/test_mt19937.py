"""The host generator and its fills against PyTorch 2.13, to the bit.

`CASES` are sequences of calls on one generator. Their results stand in
`tests/expected/mt19937.npz`; where torch is installed they are compared live as well.
Record them again with `python -m tests.core.test_mt19937 --record`.
"""

from __future__ import annotations

import doctest
import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from torchshim._core import (
    host_integers,
    host_math,
    host_random,
    mt19937,
)
from torchshim._core.mt19937 import MT19937

try:
    torch: Any = importlib.import_module("torch")
except ImportError:
    torch = None
EXPECTED = Path(__file__).parents[1] / "expected" / "mt19937.npz"

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
UNSIGNED = ("uint16", "uint32", "uint64")
EDGE_SIZES = (0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 40)


class Call(NamedTuple):
    """One fill: a name of `OURS` and `THEIRS`, a size, a dtype, other arguments."""

    name: str
    size: int
    dtype: str
    args: tuple[Any, ...] = ()


def _weights(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Deterministic numbers in (0, 1) that every dtype holds exactly."""
    count = int(np.prod(shape))
    values = (np.arange(count) * 37 % 101 + 1) / 128
    return values.astype(_numpy(dtype)).reshape(shape)


def _numpy(dtype: str) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype


OURS: dict[str, Any] = {
    "uniform": host_random.uniform,
    "normal": host_random.normal,
    "strided_normal": lambda g, n, d, *a: host_random.normal(
        g, n, d, *a, contiguous=False
    ),
    "normal_mean": lambda g, n, d, std: host_random.normal_tensors(
        g, _weights((n,), d), std
    ),
    "normal_std": lambda g, n, d, mean: host_random.normal_tensors(
        g, mean, _weights((n,), d)
    ),
    "normal_both": lambda g, n, d, other: host_random.normal_tensors(
        g, _weights((n, 1), d), _weights((3,), other)
    ),
    "log_normal": host_random.log_normal,
    "cauchy": host_random.cauchy,
    "exponential": host_random.exponential,
    "geometric": host_random.geometric,
    "bernoulli": host_random.bernoulli,
    "bernoulli_tensor": lambda g, n, d, other: host_random.bernoulli(
        g, n, d, _weights((n,), other)
    ),
    "random": host_integers.random_integers,
    "randperm": host_integers.randperm,
    "multinomial": lambda g, n, d, rows, *a: host_integers.multinomial(
        g, _weights((rows, n), d), *a
    ),
}


def _filled(method: str, *fixed: Any) -> Any:
    def fill(g: Any, n: int, d: str, *args: Any) -> Any:
        tensor = torch.empty(n, dtype=getattr(torch, d))
        return getattr(tensor, method)(*fixed, *args, generator=g)

    return fill


def _tensor(array: np.ndarray) -> Any:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: Any) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _their_random(g: Any, n: int, d: str, low: Any = None, high: Any = None) -> Any:
    tensor = torch.empty(n, dtype=getattr(torch, d))
    if low is None:
        return tensor.random_(generator=g)
    return tensor.random_(low, high, generator=g)


THEIRS: dict[str, Any] = {
    "uniform": _filled("uniform_"),
    "normal": _filled("normal_"),
    "strided_normal": lambda g, n, d, *a: (
        torch.empty(2 * n, dtype=getattr(torch, d))[::2]
        .normal_(*a, generator=g)
        .contiguous()
    ),
    "normal_mean": lambda g, n, d, std: torch.normal(
        _tensor(_weights((n,), d)), std, generator=g
    ),
    "normal_std": lambda g, n, d, mean: torch.normal(
        mean, _tensor(_weights((n,), d)), generator=g
    ),
    "normal_both": lambda g, n, d, other: torch.normal(
        _tensor(_weights((n, 1), d)), _tensor(_weights((3,), other)), generator=g
    ),
    "log_normal": _filled("log_normal_"),
    "cauchy": _filled("cauchy_"),
    "exponential": _filled("exponential_"),
    "geometric": _filled("geometric_"),
    "bernoulli": _filled("bernoulli_"),
    "bernoulli_tensor": lambda g, n, d, other: torch.empty(
        n, dtype=getattr(torch, d)
    ).bernoulli_(_tensor(_weights((n,), other)), generator=g),
    "random": _their_random,
    "randperm": lambda g, n, d: torch.randperm(n, dtype=getattr(torch, d), generator=g),
    "multinomial": lambda g, n, d, rows, *a: torch.multinomial(
        _tensor(_weights((rows, n), d)), *a, generator=g
    ),
}


def _cases() -> dict[str, tuple[int, list[Call]]]:
    """name -> (seed, calls)"""
    cases: dict[str, tuple[int, list[Call]]] = {}
    for d in FLOATS:
        for name, args in {
            "uniform": ((), (-0.3, 1.37), (0.1, 0.2), (5.0, 5.0), (-100.0, 3.3)),
            "normal": ((), (0.3, 1.7), (-2.0, 0.05), (1.0, 0.0)),
            "strided_normal": ((), (0.3, 1.7)),
            "log_normal": ((), (-0.3, 0.7)),
            "cauchy": ((), (0.3, 1.7)),
            "exponential": ((), (0.37,)),
        }.items():
            for place, arg in enumerate(args):
                calls = [Call(name, n, d, arg) for n in EDGE_SIZES]
                cases[f"{name}-{d}-{place}"] = (3 + place, calls)
        cases[f"normal_tensors-{d}"] = (
            11,
            [Call("normal_mean", n, d, (1.3,)) for n in (1, 7, 40)]
            + [Call("normal_std", n, d, (-0.7,)) for n in (1, 7, 40)]
            + [Call("normal_both", n, d, (e,)) for n in (1, 40) for e in FLOATS],
        )
        cases[f"multinomial-{d}"] = (
            12,
            [
                Call("multinomial", 9, d, (2, 1)),
                Call("multinomial", 9, d, (3, 5)),
                Call("multinomial", 40, d, (1, 100, True)),
                Call("multinomial", 9, d, (2, 30, True)),
            ],
        )
    for d in ("complex64", "complex128"):
        calls = [Call(name, n, d) for name in ("uniform", "normal") for n in (3, 9, 20)]
        cases[f"complex-{d}"] = (4, calls)
    for d in (*FLOATS, *INTEGERS, "bool"):
        cases[f"random-{d}"] = (5, [Call("random", n, d) for n in (0, 1, 40)])
        cases[f"bernoulli-{d}"] = (
            6,
            [Call("bernoulli", 33, d, (p,)) for p in (0.0, 0.3, 1.0)]
            + [Call("bernoulli_tensor", 33, d, (e,)) for e in FLOATS],
        )
        if d != "bool":
            calls = [Call("geometric", 33, d, (p,)) for p in (0.05, 0.5, 0.99)]
            cases[f"geometric-{d}"] = (7, calls)
    for d in (*INTEGERS, *UNSIGNED, *FLOATS):
        bounds: list[tuple[int | None, ...]] = [(0, 10), (3, 4), (0, 100)]
        if d != "uint64":
            bounds += [(5, None)]
        if d in ("uint32", "int64", "uint64", "float32", "float64", "bfloat16"):
            bounds += [(0, 2**28 - 1), (0, 2**28), (7, 2**31 + 3)]
        if d in ("int64", "float32", "float64", "bfloat16"):
            bounds += [(-(2**63), None), (-5, 2**33), (-(2**62), 2**62 + 5)]
        if d in ("int8", "int32", "int64", *FLOATS):
            bounds += [(-7, 9)]
        cases[f"randint-{d}"] = (8, [Call("random", 20, d, b) for b in bounds])
    for d in (*INTEGERS, *FLOATS):
        calls = [Call("randperm", n, d) for n in (0, 1, 2, 5, 33, 100)]
        cases[f"randperm-{d}"] = (9, calls)
    cases["randperm-long"] = (10, [Call("randperm", n, "int64") for n in (299, 1000)])
    cases["long"] = (
        13,
        [Call("normal", 1000, d) for d in FLOATS]
        + [Call("uniform", 1000, d) for d in FLOATS],
    )
    cases["interleaved"] = (
        2**40 + 17,
        [
            Call("normal", 3, "float32"),
            Call("uniform", 5, "float64"),
            Call("normal", 4, "bfloat16"),
            Call("random", 1, "int64"),
            Call("normal", 20, "float32"),
            Call("normal", 1, "float64", (2.0, 3.0)),
            Call("randperm", 7, "int64"),
            Call("log_normal", 3, "float32"),
            Call("strided_normal", 21, "float32"),
            Call("bernoulli", 9, "bool", (0.4,)),
            Call("exponential", 3, "float16"),
            Call("normal", 2, "float16"),
        ],
    )
    return cases


CASES = _cases()


def _ours(seed: int, calls: list[Call]) -> list[np.ndarray]:
    generator = MT19937(seed)
    results = [OURS[c.name](generator, c.size, c.dtype, *c.args) for c in calls]
    return [*results, generator.get_state()]


def _theirs(seed: int, calls: list[Call]) -> list[np.ndarray]:
    generator = torch.Generator().manual_seed(seed)
    results = [
        _array(THEIRS[c.name](generator, c.size, c.dtype, *c.args)) for c in calls
    ]
    return [*results, generator.get_state().numpy()]


def _bytes(results: list[np.ndarray]) -> np.ndarray:
    """All results of a case as bytes; of the state only what can't be derived."""
    *values, state = results
    parts = [v.tobytes() for v in values] + [state[:32].tobytes(), state[5016:]]
    return np.frombuffer(b"".join(bytes(p) for p in parts), np.uint8)


@pytest.fixture(scope="module")
def expected() -> Any:
    return np.load(EXPECTED)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*is out of bounds")
def test_recorded(name: str, expected: Any) -> None:
    np.testing.assert_array_equal(_bytes(_ours(*CASES[name])), expected[name])


def test_nothing_recorded_is_left_out(expected: Any) -> None:
    assert set(expected.files) == {*CASES, "errors"}
    assert len(expected["errors"]) == len(ERRORS)


def _assert_same(seed: int, calls: list[Call]) -> None:
    for call, ours, theirs in zip(
        [*calls, "state"], _ours(seed, calls), _theirs(seed, calls), strict=True
    ):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, call
        assert ours.tobytes() == theirs.tobytes(), call


@pytest.mark.live
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*is out of bounds")
def test_live(name: str) -> None:
    for seed in (CASES[name][0], 123456789):
        _assert_same(seed, CASES[name][1])


@pytest.mark.live
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_small_size_live(dtype: str) -> None:
    for seed in range(5):
        _assert_same(seed, [Call("normal", n, dtype) for n in range(41)])
        _assert_same(seed, [Call("uniform", n, dtype) for n in range(41)])


@pytest.mark.live
@pytest.mark.parametrize("dtype", FLOATS)
def test_many_numbers_live(dtype: str) -> None:
    calls = [Call("normal", 200_003, dtype), Call("normal", 99_999, dtype, (0.1, 3.3))]
    _assert_same(1, [*calls, Call("uniform", 200_003, dtype, (-0.05, 0.07))])


@pytest.mark.live
@pytest.mark.filterwarnings("ignore:.*is out of bounds")
def test_shuffled_calls_on_one_generator_live() -> None:
    choose = np.random.default_rng(0)
    pool = [call for _, calls in CASES.values() for call in calls]
    for seed in range(60):
        picked = [pool[i] for i in choose.integers(0, len(pool), 15)]
        _assert_same(seed, picked)


@pytest.mark.live
def test_randperm_of_many_lengths_live() -> None:
    for size in [*range(40), 298, 299, 300, 301, 4097, 60_000]:
        _assert_same(size, [Call("randperm", size, "int64")])


@pytest.mark.live
def test_seeds_live() -> None:
    for seed in (0, 1, -1, 2**32, 2**32 + 1, -(2**63), 2**63, 2**64 - 1):
        theirs = torch.Generator().manual_seed(seed)
        ours = MT19937(seed)
        assert ours.initial_seed() == theirs.initial_seed()
        np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())


@pytest.mark.live
def test_states_travel_both_ways_live() -> None:
    theirs, ours = torch.Generator().manual_seed(5), MT19937(6)
    kept = False
    for size in (0, 1, 3, 619, 1, 624, 5):
        torch.empty(size, dtype=torch.int32).random_(generator=theirs)
        torch.randn(size % 4, generator=theirs)  # odd sizes keep a second normal
        ours.set_state(theirs.get_state().numpy())
        np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
        kept ^= size % 2 == 1
        assert (ours.next_double_normal_sample is not None) == kept
        back = torch.Generator()
        back.set_state(torch.from_numpy(ours.get_state()))
        following = torch.randn(3, generator=back).numpy()
        assert host_random.normal(ours, 3).tobytes() == following.tobytes()
        torch.randn(3, generator=theirs)
        kept ^= True


@pytest.mark.live
def test_data_loader_order_live() -> None:
    generator = torch.Generator().manual_seed(3)
    loader = torch.utils.data.DataLoader(range(50), shuffle=True, generator=generator)
    theirs = [[int(x) for x in loader] for _ in range(3)]
    ours = MT19937(3)
    for order in theirs:
        host_integers.random_integers(ours, 1)  # the base seed of the workers
        assert host_integers.randperm(ours, 50).tolist() == order
        host_integers.randperm(ours, 50)  # drawn for the remainder, which is empty


# torch.manual_seed(0); list(DataLoader(range(8), shuffle=True))
SAMPLER_ORDER = [2, 0, 5, 3, 1, 4, 7, 6]


def test_random_sampler_order_without_generator() -> None:
    default = MT19937(0)
    host_integers.random_integers(default, 1)
    seed = int(host_integers.random_integers(default, 1)[0])
    order = host_integers.randperm(MT19937(seed), 8)
    assert order.tolist() == SAMPLER_ORDER
    if torch is not None:
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(range(8), shuffle=True)
        assert [int(x) for x in loader] == SAMPLER_ORDER


# ------------------------------------------------------------------ errors, warnings

ERRORS = [
    Call("uniform", 3, "float16", (0.0, 1e9)),
    Call("uniform", 3, "bfloat16", (-1e39, 0.0)),
    Call("uniform", 3, "float32", (2.5, 1.0)),
    Call("uniform", 3, "float32", (0.0, float("nan"))),
    Call("uniform", 3, "float32", (-3e38, 3e38)),
    Call("uniform", 0, "int32"),
    Call("normal", 3, "float32", (0.0, -1.5)),
    Call("normal", 3, "float32", (0.0, float("nan"))),
    Call("normal", 3, "int64"),
    Call("normal_mean", 3, "float32", (-1.0,)),
    Call("log_normal", 3, "float32", (0.0, 0.0)),
    Call("log_normal", 3, "int64"),
    Call("cauchy", 3, "float32", (0.0, -1.0)),
    Call("cauchy", 0, "int64"),
    Call("cauchy", 3, "bool"),
    Call("exponential", 3, "float32", (0.0,)),
    Call("exponential", 3, "int16"),
    Call("geometric", 3, "float32", (0.0,)),
    Call("geometric", 3, "int64", (1.0,)),
    Call("geometric", 3, "bool", (0.5,)),
    Call("bernoulli", 3, "float32", (1.5,)),
    Call("bernoulli", 3, "uint16", (0.5,)),
    Call("bernoulli", 3, "complex64", (0.5,)),
    Call("bernoulli_tensor", 3, "uint32", ("float32",)),
    Call("bernoulli_tensor", 3, "int32", ("int64",)),
    *(Call("random", 3, d) for d in (*UNSIGNED, "complex64")),
    *(Call("random", 3, d, (-(2**63), None)) for d in ("bool", "float16", "int32")),
    Call("random", 0, "int64", (5, 5)),
    Call("random", 3, "float32", (7, 3)),
    Call("random", 3, "float32", (2**25 + 1, 2**25 + 2)),
    Call("random", 3, "float16", (5000, None)),
    Call("random", 3, "uint8", (0, 257)),
    Call("random", 3, "uint8", (-1, 3)),
    Call("random", 3, "bool", (0, 3)),
    Call("random", 3, "int32", (0, 2**31 + 1)),
    Call("random", 3, "uint64", (5, None)),
    Call("random", 3, "float16", (0, 70000)),
    Call("random", 3, "complex64", (0, 7)),
]


def _error(run: Any, generator: Any, call: Call) -> str:
    try:
        run[call.name](generator, call.size, call.dtype, *call.args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "no error"


@pytest.mark.parametrize("place", range(len(ERRORS)))
def test_errors(place: int, expected: Any) -> None:
    generator = MT19937(0)
    told = _error(OURS, generator, ERRORS[place])
    assert told == expected["errors"][place]
    if torch is not None:
        assert told == _error(THEIRS, torch.Generator(), ERRORS[place])
    # what is rejected leaves the generator alone
    np.testing.assert_array_equal(generator.get_state(), MT19937(0).get_state())


BAD_WEIGHTS = [
    ([1.0, -1.0], 1, False),
    ([1.0, np.nan], 1, False),
    ([1.0, np.inf], 2, False),
    ([0.0, 0.0], 1, False),
    ([1.0, -1.0], 3, True),
    ([1.0, np.nan], 3, True),
    ([1.0, np.inf], 3, True),
    ([0.0, 0.0], 3, True),
]


@pytest.mark.parametrize("weights, count, replacement", BAD_WEIGHTS)
def test_multinomial_errors(weights: Any, count: int, replacement: bool) -> None:
    with pytest.raises(RuntimeError) as ours:
        array = np.float32(weights)
        host_integers.multinomial(MT19937(0), array, count, replacement)
    if torch is not None:
        with pytest.raises(RuntimeError) as theirs:
            torch.multinomial(torch.tensor(weights), count, replacement)
        assert str(ours.value) == str(theirs.value).splitlines()[0]


@pytest.mark.parametrize(
    "p", [[0.5, -0.1], [0.5, 1.5], [0.5, np.nan]], ids=["low", "high", "nan"]
)
def test_bernoulli_rejects_what_is_no_probability(p: list[float]) -> None:
    with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1") as ours:
        host_random.bernoulli(MT19937(0), 2, "float32", np.float32(p))
    if torch is not None:
        with pytest.raises(RuntimeError) as theirs:
            torch.bernoulli(torch.tensor(p))
        assert str(ours.value) == str(theirs.value)


def test_bounds_beyond_the_significand_warn() -> None:
    text = r"^to - 1 is out of bounds \[-\(2\^24\), 2\^24\]\. .* float can support"
    with pytest.warns(UserWarning, match=text):
        host_integers.random_integers(MT19937(0), 2, "float32", 0, 2**30)
    if torch is not None:
        with pytest.warns(UserWarning, match=text):
            torch.empty(2).random_(0, 2**30)


# ------------------------------------------------------------------------ the engine


def test_generator_state_errors() -> None:
    generator = MT19937(1)
    before = generator.get_state()
    for bad, error, text in [
        (np.zeros(5056, np.int8), TypeError, "RNG state must be a torch.ByteTensor"),
        (np.zeros(10, np.uint8), RuntimeError, "but found the input RNG state size to"),
        (np.zeros(5056, np.uint8), RuntimeError, "Invalid mt19937 state"),
    ]:
        with pytest.raises(error, match=text):
            generator.set_state(bad)
    np.testing.assert_array_equal(generator.get_state(), before)


def test_seed_errors() -> None:
    for bad, error, text in [
        (1.5, RuntimeError, "manual_seed expected a long, but got float"),
        (True, RuntimeError, "manual_seed expected a long, but got bool"),
        ("a", RuntimeError, "manual_seed expected a long, but got str"),
        (2**64, ValueError, "Overflow when unpacking long long"),
        (-(2**63) - 1, ValueError, "Overflow when unpacking long long"),
    ]:
        with pytest.raises(error, match=f"^{text}$"):
            MT19937().manual_seed(bad)  # type: ignore[arg-type]
        if torch is not None:
            with pytest.raises(error, match=f"^{text}$"):
                torch.Generator().manual_seed(bad)


def test_seed_is_not_deterministic_and_restarts_the_stream() -> None:
    one, two = MT19937(0), MT19937(0)
    assert one.seed() != two.seed()
    assert one.random() == MT19937(one.initial_seed()).random()


def test_manual_seed_and_clone_and_the_kept_normal() -> None:
    generator = MT19937(0)
    host_random.normal(generator, 3)
    twin = generator.clone()
    assert twin.next_double_normal_sample == generator.next_double_normal_sample
    assert host_random.normal(twin, 1) == host_random.normal(generator, 1)
    host_random.normal(generator, 1)
    assert generator.next_double_normal_sample is not None
    assert twin.next_double_normal_sample is None
    assert generator.manual_seed(0).next_double_normal_sample is None


def test_single_and_bulk_draws_agree() -> None:
    one, many = MT19937(9), MT19937(9)
    assert [one.random() for _ in range(1300)] == many.draw32(1300).tolist()
    pairs = [one.random() << 32 | one.random() for _ in range(700)]
    assert pairs == many.draw64(700).tolist()
    np.testing.assert_array_equal(one.get_state(), many.get_state())


def test_float_normal_sample_survives_the_state() -> None:
    generator = MT19937(0)
    generator.next_float_normal_sample = 0.5
    other = MT19937(1)
    other.set_state(generator.get_state())
    assert other.next_float_normal_sample == 0.5


def test_fused_multiply_add_rounds_once() -> None:
    from fractions import Fraction

    draw = np.random.default_rng(0)
    for width, fma in ((np.float32, host_math.fma32), (np.float64, host_math.fma64)):
        a = draw.normal(size=400).astype(width)
        for _ in range(10):
            b, c = (float(width(x)) for x in draw.normal(size=2) * [1.0, 1e-3])
            got = fma(a.astype(np.float64), b, c)
            for x, y in zip(a.tolist(), got.tolist(), strict=True):
                exact = Fraction(x) * Fraction(b) + Fraction(c)
                ulp = Fraction(float(np.spacing(width(abs(y)))))
                assert abs(exact - Fraction(y)) <= ulp / 2


def test_fused_multiply_add_half_way() -> None:
    # 1 + 2**-24 is half way between floats; the product's last bits decide.
    a = np.array([1.0, 1.0, -1.0])
    tiny = np.array([2.0**-24, 2.0**-24 * (1 + 2.0**-23), 2.0**-24])
    b = np.array([1.0, 1.0, 1.0])
    got = host_math.fma32(tiny, b, a)
    assert got.tolist() == [1.0, 1 + 2.0**-23, -1 + 2.0**-24]
    low = 2.0**-80 * np.ones(1)
    sums = host_math.fma32(low, np.ones(1), np.array([1 + 2.0**-23]))
    assert sums.tolist() == [1 + 2.0**-23]


def test_inside_out_shuffle_is_a_permutation() -> None:
    order = host_integers.inside_out(MT19937(0), 1000)
    assert sorted(order.tolist()) == list(range(1000))


@pytest.mark.parametrize("module", [mt19937, host_random, host_integers])
def test_examples(module: Any) -> None:
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def record() -> None:
    """Write what torch 2.13 gives for every case."""
    results = {name: _bytes(_theirs(*case)) for name, case in CASES.items()}
    errors = [_error(THEIRS, torch.Generator(), call) for call in ERRORS]
    EXPECTED.parent.mkdir(exist_ok=True)
    np.savez_compressed(EXPECTED, errors=np.array(errors), **results)


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit("usage: python -m tests.core.test_mt19937 --record")
    record()
