"""Scalar types against PyTorch 2.13; see `tests.core.recorded`."""

from __future__ import annotations

import copy
import doctest
import pickle
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import torchshim
from tests.core import recorded
from torchshim._core import dtypes

NAMES = sorted(dtypes.NAMES)
ATTRIBUTES = (
    *("is_floating_point", "is_complex", "is_signed", "itemsize", "abbr"),
    *("to_real()", "to_complex()", "__reduce__()"),
)
ARRAYS = (
    *("np.array([None])", "np.array(['a'])", "np.zeros(2, 'M8[s]')"),
    *("np.zeros(2, 'm8[s]')", "np.zeros(2, np.longdouble)", "np.zeros(2, 'S1')"),
    *("np.zeros(2, np.clongdouble)", "np.zeros(2, '>f4')", "np.zeros(2, '>i8')"),
    *("np.zeros(2, '>U1')", "np.zeros(2, [('a', 'f4')])", "np.zeros(2, np.longlong)"),
    *("np.zeros(2, np.ulonglong)", "np.zeros(2, ml_dtypes.bfloat16)"),
    *(f"np.zeros(2, {n!r})" for n in dtypes._NUMPY_NAMES),
)
LIMITS = (
    *("eps", "max", "min", "resolution", "smallest_normal", "tiny", "bits", "dtype"),
)
INTEGRAL = ("min", "max", "bits", "dtype")
# `finfo` of a quantized or packed type fails here when it is made; PyTorch makes it and
# fails when some of its fields are read.
LIMITED = [n for n in NAMES if n[0] != "q" and n != "float4_e2m1fn_x2"]
LINES = (
    *(f"torch.{n}" for n in NAMES),
    *(f"torch.{n}.{a}" for n in NAMES for a in ATTRIBUTES),
    *(f"torch.finfo(torch.{n})" for n in NAMES),
    *(f"torch.iinfo(torch.{n})" for n in NAMES),
    *(f"torch.finfo(torch.{n}).{a}" for n in LIMITED for a in LIMITS),
    *(f"torch.iinfo(torch.{n}).{a}" for n in LIMITED for a in ("min", "max", "bits")),
    *(f"torch.iinfo(torch.{n}).{a}" for n in NAMES if n[0] == "q" for a in INTEGRAL),
    *(f"torch.finfo({a})" for a in ("", "1", "'a'", "None", "float", "int", "np.int8")),
    *(f"torch.iinfo({a})" for a in ("", "1", "'a'", "None", "float", "int", "bool")),
    *("torch.finfo(complex)", "torch.finfo(torch.float32, 1)", "torch.finfo(foo=1)"),
    *("torch.finfo(type=torch.half)", "torch.finfo(torch.float32, foo=1)"),
    *("torch.iinfo(torch.int8, 1)", "torch.iinfo(torch.int8, foo=1)"),
    *("torch.iinfo(type=torch.int8)", "torch.iinfo(dtype=torch.int8)"),
    "torch.finfo(torch.cfloat) == torch.finfo(torch.float32)",
    "torch.finfo(torch.half) != torch.finfo(torch.float32)",
    "torch.finfo(torch.half) == torch.iinfo(torch.int8)",
    "torch.iinfo(torch.int8) == torch.iinfo(torch.int8)",
    "torch.finfo(torch.half) < torch.finfo(torch.half)",
    *("hash(torch.finfo(torch.half))", "hash(torch.iinfo(torch.int8))"),
    *("torch.finfo(torch.half).foo", "setattr(torch.finfo(torch.half), 'eps', 1)"),
    *("setattr(torch.finfo(torch.half), 'foo', 1)", "torch.finfo", "torch.iinfo"),
    *("torch.dtype", "torch.dtype()", "torch.dtype('float32')", "torch.dtype.__name__"),
    *("setattr(torch.float32, 'foo', 1)", "setattr(torch.float32, 'is_complex', 1)"),
    *("type('A', (torch.dtype,), {})", "torch.float32 < torch.float64"),
    *("torch.float32 == 'float32'", "torch.float32 != torch.float64"),
    *("torch.float32 in {torch.float32: 1}", "torch.half is torch.float16"),
    *("f'{torch.float32}'", "str(torch.bool)", "{torch.int8: 1}[torch.int8]"),
    "copy.deepcopy(torch.float32) is torch.float32",
    *(
        f"torch.set_default_dtype(torch.{n}); torch.get_default_dtype()"
        for n in dtypes._BY_NAME
    ),
    *(
        f"torch.set_default_dtype(torch.{n}); torch.finfo()"
        for n in ("float16", "bfloat16", "float32", "float64")
    ),
    *(f"torch.set_default_dtype({a})" for a in ("'f'", "None", "float", "1", "")),
    *("torch.set_default_dtype(d=torch.half)", "torch.set_default_dtype(1, 2)"),
)


