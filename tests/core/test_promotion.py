"""Type promotion against PyTorch 2.13; see `tests.core.recorded`."""

from __future__ import annotations

import doctest
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchshim
from tests.core import recorded
from torchshim._core import dtypes, promotion
from torchshim._core.promotion import DIMENSIONED, SCALAR, ZERO_DIM, Operand

STANDARD = [d.name for d in dtypes.DTYPES if d.name in dtypes._NUMPY_NAMES]
STANDARD += ["bfloat16"]
EVERY = list(dtypes._BY_NAME)
NUMBERS = {"bool": True, "int": 1, "float": 1.5, "complex": 1j, "large": 2**63}
DEFAULTS = ("float32", "float64", "float16", "bfloat16")
# PyTorch answers with an internal assertion, "please report a bug to PyTorch".
UNORDERED = {d.name for d in promotion._UNORDERED}
LINES = (
    *("torch.promote_types(1, 2)", "torch.promote_types(torch.int8)"),
    *("torch.promote_types()", "torch.promote_types(torch.int8, 1)"),
    *("torch.promote_types(torch.int8, type2=1)", "torch.promote_types(float, int)"),
    "torch.promote_types(torch.int8, torch.int8, torch.int8)",
    *("torch.promote_types(torch.int8, type1=torch.int8)", "torch.can_cast()"),
    *(
        "torch.promote_types(type2=torch.int8, type1=torch.half)",
        "torch.can_cast(1, 2)",
    ),
    *("torch.can_cast(torch.int8)", "torch.can_cast(torch.int8, None)"),
    *("torch.can_cast(from_=torch.int8, to=torch.bool)", "torch.can_cast(float, int)"),
)

# A key of an operand: ("int32", DIMENSIONED) or ("float", SCALAR).
Key = tuple[str, int]
TENSORS: list[Key] = [(n, k) for n in STANDARD for k in (DIMENSIONED, ZERO_DIM)]
SCALARS: list[Key] = [(n, SCALAR) for n in NUMBERS]
SOME: list[Key] = [
    (n, k)
    for n in ("bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64")
    for k in (DIMENSIONED, ZERO_DIM)
]
TRIPLES = list(itertools.combinations([*SOME, *SCALARS[:4]], 3))


class Core:
    promote_types = staticmethod(promotion.promote_types)
    can_cast = staticmethod(promotion.can_cast)

    def __getattr__(self, name: str) -> Any:
        return dtypes.NAMES[name]


def our_operand(key: Key) -> Operand:
    name, kind = key
    if kind == SCALAR:
        return promotion.scalar_dtype(NUMBERS[name]), SCALAR
    return dtypes.NAMES[name], kind


def their_operand(torch: Any, key: Key) -> Any:
    name, kind = key
    if kind == SCALAR:
        return NUMBERS[name]
    shape = (2,) if kind == DIMENSIONED else ()
    return torch.ones(shape, dtype=getattr(torch, name))


# Operators of each kind.
UNARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "exp": (promotion.INT_TO_FLOAT, lambda torch, x: torch.exp(x)),
    "logical_not": (promotion.ALWAYS_BOOL, lambda torch, x: torch.logical_not(x)),
    "square": (promotion.BOOL_TO_LONG, lambda torch, x: torch.square(x)),
    "abs": (promotion.COMPLEX_TO_FLOAT, lambda torch, x: torch.abs(x)),
    "sum": (promotion.SUM, lambda torch, x: torch.sum(x)),
    "prod": (promotion.SUM, lambda torch, x: torch.prod(x)),
    "cumsum": (promotion.SUM, lambda torch, x: torch.cumsum(x, 0)),
    "mean": (promotion.MEAN, lambda torch, x: torch.mean(x)),
}
BINARY: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "mul": (promotion.DEFAULT, lambda torch, x, y: torch.mul(x, y)),
    "true_divide": (promotion.INT_TO_FLOAT, lambda torch, x, y: torch.div(x, y)),
    "eq": (promotion.ALWAYS_BOOL, lambda torch, x, y: torch.eq(x, y)),
}


