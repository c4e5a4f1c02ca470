"""Printed tensors against PyTorch, character by character.

``tests/expected/printing.json.gz`` holds arrays, options and the text that PyTorch
printed. Where PyTorch is installed the same cases, and arbitrary ones, are compared
with it live. ``python -m tests.test_printing --record`` writes the file anew.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from torchshim import _printing

EXPECTED = Path(__file__).parent / "expected" / "printing.json.gz"

FLOATS = ["float32", "float64", "float16", "bfloat16"]
FLOAT8S = [f"float8_{kind}" for kind in ("e5m2", "e4m3fn", "e5m2fnuz", "e4m3fnuz")]
INTS = ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
COMPLEXES = ["complex64", "complex128"]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


# --- cases -----------------------------------------------------------------------

# Values, printed in every floating dtype that holds them.
FLOAT_VALUES: dict[str, list[float]] = {
    "zeros": [0.0, -0.0, 0.0],
    "one zero": [-0.0],
    "whole": [1, -2, 300],
    "whole, wide": [99999, -100000, 0],
    "whole, up to 1e8": [1e8, 1e8],
    "whole, above 1e8": [1e8 + 8, 1e8],
    "whole, ratio 1000": [1, 1000],
    "whole, ratio above 1000": [1, 1001],
    "whole with nan": [1, math.nan, -20, math.inf, -math.inf, -0.0],
    "only nan": [math.nan, math.nan],
    "only inf": [math.inf, -math.inf],
    "nan and zero": [math.nan, 0.0, -0.0],
    "nan wider than the numbers": [5, math.nan, -math.inf],
    "halves": [0.5, 1.5, 2.5, -0.5],
    "ties at the fourth digit": [0.00005, 0.00015, 0.00025, 0.12345, 0.12355],
    "exact ties": [0.03125, 0.09375, 0.15625, 0.00390625, -0.01171875],
    "carry": [0.99995, 0.99996, 9.99995, 9.99996],
    "carry makes it wider": [999.99996, 1.5],
    "carry, negative": [-999.99996, 999.5],
    "sci carry": [9.99996e9, 1.5],
    "sci carry to three digits": [9.99996e99, -1.5],
    "small": [1e-4, 2e-4],
    "just below 1e-4": [9.9999e-5, 0.01],
    "three-digit exponents": [1e100, -1e-100, 1e-9],
    "negative is longest": [-1e-100, 1e9],
    "positive only is long": [1e-100, -1e9],
    "denormal": [5e-324, 1e-310, -2e-308],
    "float32 denormal": [1e-45, -1e-40, 1.2e-38],
    "float16 extremes": [65504, -65504, 6e-8, 6.1e-5],
    "largest": [3.4028234e38, -1.7976931348623157e308],
    "ratio overflows": [1e308, 1e-308],
    "mixed magnitudes": [1e-3, 1.0, 123.456, -0.5],
    "mixed with zero": [0.0, 1e-3, 0.5],
    "mixed magnitudes beyond": [1e-3, 1.0, 1234.5],
    "negative with nan": [-1.25, math.nan, -math.inf],
    "sci with nan": [-1.25e-7, math.nan, math.inf, 0.0],
    "pi": [math.pi, -math.e, math.sqrt(2)],
    "huge whole": [2.0**53, 2.0**60],
    "one negative": [-123.456],
}
INT_VALUES: dict[str, list[int]] = {
    "small": [1, 2, 3],
    "zero": [0],
    "negative is longest": [-100, 99],
    "equal lengths": [-10, 100],
    "wide": [0, 127, 1],
    "int64 ends": [-(2**63), 2**63 - 1, 0],
    "int64 min": [-(2**63)],
    "int32 ends": [-(2**31), 2**31 - 1],
    "uint64 end": [2**64 - 1, 1],
    "uint16 end": [2**16 - 1, 1],
}
COMPLEX_VALUES: dict[str, list[complex]] = {
    "whole": [1 + 2j, -3 - 4j],
    "zeros": [0j, complex(0.0, -0.0), complex(-0.0, 0.0)],
    "fractions": [1.5 + 2j, -3 - 40.25j],
    "one part sci": [complex(1e-9, 1), complex(1, -1)],
    "both sci": [complex(1e-9, -1e12), complex(1, 1e-3)],
    "nonfinite": [
        complex(math.nan, 1),
        complex(-1, math.inf),
        complex(-math.inf, -math.inf),
        complex(0.5, math.nan),
    ],
    "nonfinite, whole": [complex(1, math.nan), complex(math.inf, -20)],
    "imaginary only": [1j, -2.5j],
}
SHAPES: list[tuple[int, ...]] = [
    (), (1,), (7,), (30,), (1000,), (1001,), (1, 1), (3, 4), (4, 30), (2, 3, 4),
    (2, 1, 3, 2), (1, 1, 1, 1, 1), (7, 160), (160, 7), (6, 170), (501, 2), (1001, 1),
    (2, 600), (3, 20, 20), (8, 9, 20), (7, 1, 150), (2, 2, 2, 2, 80), (0,), (0, 3),
    (2, 0), (2, 0, 3),
]  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {"precision": 0}, {"precision": 2}, {"precision": 10}, {"precision": "3"},
    {"linewidth": 20}, {"linewidth": 45}, {"linewidth": 200}, {"linewidth": -1},
    {"linewidth": 30.5}, {"threshold": 0}, {"threshold": 5}, {"edgeitems": 1},
    {"edgeitems": 0}, {"edgeitems": 5}, {"threshold": 3, "edgeitems": 1},
    {"threshold": 0, "edgeitems": 0}, {"profile": "short"}, {"profile": "full"},
    {"profile": "short", "linewidth": 60}, {"profile": "other"}, {"sci_mode": True},
    {"sci_mode": False}, {"sci_mode": True, "precision": 0},
    {"sci_mode": True, "precision": 8, "linewidth": 50},
]  # fmt: skip
FAULTY_OPTIONS: list[dict[str, Any]] = [
    {"precision": -1}, {"precision": 4.0}, {"precision": True}, {"linewidth": "a"},
    {"threshold": "a"}, {"threshold": 3, "edgeitems": -1},
    {"threshold": 3, "edgeitems": 1.0}, {"linewidth": 1e999}, {"precision": 10**10},
    {"edgeitems": "a", "threshold": 3},
]  # fmt: skip
EXTRAS: list[dict[str, Any]] = [
    {"requires_grad": True},
    {"grad_fn": "PowBackward0"},
    {"grad_fn": "CloneBackward0", "requires_grad": True},
    {"class_prefix": "Masked"},
    {"class_prefix": "AVeryLongNameOfATensorSubclass", "requires_grad": True},
    {"parameter": "plain", "requires_grad": True},
    {"parameter": "plain"},
    {"parameter": "subclass", "class_prefix": "Weight", "requires_grad": True},
    {"parameter": "flag", "class_prefix": "Masked", "requires_grad": True},
    {"device": "cuda:0"},
    {"device": "cuda:0", "requires_grad": True},
    {"device": "meta"},
    {"device": "meta", "requires_grad": True},
    {"tensor_contents": "contents"},
    {"tensor_contents": "con\ntents", "requires_grad": True},
    {"tangent": True},
]
SPECS = ["", ".2f", "10.3e", "d", "5", "<8", "x", "+", ",", ".0f", "g", "s", "q"]

Case = dict[str, Any]


def case_of(array: np.ndarray | np.generic, dtype: str, **more: Any) -> Case:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": dtype, "shape": list(array.shape), "data": data, **more}


def array_of(case: Case) -> np.ndarray:
    values = {"bool": "bool_", "complex32": "complex64"}.get(case["dtype"])
    data = base64.b64decode(case["data"])
    dtype = numpy_dtype(values or case["dtype"])
    return np.frombuffer(data, dtype).reshape(case["shape"])


def random_array(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...]
) -> np.ndarray:
    """Values of one of several characters: alike, of all magnitudes, whole, bits."""
    target = numpy_dtype("bool_" if dtype == "bool" else dtype)
    character = rng.integers(5)
    if dtype == "bool":
        return rng.random(shape) < rng.choice([0.0, 0.5, 1.0])
    if character == 4 or target.kind in "iu":
        raw = rng.bytes(target.itemsize * math.prod(shape))
        bits = np.frombuffer(raw, target).reshape(shape)
        if target.kind in "iu":
            return bits >> target.type(rng.integers(8 * target.itemsize))
        return bits
    values = rng.normal(size=shape)
    if target.kind == "c":
        values = values + 1j * rng.normal(size=shape)
    scale = 10.0 ** rng.uniform(-6, 6, shape if character == 1 else ())
    values = values if character == 0 else values * scale
    values = np.round(values) if character == 2 else values
    if character == 3:
        odd = rng.choice([math.nan, math.inf, -math.inf, -0.0], shape)
        values = np.where(rng.random(shape) < 0.2, odd, values)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(values).astype(target)


def make_cases() -> list[Case]:
    cases = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in FLOAT_VALUES.values():
            for dtype in FLOATS:
                array = np.array(values).astype(numpy_dtype(dtype))
                cases.append(case_of(array, dtype))
            cases.append(case_of(np.float32(values[0]), "float32"))
            for options in ({"sci_mode": True}, {"sci_mode": False, "precision": 1}):
                cases.append(case_of(np.array(values), "float64", options=options))
    for values in INT_VALUES.values():
        for dtype in INTS:
            info = np.iinfo(dtype)
            if min(values) >= info.min and max(values) <= info.max:
                cases.append(case_of(np.array(values, dtype), dtype))
    for values in ([True], [False], [True, False], [True, True]):
        cases.append(case_of(np.array(values), "bool"))
        cases.append(case_of(np.array(values[-1]), "bool"))
    for values in COMPLEX_VALUES.values():
        for dtype in COMPLEXES:
            cases.append(case_of(np.array(values, dtype), dtype))
            cases.append(case_of(np.array(values[-1], dtype), dtype))
    cases.append(case_of(np.array([1.5 - 2j, 3j], "complex64"), "complex32"))
    for dtype in [*FLOAT8S, "float8_e8m0fnu"]:
        every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
        cases += [case_of(every[i : i + 16], dtype) for i in (0, 56, 112, 120, 240)]

    rng = np.random.default_rng(20)
    dtypes = [*FLOATS, "int64", "int8", "bool", *COMPLEXES]
    for i, shape in enumerate(SHAPES):
        for j in range(7 if math.prod(shape) < 500 else 4):
            dtype = ["float32", dtypes[(i + j) % len(dtypes)]][j % 2]
            default = ["float32", "float64", "bfloat16"][(i + j) // 3 % 3]
            array = random_array(rng, dtype, shape)
            cases.append(case_of(array, dtype, default_dtype=default))
    some_shapes = [(), (9,), (40,), (5, 12), (3, 7, 4), (0, 2)]
    for options in OPTIONS:
        for j, shape in enumerate(some_shapes):
            dtype = dtypes[j * 5 % len(dtypes)]
            array = random_array(rng, dtype, shape)
            cases.append(case_of(array, dtype, options=options))
    for options in FAULTY_OPTIONS:
        for array in (np.array([[0.5, 2], [3, 4]]), np.arange(5.0)):
            cases.append(case_of(array, array.dtype.name, options=options))
    for extras in EXTRAS:
        # Lengths of the last line such that the suffix fits in some, not in others.
        lengths = [(n,) for n in (0, 2, 5, 6, 7, 8, 9, 14)]
        for shape in [(), *lengths, (0, 3), (3, 2)]:
            for dtype in ("float32", "float64"):
                array = rng.normal(size=shape).astype(dtype)
                cases.append(case_of(array, dtype, extras=extras))
    cases.append(case_of(np.arange(6), "int64", extras={"device": "meta"}))
    for dtype in (*COMPLEXES, *FLOATS, "int32"):
        for default in FLOATS:
            for shape in ((2,), (0,)):
                array = np.ones(shape, numpy_dtype(dtype))
                cases.append(case_of(array, dtype, default_dtype=default))
    # Several suffixes, breaking anywhere.
    several = {"device": "cuda:0", "requires_grad": True}
    for linewidth in range(16, 84):
        options = {"linewidth": linewidth}
        case = case_of(np.array([1.5]), "float64", options=options, extras=several)
        cases.append(case)
    return cases


def make_formats() -> list[Case]:
    """0-dim tensors with a format; every one is formatted requiring grad, too."""
    numbers: list[tuple[Any, list[str]]] = [
        (0.1, FLOATS),
        (-1e30, ["float32"]),
        (math.nan, ["float64"]),
        (-5, ["int64", "int8"]),
        (2**64 - 1, ["uint64"]),
        (True, ["bool"]),
        (1.5 - 2j, COMPLEXES),
    ]
    return [
        case_of(np.array(number).astype(numpy_dtype(dtype)), dtype, spec=spec)
        for number, dtypes in numbers
        for dtype in dtypes
        for spec in SPECS
    ]


# --- the text of either side ------------------------------------------------------


def attempt(produce: Any) -> str:
    try:
        return produce()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def shim_text(case: Case, array: np.ndarray | None = None) -> str:
    array = array_of(case) if array is None else array
    if "spec" in case:
        return attempt(lambda: _printing.format_scalar(array, case["spec"]))
    extras = dict(case.get("extras", {}))
    parameter = extras.pop("parameter", None)
    if parameter:
        extras["parameter"] = True
    # What `Parameter.__repr__` puts before it.
    before = "" if parameter in (None, "flag") else "Parameter containing:\n"
    default = case.get("default_dtype", "float32")
    if extras.pop("tangent", False):
        plain = {"dtype": case["dtype"], "default_dtype": default}
        text = _printing.format_tensor(array, **plain)
        extras["tangent"] = text if array.ndim else _printing.format_scalar(array)
    with _printing.printoptions(**case.get("options", {})), warnings.catch_warnings():
        warnings.simplefilter("error")
        return attempt(
            lambda: (
                before
                + _printing.format_tensor(
                    array, dtype=case["dtype"], default_dtype=default, **extras
                )
            )
        )


def torch_tensor(case: Case) -> Any:
    import torch

    if case["dtype"] == "complex32":
        return torch.from_numpy(array_of(case).copy()).to(torch.complex32)
    dtype = getattr(torch, case["dtype"])
    if 0 in case["shape"]:
        return torch.empty(case["shape"], dtype=dtype)
    data = bytearray(base64.b64decode(case["data"]))
    return torch.frombuffer(data, dtype=dtype).reshape(case["shape"])


def torch_extended(tensor: Any, extras: dict[str, Any]) -> Any:
    """The tensor as a subclass, parameter, result of an operation and so on."""
    import torch

    class_prefix, device = extras.get("class_prefix"), extras.get("device")
    parameter = extras.get("parameter")
    if device == "meta":
        tensor = tensor.to("meta")
    elif device:
        # Only the printed device counts, so no such device need be there.
        fake = type("tensor", (torch.Tensor,), {"device": torch.device(device)})
        tensor = tensor.as_subclass(fake)
    elif class_prefix and parameter != "subclass":
        tensor = tensor.as_subclass(type(class_prefix, (torch.Tensor,), {}))
    if parameter:
        kind = torch.nn.Parameter
        if parameter == "subclass":
            kind = type(str(class_prefix), (torch.nn.Parameter,), {})
        return kind(tensor, requires_grad=bool(extras.get("requires_grad")))
    if extras.get("requires_grad") or "grad_fn" in extras:
        tensor.requires_grad_()
    if extras.get("grad_fn") == "PowBackward0":
        return tensor.pow(1)
    return tensor.clone() if "grad_fn" in extras else tensor


def torch_text(case: Case) -> str:
    import torch
    from torch.autograd import forward_ad

    extras = case.get("extras", {})
    default = getattr(torch, case.get("default_dtype", "float32"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        tensor = torch_extended(torch_tensor(case), extras)
        torch.set_default_dtype(default)
        if "spec" in case:
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.requires_grad_()
            return attempt(lambda: format(tensor, case["spec"]))
        if extras.get("tangent"):
            stack.enter_context(forward_ad.dual_level())
            tensor = forward_ad.make_dual(tensor, tensor)
        options = case.get("options", {})
        stack.enter_context(torch._tensor_str.printoptions(**options))
        contents = extras.get("tensor_contents")
        if contents is None:
            return attempt(lambda: repr(tensor))
        return attempt(lambda: tensor.__repr__(tensor_contents=contents))


def record() -> None:
    import torch

    cases = [*make_cases(), *make_formats()]
    for case in cases:
        case["text"] = torch_text(case)
    document = {"torch": torch.__version__.split("+")[0], "cases": cases}
    EXPECTED.parent.mkdir(exist_ok=True)
    text = json.dumps(document, ensure_ascii=False, indent=0)
    EXPECTED.write_bytes(gzip.compress(text.encode(), mtime=0))


# --- tests -----------------------------------------------------------------------


def recorded() -> list[Case]:
    if not EXPECTED.exists():
        return []
    return json.loads(gzip.decompress(EXPECTED.read_bytes()))["cases"]


def label(case: Case) -> str:
    about = [case["dtype"], "x".join(map(str, case["shape"])) or "scalar"]
    keys = ("default_dtype", "options", "extras", "spec")
    about += [f"{case[key]}" for key in keys if key in case]
    return "-".join(about)


@pytest.mark.parametrize("case", recorded(), ids=label)
def test_as_recorded(case: Case) -> None:
    assert shim_text(case) == case["text"]


def test_the_record_is_complete() -> None:
    cases = recorded()
    assert len(cases) > 1000
    made = [*make_cases(), *make_formats()]
    assert [label(case) for case in cases] == [label(case) for case in made]


@pytest.mark.live
def test_the_record_is_what_torch_prints() -> None:
    import torch

    if not torch.__version__.startswith("2.13."):
        pytest.skip("the record is PyTorch 2.13's")
    stale = [label(case) for case in recorded() if torch_text(case) != case["text"]]
    assert not stale


@pytest.mark.live
@pytest.mark.parametrize("dtype", [*FLOATS, *INTS, *COMPLEXES, "bool", *FLOAT8S])
def test_arbitrary_values_as_torch_prints_them(dtype: str) -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    target = numpy_dtype("bool_" if dtype == "bool" else dtype)
    # Any bits make a value of any dtype but bool; the listed ones make it interesting.
    special = [v for values in FLOAT_VALUES.values() for v in values]
    if dtype == "bool":
        element = st.booleans()
    elif target.kind in "iu":
        info = np.iinfo(target)
        element = st.integers(int(info.min), int(info.max))
    elif target.kind == "c":
        part = st.floats() | st.sampled_from(special)
        element = st.builds(complex, part, part)
    else:
        element = st.floats() | st.sampled_from(special)

    sizes = st.lists(st.integers(0, 9), max_size=4).filter(lambda s: math.prod(s) <= 60)
    options = st.fixed_dictionaries(
        {},
        optional={
            "precision": st.integers(0, 20),
            "threshold": st.integers(0, 60),
            "edgeitems": st.integers(0, 4),
            "linewidth": st.integers(1, 200),
            "profile": st.sampled_from(["default", "short", "full"]),
            "sci_mode": st.sampled_from([None, True, False]),
        },
    )

    @hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
    @hypothesis.given(st.data(), sizes, options, st.sampled_from(FLOATS))
    def compare(data: Any, shape: list[int], options: Any, default: str) -> None:
        count = math.prod(shape)
        values = data.draw(st.lists(element, min_size=count, max_size=count))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wide = np.array(values, target) if target.kind in "iub" else None
            array = np.array(values).astype(target) if wide is None else wide
        case = case_of(
            array.reshape(shape), dtype, options=options, default_dtype=default
        )
        assert shim_text(case) == torch_text(case)

    compare()


@pytest.mark.live
@pytest.mark.parametrize("seed", range(40))
def test_large_random_tensors_as_torch_prints_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice([*FLOATS, "int64", "uint8", "bool", *COMPLEXES]))
    shape = tuple(int(n) for n in rng.integers(1, 14, rng.integers(1, 5)))
    full = {"profile": "full", "linewidth": int(rng.integers(20, 200))}
    small = {"threshold": 4, "edgeitems": int(rng.integers(1, 7))}
    for options in ({}, full, small):
        case = case_of(random_array(rng, dtype, shape), dtype, options=options)
        assert shim_text(case) == torch_text(case)


def test_only_shown_elements_are_read() -> None:
    # A terabyte of elements, and one that is shown and sets the width.
    line = np.zeros(10**6, np.float32)
    line[-1] = 123.5
    array = np.broadcast_to(line, (10**6, 10**6))
    lines = _printing.format_tensor(array, dtype="float32").splitlines()
    assert lines[0] == (
        "tensor([[  0.0000,   0.0000,   0.0000,  ...,   0.0000,   0.0000, 123.5000],"
    )
    assert lines[3] == "        ..." + ","
    assert len(lines) == 7


def test_elements_that_are_not_shown_do_not_set_the_format() -> None:
    array = np.zeros(2000)
    array[1000] = 1e9 + 0.5
    text = _printing.format_tensor(array, dtype="float64", default_dtype="float64")
    assert text == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


def test_strides_do_not_matter() -> None:
    for dtype in ("float32", "bfloat16", "complex64", "int16"):
        array = np.arange(24).reshape(2, 3, 4).astype(numpy_dtype(dtype))
        for view in (array.T, array[:, ::-2], array[..., 1], array[1, 1, 1:]):
            view_text = _printing.format_tensor(view, dtype=dtype)
            assert view_text == _printing.format_tensor(view.copy(), dtype=dtype)


def test_the_values_of_a_meta_tensor_need_not_exist() -> None:
    class Shape:
        shape: Any = (2, np.int64(3))

    text = _printing.format_tensor(Shape(), dtype="int64", device="meta")
    assert text == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"


def test_print_options_are_set_and_restored() -> None:
    defaults = _printing.get_printoptions()
    assert defaults == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    with _printing.printoptions(profile="short", sci_mode=True, linewidth=50):
        inside = _printing.get_printoptions()
        assert inside == {
            "precision": 2,
            "threshold": 1000,
            "edgeitems": 2,
            "linewidth": 50,
            "sci_mode": True,
        }
        # Not naming sci_mode hands the decision back to the values.
        _printing.set_printoptions(precision=3)
        expected = {**inside, "precision": 3, "sci_mode": None}
        assert _printing.get_printoptions() == expected
    assert _printing.get_printoptions() == defaults

    with pytest.raises(KeyError), _printing.printoptions(profile="full"):
        assert _printing.PRINT_OPTS.threshold == math.inf
        raise KeyError
    assert _printing.get_printoptions() == defaults


def test_unknown_options_are_refused() -> None:
    unknown: dict[str, Any] = {"digits": 3}
    message = r"set_printoptions\(\) got an unexpected keyword argument 'digits'"
    with pytest.raises(TypeError, match=message):
        _printing.set_printoptions(**unknown)
    with pytest.raises(TypeError, match=message), _printing.printoptions(**unknown):
        pass


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit("usage: python -m tests.test_printing --record")
    record()