class Core:
    """The names of the package root that come from `dtypes`."""

    dtype, finfo, iinfo = dtypes.dtype, dtypes.finfo, dtypes.iinfo
    get_default_dtype = staticmethod(dtypes.get_default_dtype)
    set_default_dtype = staticmethod(dtypes.set_default_dtype)

    def __getattr__(self, name: str) -> Any:
        return dtypes.NAMES[name]


MODULES: dict[str, Any] = {"np": np, "copy": copy, "ml_dtypes": ml_dtypes}


def run(torch: Any, lines: tuple[str, ...]) -> recorded.Table:
    found: recorded.Table = {}
    for line in lines:
        try:
            found |= recorded.evaluate((line,), {"torch": torch, **MODULES})
        finally:
            torch.set_default_dtype(torch.float32)
    return found


def array(text: str) -> np.ndarray:
    return eval(text, dict(MODULES))


def theirs(torch: Any) -> recorded.Table:
    found = run(torch, LINES)
    for text in ARRAYS:
        value = array(text)
        found[text] = recorded.outcome(lambda v=value: torch.from_numpy(v).dtype)
    for name in dtypes._BY_NAME:
        d = getattr(torch, name)
        empty = recorded.outcome(lambda d=d: torch.empty(0, dtype=d).type())
        found[f"tensor type {name}"] = empty
        if not name.startswith("q"):
            out = torch.empty(2, 2, dtype=d)
            found[f"cpp {name}"] = recorded.outcome(
                lambda out=out: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=out)
            ).split("\n")[0]
        if d.is_floating_point or d.is_complex or dtypes.NAMES[name].np is not None:
            found[f"numpy {name}"] = recorded.outcome(
                lambda d=d: torch.empty(1, dtype=d).numpy().dtype
            )
    for d in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        torch.set_default_dtype(d)
        key = f"complex default {d}"
        found[key] = recorded.outcome(lambda: torch.tensor(1j).dtype)
    torch.set_default_dtype(torch.float32)
    return found


def ours() -> recorded.Table:
    found = run(Core(), LINES)
    for text in ARRAYS:
        value = array(text).dtype
        found[text] = recorded.outcome(lambda v=value: dtypes.from_numpy_dtype(v))
    for d in dtypes.DTYPES:
        found[f"tensor type {d.name}"] = repr(d.tensor_name)
        if not d.name.startswith("q"):
            text = f"have dtype float, but got {d.cpp_name} instead"
            found[f"cpp {d.name}"] = f"RuntimeError: Expected out tensor to {text}"
        if d.is_floating_point or d.is_complex or d.np is not None:
            found[f"numpy {d.name}"] = recorded.outcome(lambda d=d: dtypes.as_numpy(d))
    found["cpp float32"] = "tensor([[2., 2.],"
    for d in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
        key = f"complex default {d}"
        dtypes.set_default_dtype(d)
        found[key] = recorded.outcome(dtypes.get_default_complex_dtype)
    dtypes.set_default_dtype(dtypes.float32)
    return found


def test_recorded() -> None:
    assert not recorded.differences(recorded.table("dtypes"), ours())


@pytest.mark.live
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_live() -> None:
    assert not recorded.differences(theirs(recorded.LIVE), ours())


@pytest.mark.live
def test_every_name() -> None:
    torch = recorded.LIVE
    found = {k: repr(v) for k, v in vars(torch).items() if isinstance(v, torch.dtype)}
    assert found == {k: repr(v) for k, v in dtypes.NAMES.items()}


def test_array_dtypes() -> None:
    for d in dtypes.DTYPES:
        if d.np is None:
            with pytest.raises(NotImplementedError, match=d.name):
                dtypes.array_dtype(d)
        else:
            assert dtypes.array_dtype(d).itemsize == d.itemsize
            assert dtypes.from_array_dtype(d.np) is d


def test_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, d in dtypes.NAMES.items():
        monkeypatch.setattr(torchshim, name, d, raising=False)
    monkeypatch.setattr(torchshim, "dtype", dtypes.dtype, raising=False)
    for d in dtypes.DTYPES:
        assert copy.copy(d) is copy.deepcopy(d) is d
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(d, protocol)) is d
    assert pickle.loads(pickle.dumps(dtypes.dtype)) is dtypes.dtype


def test_as_dtype() -> None:
    given = (float, int, bool, complex, dtypes.int8, "float32", np.float32, None)
    found = [dtypes.as_dtype(g) for g in given]
    kinds = [dtypes.float64, dtypes.int64, dtypes.bool_, dtypes.complex128]
    assert found == [*kinds, dtypes.int8, None, None, None]


def test_examples() -> None:
    runner = doctest.DocTestRunner()
    finder = doctest.DocTestFinder()
    names = vars(dtypes)
    for name, value in names.items():
        # Not testmod: it passes over classes that name another module as theirs.
        own = isinstance(value, types.FunctionType | dtypes.Builtin)
        if own and "Builtin" not in name:
            for test in finder.find(value, name, module=False, globs=dict(names)):
                runner.run(test)
    assert runner.tries > 10
    assert runner.failures == 0
