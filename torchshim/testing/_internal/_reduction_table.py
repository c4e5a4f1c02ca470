"""Reductions, with NumPy's functions as references."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchshim.testing._internal import common_dtype as kinds
from torchshim.testing._internal._databases import DecorateInfo
from torchshim.testing._internal._op_samples import sample_inputs_reduction
from torchshim.testing._internal._op_tables import _dtypes
from torchshim.testing._internal.opinfo.core import ReductionOpInfo
from torchshim.testing._internal.opinfo.utils import (
    prod_numpy,
    reference_reduction_numpy,
)

_BOOL, _INT64, _UINT8 = (kinds._named(n) for n in ("bool", "int64", "uint8"))


def _fails(*tests: str, **where: Any) -> tuple[DecorateInfo, ...]:
    """Tests of `TestReductions` that ask for another meaning than PyTorch's."""
    return tuple(
        DecorateInfo(
            unittest.expectedFailure, "TestReductions", f"test_{test}", **where
        )
        for test in tests
    )


# No dimensions are all of them.
_ALL = _fails("dim_empty", "dim_empty_keepdim")
# `keepdim` goes with dimensions only.
_NAMED = _fails("dim_default_keepdim")
# Half types have other tolerances than NumPy's sums.
_ROUNDED = tuple(
    DecorateInfo(
        unittest.skip("rounds otherwise"), "TestReductions", test, dtypes=(dtype,)
    )
    for test in ("test_ref_small_input", "test_ref_duplicate_values")
    for dtype in kinds._named("float16", "complex64")
)


def _orders(t: Any, dim: Any = None, keepdim: bool = False) -> Iterator[Any]:
    for order in (6, 4, 2, 1, 0, 0.5, float("inf"), -2.1):
        # Of nothing, an infinite or negative order has no value.
        if t.numel() or 0 < order < float("inf"):
            yield (), {"ord": order}


def _unbiased(t: Any, dim: Any = None, keepdim: bool = False) -> Iterator[Any]:
    for unbiased in (True, False):
        yield (), {"unbiased": unbiased}


def _without_keepdim(op: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
    for sample in sample_inputs_reduction(op, *args, **kwargs):
        sample.kwargs.pop("keepdim", None)
        yield sample


def _reduction(name: str, ref: Any, letters: str, **known: Any) -> ReductionOpInfo:
    known.setdefault("sample_inputs_func", sample_inputs_reduction)
    return ReductionOpInfo(
        name,
        ref=None if ref is None else reference_reduction_numpy(ref),
        dtypes=_dtypes(letters),
        **known,
    )


def _spreads(op: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
    """Each with a `dim`: without one `unbiased` takes no `out=`."""
    for sample in sample_inputs_reduction(op, *args, **kwargs):
        if not op.variant_test_name:
            sample.kwargs.setdefault("dim", None)
        yield sample


def _spread(name: str, ref: Any, variant: str = "") -> ReductionOpInfo:
    return _reduction(
        name,
        None if variant else ref,
        "fc",
        variant_test_name=variant,
        complex_to_real=True,
        promotes_int_to_float=True,
        supports_out=not variant,
        sample_inputs_func=_spreads,
        skips=_ALL if variant else _ALL + _NAMED + _ROUNDED,
        **({} if variant else {"generate_args_kwargs": _unbiased}),
    )


_WHOLE: dict[str, Any] = {"promotes_int_to_int64": True}
_LOGICAL: dict[str, Any] = {
    "nan_policy": None,
    "supports_autograd": False,
    "result_dtype": _BOOL[0],
    "skips": _fails("result_dtype", dtypes=_UINT8),
}
_PLACE: dict[str, Any] = {
    "nan_policy": None,
    "supports_multiple_dims": False,
    "supports_autograd": False,
    "result_dtype": _INT64[0],
}
_MEAN: dict[str, Any] = {
    "promotes_int_to_float": True,
    "skips": _ALL + _ROUNDED,
}

reduction_ops: list[ReductionOpInfo] = [
    _reduction("all", np.all, "fcib", identity=True, **_LOGICAL),
    _reduction("amax", np.amax, "fib", skips=_ALL),
    _reduction("amin", np.amin, "fib", skips=_ALL),
    _reduction("any", np.any, "fcib", identity=False, **_LOGICAL),
    _reduction("argmax", np.argmax, "fi", **_PLACE),
    _reduction("argmin", np.argmin, "fi", **_PLACE),
    _reduction(
        "count_nonzero",
        np.count_nonzero,
        "fcib",
        identity=0,
        nan_policy=None,
        supports_out=False,
        supports_autograd=False,
        result_dtype=_INT64[0],
        sample_inputs_func=_without_keepdim,
        skips=_fails(
            "dim_default_keepdim",
            "dim_none_keepdim",
            "dim_single_keepdim",
            "dim_empty",
            "dim_empty_keepdim",
            "dim_multi_keepdim",
            "dim_multi_unsorted_keepdim",
            "dim_offbounds_keepdim",
        ),
    ),
    _reduction("mean", np.mean, "fc", **_MEAN | {"skips": _ALL + _NAMED + _ROUNDED}),
    _reduction("nanmean", np.nanmean, "f", nan_policy="omit", **_MEAN),
    _reduction(
        "nansum",
        np.nansum,
        "fib",
        identity=0,
        nan_policy="omit",
        skips=_ALL + _ROUNDED,
        **_WHOLE,
    ),
    _reduction(
        "prod",
        prod_numpy,
        "fcib",
        identity=1,
        supports_multiple_dims=False,
        skips=_fails("dim_none", "dim_none_keepdim") + _NAMED + _ROUNDED,
        **_WHOLE,
    ),
    _spread("std", np.std),
    _spread("std", np.std, "unbiased"),
    _reduction(
        "sum", np.sum, "fcib", identity=0, skips=_ALL + _NAMED + _ROUNDED, **_WHOLE
    ),
    _spread("var", np.var),
    _spread("var", np.var, "unbiased"),
    _reduction(
        "linalg.vector_norm",
        None,
        "fc",
        identity=0,
        complex_to_real=True,
        generate_args_kwargs=_orders,
    ),
]