def text(*keys: Key) -> str:
    return " ".join(f"{name}:{kind}" for name, kind in keys)


def theirs(torch: Any) -> recorded.Table:
    found = recorded.evaluate(LINES, {"torch": torch})
    made = {key: their_operand(torch, key) for key in [*TENSORS, *SCALARS]}
    for a, b in itertools.product(EVERY, EVERY):
        x, y = getattr(torch, a), getattr(torch, b)
        if not {a, b} & UNORDERED:
            found[f"promote {a} {b}"] = recorded.outcome(
                lambda x=x, y=y: torch.promote_types(x, y)
            )
        cast = recorded.outcome(lambda x=x, y=y: torch.can_cast(x, y))
        found[f"cast {a} {b}"] = cast
    for default in DEFAULTS:
        torch.set_default_dtype(getattr(torch, default))
        for a, b in itertools.product(made, made):
            found[f"{default}: {text(a, b)}"] = recorded.outcome(
                lambda a=a, b=b: torch.result_type(made[a], made[b])
            )
    torch.set_default_dtype(torch.float32)
    for keys in TRIPLES:
        operands = [made[k] for k in keys]
        if keys[-1][1] == SCALAR:
            continue  # torch.result_type takes two: see `addcmul` below
        found[text(*keys)] = recorded.outcome(
            lambda o=operands: torch.addcmul(*o).dtype
        )
    for name in STANDARD:
        given = made[name, DIMENSIONED]
        for op, (_, call) in UNARY.items():
            found[f"{op} {name}"] = recorded.outcome(
                lambda g=given, call=call: call(torch, g).dtype
            )
        for other in STANDARD:
            for op, (_, call) in BINARY.items():
                second = made[other, DIMENSIONED]
                found[f"{op} {name} {other}"] = recorded.outcome(
                    lambda g=given, s=second, call=call: call(torch, g, s).dtype
                )
            asked = getattr(torch, other)
            for op in ("sum", "mean"):
                found[f"{op} {name} as {other}"] = recorded.outcome(
                    lambda g=given, op=op, d=asked: getattr(torch, op)(g, dtype=d).dtype
                )
            out = torch.ones(2, dtype=asked)
            found[f"out {name} to {other}"] = recorded.outcome(
                lambda g=given, out=out: torch.mul(g, g, out=out) is out
            )
    return found


def written(result: dtypes.dtype, out: dtypes.dtype) -> bool:
    promotion.check_result(result, out)
    return True


def ours() -> recorded.Table:
    found = recorded.evaluate(LINES, {"torch": Core()})
    operands = [*TENSORS, *SCALARS]
    for a, b in itertools.product(EVERY, EVERY):
        x, y = dtypes.NAMES[a], dtypes.NAMES[b]
        if not {a, b} & UNORDERED:
            found[f"promote {a} {b}"] = recorded.outcome(
                lambda x=x, y=y: promotion.promote_types(x, y)
            )
        cast = recorded.outcome(lambda x=x, y=y: promotion.can_cast(x, y))
        found[f"cast {a} {b}"] = cast
    for default in DEFAULTS:
        dtypes.set_default_dtype(dtypes.NAMES[default])
        for keys in itertools.product(operands, operands):
            found[f"{default}: {text(*keys)}"] = recorded.outcome(
                lambda keys=keys: promotion.result_dtype(
                    tuple(our_operand(k) for k in keys)
                )
            )
    dtypes.set_default_dtype(dtypes.float32)
    for keys in TRIPLES:
        if keys[-1][1] != SCALAR:
            given = tuple(our_operand(k) for k in keys)
            found[text(*keys)] = recorded.outcome(
                lambda g=given: promotion.result_dtype(g)
            )
    for name in STANDARD:
        d = dtypes.NAMES[name]
        for op, (kind, _) in UNARY.items():
            found[f"{op} {name}"] = recorded.outcome(
                lambda kind=kind, d=d: promotion.resolve(kind, [(d, DIMENSIONED)])[1]
            )
        for other in STANDARD:
            second = dtypes.NAMES[other]
            for op, (kind, _) in BINARY.items():
                pair = ((d, DIMENSIONED), (second, DIMENSIONED))
                found[f"{op} {name} {other}"] = recorded.outcome(
                    lambda kind=kind, pair=pair: promotion.resolve(kind, pair)[1]
                )
            for op in ("sum", "mean"):
                kind = UNARY[op][0]
                found[f"{op} {name} as {other}"] = recorded.outcome(
                    lambda op=op, kind=kind, d=d, asked=second: promotion.reduce_dtype(
                        kind, d, asked, op
                    )
                )
            found[f"out {name} to {other}"] = recorded.outcome(
                lambda d=d, out=second: written(d, out)
            )
    return found


