"""Names, limits and checks of the dtypes that the random kernels accept."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from torchshim._core.host_math import BFLOAT16

DTypeLike = Any

# name -> (ScalarType's name, C++ name, bits of the significand or 0)
NAMES = {
    "bool": ("Bool", "bool", 0),
    "uint8": ("Byte", "unsigned char", 0),
    "int8": ("Char", "signed char", 0),
    "int16": ("Short", "short int", 0),
    "int32": ("Int", "int", 0),
    "int64": ("Long", "long int", 0),
    "uint16": ("UInt16", "short unsigned int", 0),
    "uint32": ("UInt32", "unsigned int", 0),
    "uint64": ("UInt64", "long unsigned int", 0),
    "float16": ("Half", "c10::Half", 11),
    "bfloat16": ("BFloat16", "c10::BFloat16", 8),
    "float32": ("Float", "float", 24),
    "float64": ("Double", "double", 53),
    "complex64": ("ComplexFloat", "c10::complex<float>", 0),
    "complex128": ("ComplexDouble", "c10::complex<double>", 0),
}


def as_dtype(dtype: DTypeLike) -> np.dtype:
    return BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)


@functools.cache
def digits_of(dtype: np.dtype) -> int:
    return NAMES[dtype.name][2]


def check_floating(dtype: np.dtype, kernel: str) -> None:
    if not digits_of(dtype):
        name = NAMES[dtype.name][0]
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def check_kernel(dtype: np.dtype, kernel: str, without: tuple[str, ...] = ()) -> None:
    if dtype.kind == "c" or dtype.name in ("uint16", "uint32", "uint64", *without):
        name = NAMES[dtype.name][0]
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")


def check_bound(
    name: str, value: float, low: float, high: float, dtype: np.dtype
) -> None:
    if not low <= value <= high:
        kind = NAMES[dtype.name][1]
        raise RuntimeError(f"{name} is out of bounds for {kind}")
