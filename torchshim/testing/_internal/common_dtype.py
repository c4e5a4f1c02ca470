"""Tuples of dtypes, by the names PyTorch's test files know."""

from __future__ import annotations

from typing import Any

import torchshim as torch


class _dispatch_dtypes(tuple[Any, ...]):
    """A tuple of dtypes; sums are of this kind, too."""

    __slots__ = ()

    def __add__(self, other: Any) -> _dispatch_dtypes:
        return _dispatch_dtypes(tuple.__add__(self, _dtypes(*other)))


def _dtypes(*dtypes: Any) -> tuple[Any, ...]:
    for dtype in dtypes:
        if not isinstance(dtype, torch.dtype):
            raise AssertionError(f"Expected dtype to be torch.dtype, got {type(dtype)}")
    return dtypes


def _named(*names: str) -> _dispatch_dtypes:
    # PyTorch lists `complex32` and the quantized dtypes, which JAX lacks.
    return _dispatch_dtypes(
        getattr(torch, name) for name in names if hasattr(torch, name)
    )


_FLOATING = _named("float32", "float64")
_COMPLEX = _named("complex64", "complex128")
_INTEGRAL = _named("uint8", "int8", "int16", "int32", "int64")
_FLOAT8 = _named("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_ALL = _FLOATING + _INTEGRAL


def empty_types() -> _dispatch_dtypes:
    """No dtypes."""
    return _dispatch_dtypes()


def floating_types() -> _dispatch_dtypes:
    """float32 and float64."""
    return _FLOATING


def floating_types_and_half() -> _dispatch_dtypes:
    """float32, float64 and float16."""
    return _FLOATING + _named("float16")


def floating_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """float32, float64 and these."""
    return _FLOATING + dtypes


def floating_and_complex_types() -> _dispatch_dtypes:
    """float32, float64, complex64 and complex128."""
    return _FLOATING + _COMPLEX


def floating_and_complex_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """float32, float64, complex64, complex128 and these."""
    return _FLOATING + _COMPLEX + dtypes


def double_types() -> _dispatch_dtypes:
    """float64 and complex128."""
    return _named("float64", "complex128")


def integral_types() -> _dispatch_dtypes:
    """uint8 and the signed integers."""
    return _INTEGRAL


def integral_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """uint8, the signed integers and these."""
    return _INTEGRAL + dtypes


def all_types() -> _dispatch_dtypes:
    """Floating and integral types."""
    return _ALL


def all_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """Floating and integral types and these."""
    return _ALL + dtypes


def complex_types() -> _dispatch_dtypes:
    """complex64 and complex128."""
    return _COMPLEX


def complex_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """complex64, complex128 and these."""
    return _COMPLEX + dtypes


def all_types_and_complex() -> _dispatch_dtypes:
    """Floating, integral and complex types."""
    return _ALL + _COMPLEX


def all_types_and_complex_and(*dtypes: Any) -> _dispatch_dtypes:
    """Floating, integral and complex types and these."""
    return _ALL + _COMPLEX + dtypes


def all_types_and_half() -> _dispatch_dtypes:
    """Floating and integral types and float16."""
    return _ALL + _named("float16")


def float8_types() -> _dispatch_dtypes:
    """The floating types of one byte."""
    return _FLOAT8


def float8_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """The floating types of one byte and these."""
    return _FLOAT8 + dtypes


def all_types_complex_float8_and(*dtypes: Any) -> _dispatch_dtypes:
    """Everything above but float16, and these."""
    return _ALL + _COMPLEX + _FLOAT8 + dtypes


def custom_types(*dtypes: Any) -> _dispatch_dtypes:
    """These."""
    return _dispatch_dtypes() + dtypes


def get_all_int_dtypes() -> list[Any]:
    """uint8 and the signed integers, as a list."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(
    include_half: bool = True, include_bfloat16: bool = True
) -> list[Any]:
    """The floating types, as a list."""
    half = [torch.float16] if include_half else []
    return [*_FLOATING, *half, *([torch.bfloat16] if include_bfloat16 else [])]


def get_all_complex_dtypes(include_complex32: bool = False) -> list[Any]:
    """The complex types, as a list."""
    return [*(_named("complex32") if include_complex32 else ()), *_COMPLEX]


def get_all_math_dtypes(device: str) -> list[Any]:
    """What a device computes in, as a list."""
    floats = get_all_fp_dtypes(device.startswith("cuda"), include_bfloat16=False)
    return get_all_int_dtypes() + floats + get_all_complex_dtypes()


def get_all_dtypes(
    include_half: bool = True,
    include_bfloat16: bool = True,
    include_bool: bool = True,
    include_complex: bool = True,
    include_complex32: bool = False,
    include_qint: bool = False,
) -> list[Any]:
    """All dtypes, as a list."""
    dtypes = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    if include_bool:
        dtypes.append(torch.bool)
    if include_complex:
        dtypes += get_all_complex_dtypes(include_complex32)
    return [*dtypes, *(get_all_qint_dtypes() if include_qint else [])]


def get_all_qint_dtypes() -> list[Any]:
    """The quantized dtypes: there are none."""
    return list(_named("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))


def highest_precision_float(device: Any) -> Any:
    """float64, which all devices of JAX have."""
    return torch.float64


def highest_precision_complex(device: Any) -> Any:
    """complex128, which all devices of JAX have."""
    return torch.complex128


float_to_corresponding_complex_type_map = {
    torch.float32: torch.complex64,
    torch.float64: torch.complex128,
}


def all_mps_types() -> _dispatch_dtypes:
    """What Apple's GPUs compute in."""
    return _named("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8")


def all_mps_types_and(*dtypes: Any) -> _dispatch_dtypes:
    """What Apple's GPUs compute in, and these."""
    return all_mps_types() + dtypes