def differences(expected: recorded.Table) -> list[str]:
    """Leaves out what PyTorch promotes but has no kernel for."""
    actual = ours()
    for key, found in expected.items():
        if found.startswith("NotImplementedError") and "not implemented for" in found:
            del actual[key]
    known = {k: v for k, v in expected.items() if k in actual}
    assert len(known) > 9 * len(expected) // 10
    return recorded.differences(known, actual)


def test_recorded() -> None:
    assert not differences(recorded.table("promotion"))


@pytest.mark.live
def test_live() -> None:
    assert not differences(theirs(recorded.LIVE))


def test_compute_dtypes() -> None:
    half = ((dtypes.bfloat16, DIMENSIONED),)
    wide = dtypes.float32
    for kind in promotion.Promotion:
        compute, _ = promotion.resolve(kind, half)
        assert compute is (dtypes.bfloat16 if kind == "no_opmath" else wide)
    pair = ((dtypes.float16, DIMENSIONED), (dtypes.complex64, SCALAR))
    found = promotion.resolve(promotion.DEFAULT, pair)
    assert found == (dtypes.complex64, dtypes.complex32)
    flags = ((dtypes.bool_, DIMENSIONED),)
    found = promotion.resolve(promotion.BOOL_TO_LONG, flags)
    assert found == (dtypes.int64, dtypes.int64)


def test_explicit_default() -> None:
    pair = ((dtypes.int32, DIMENSIONED), (dtypes.float32, SCALAR))
    for default in (dtypes.float64, dtypes.float32, dtypes.float64):
        assert promotion.result_dtype(pair, default) is default
        found = promotion.resolve(promotion.INT_TO_FLOAT, pair[:1], default)
        assert found == (default, default)
        assert promotion.scalar_dtype(1.0, default) is default


def test_number_types() -> None:
    given = (np.float32(1), np.int8(1), np.complex64(1), np.float64(1), 2**63, True)
    found = [promotion.scalar_dtype(g) for g in given]
    real, whole = dtypes.float32, dtypes.int64
    assert found == [real, whole, real, real, dtypes.uint64, dtypes.bool_]


def test_no_operands() -> None:
    with pytest.raises(ValueError, match="at least one operand"):
        promotion.result_dtype(())


def test_examples() -> None:
    result = doctest.testmod(promotion)
    assert result.attempted > 10
    assert result.failed == 0


def test_dtypes_without_arrays_are_refused():
    x = torchshim.ones(2, dtype=torchshim.half)
    assert torchshim.result_type(x, 1j) is torchshim.complex32
    assert (x == 1j).tolist() == [False, False]
    for wrong in (lambda: x + 1j, lambda: torchshim.where(x > 0, x, 1j)):
        with pytest.raises(NotImplementedError, match=r"torch\.complex32"):
            wrong()
