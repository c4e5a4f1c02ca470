"""Fourier transforms, with NumPy's and SciPy's functions as references."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import torchshim as torch
from torchshim.testing import make_tensor
from torchshim.testing._internal import common_dtype as kinds
from torchshim.testing._internal._conditions import TEST_SCIPY
from torchshim.testing._internal._databases import DecorateInfo
from torchshim.testing._internal.common_device_type import precisionOverride
from torchshim.testing._internal.opinfo.core import (
    ErrorInput,
    SampleInput,
    SpectralFuncInfo,
    SpectralFuncType,
)

_SIZES = {
    SpectralFuncType.OneD: ({"n": 10, "dim": 1, "norm": "ortho"}, {"n": 7}),
    SpectralFuncType.TwoD: (
        {"s": (3, 10), "dim": (1, 2), "norm": "ortho"},
        {"s": (6, 8)},
    ),
    SpectralFuncType.ND: ({"s": (3, 10), "dim": (1, 2), "norm": "ortho"}, {"s": (8,)}),
}
_DIMS = {
    SpectralFuncType.OneD: (-1, -2, -3),
    SpectralFuncType.TwoD: ((0, -1), (-3, -2, -1)),
    SpectralFuncType.ND: (-1, -2, -3, (0, -1)),
}


def sample_inputs_spectral_ops(
    op: Any, device: Any, dtype: Any, requires_grad: bool = False, **kwargs: Any
) -> Iterator[SampleInput]:
    """Tensors of three dimensions, and small ones, with sizes, dimensions and norms."""
    kind = op.ndimensional
    given = {"device": device, "dtype": dtype, "requires_grad": requires_grad}
    given |= {"low": None, "high": None}
    shorter, longer = _SIZES[kind]
    chosen = [shorter, {"norm": "ortho"}, longer, *({"dim": d} for d in _DIMS[kind])]
    for options in chosen:
        yield SampleInput(make_tensor((5, 6, 7), **given), kwargs=dict(options))
    if kind is not SpectralFuncType.TwoD:
        yield SampleInput(make_tensor((31,), **given))
    # What is real of one element has no half of its frequencies to begin with.
    least = 2 if op.name.rpartition(".")[2].startswith(("irfft", "hfft")) else 1
    dims = 1 if kind is SpectralFuncType.OneD else 2
    yield SampleInput(make_tensor((least,) * dims, **given))


def _error_inputs(op: Any, device: Any, **kwargs: Any) -> Iterator[ErrorInput]:
    """A number, which has no dimension to transform."""
    one = op.ndimensional is SpectralFuncType.OneD
    dim = -1 if one else 0
    number = make_tensor((), device=device, dtype=torch.float32)
    yield ErrorInput(
        SampleInput(number, kwargs={} if one else {"dim": (0,)}),
        error_type=IndexError,
        error_regex=f"Dimension specified as {dim} but tensor has no dimensions",
    )


def _reference(name: str) -> Any:
    # NumPy has no Hermitian transforms over several dimensions.
    if name[-1] in "2n" and "hfft" in name:
        found = importlib.import_module("scipy.fft") if TEST_SCIPY else None
        # SciPy's `ihfft2` does not take `s` of another length.
        return getattr(found, "ihfftn" if name == "ihfft2" else name, None)
    return getattr(np.fft, name)


def _transform(kind: str, suffix: str, dimensions: SpectralFuncType) -> Any:
    name = f"{kind}{suffix}"
    real = kind in ("rfft", "ihfft")
    listed = kinds.all_types() if real else kinds.all_types_and_complex()
    loose = precisionOverride({torch.float: 2e-4, torch.cfloat: 2e-4})
    return SpectralFuncInfo(
        f"fft.{name}",
        ndimensional=dimensions,
        ref=_reference(name),
        dtypes=(*listed, torch.bool),
        sample_inputs_func=sample_inputs_spectral_ops,
        error_inputs_func=_error_inputs,
        decorators=[DecorateInfo(loose, "TestFFT", "test_reference_nd")],
    )


spectral_funcs: list[SpectralFuncInfo] = [
    _transform(kind, suffix, dimensions)
    for kind in ("fft", "hfft", "rfft", "ifft", "ihfft", "irfft")
    for suffix, dimensions in zip(("", "2", "n"), SpectralFuncType, strict=True)
]
