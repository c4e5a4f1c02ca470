"""Scalar types: the ``torch.dtype`` singletons, their limits, and the default dtype.

See https://docs.pytorch.org/docs/2.13/tensor_attributes.html and
https://docs.pytorch.org/docs/2.13/type_info.html.
"""

from __future__ import annotations

from typing import Any, NoReturn

import ml_dtypes
import numpy as np

BOOL, INTEGER, FLOATING, COMPLEX = range(4)


class Builtin(type):
    """Metaclass of the classes that PyTorch implements in C.

    The interpreter's own messages name such a class by its full path
    ("unhashable type: 'torch.finfo'"), and it can be neither subclassed nor
    given attributes.
    """

    __name__ = property(lambda cls: cls.__qualname__)

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]
    ) -> Builtin:
        for base in bases:
            if isinstance(base, Builtin):
                raise TypeError(
                    f"type '{type_name(base)}' is not an acceptable base type"
                )
        # Pickle must find the class under a module that can be imported.
        namespace["__module__"] = "torchshim"
        return super().__new__(mcs, f"torch.{name}", bases, namespace)

    def __repr__(cls) -> str:
        return f"<class '{type_name(cls)}'>"


_full_name = type.__dict__["__name__"].__get__


def type_name(cls: type) -> str:
    """The name of `cls` in PyTorch's error texts ("torch.dtype", "int", "Tensor")."""
    return _full_name(cls)


def read_only(self: Any, name: str, value: Any = None) -> NoReturn:
    """``__setattr__`` and ``__delattr__`` of a class that PyTorch implements in C."""
    owner = type_name(type(self))
    if hasattr(type(self), name):
        raise AttributeError(f"attribute '{name}' of '{owner}' objects is not writable")
    raise AttributeError(f"'{owner}' object has no attribute '{name}'")


class dtype(metaclass=Builtin):
    """The type of a tensor's elements; one object per type.

    ``name``, ``index``, ``category``, ``np``, ``scalar_name``, ``cpp_name`` and
    ``tensor_name`` are this package's own; the rest is PyTorch's.

    >>> float32
    torch.float32
    >>> bfloat16.to_complex(), int16.itemsize, uint8.is_signed
    (torch.complex64, 2, False)
    """

    __slots__ = (
        "_is_signed",
        "abbr",
        "category",
        "cpp_name",
        "index",
        "is_complex",
        "is_floating_point",
        "itemsize",
        "name",
        "np",
        "scalar_name",
        "tensor_name",
    )

    name: str
    index: int
    category: int
    np: np.dtype[Any] | None
    abbr: str
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    scalar_name: str
    cpp_name: str
    tensor_name: str
    _is_signed: bool | str

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    __setattr__ = read_only
    __delattr__ = read_only

    @property
    def is_signed(self) -> bool:
        """Whether negative values can be represented; undefined for bits types."""
        if isinstance(self._is_signed, str):
            raise RuntimeError(self._is_signed)
        return self._is_signed

    def to_real(self) -> dtype:
        """The type of the real part of a complex type; any other type itself."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type whose parts hold this type's values."""
        if self not in _COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return _COMPLEX[self]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


# All types, in the order of PyTorch's ScalarType numbers:
# name, category, bytes, scalar name, name in C++, short name.
_TABLE: tuple[tuple[str, int, int, str, str, str], ...] = (
    ("uint8", INTEGER, 1, "Byte", "unsigned char", "u8"),
    ("int8", INTEGER, 1, "Char", "signed char", "i8"),
    ("int16", INTEGER, 2, "Short", "short int", "i16"),
    ("int32", INTEGER, 4, "Int", "int", "i32"),
    ("int64", INTEGER, 8, "Long", "long int", "i64"),
    ("float16", FLOATING, 2, "Half", "c10::Half", "f16"),
    ("float32", FLOATING, 4, "Float", "float", "f32"),
    ("float64", FLOATING, 8, "Double", "double", "f64"),
    ("complex32", COMPLEX, 4, "ComplexHalf", "c10::complex<c10::Half>", "c32"),
    ("complex64", COMPLEX, 8, "ComplexFloat", "c10::complex<float>", "c64"),
    ("complex128", COMPLEX, 16, "ComplexDouble", "c10::complex<double>", "c128"),
    ("bool", BOOL, 1, "Bool", "bool", "b8"),
    ("qint8", INTEGER, 1, "QInt8", "c10::qint8", "qint8"),
    ("quint8", INTEGER, 1, "QUInt8", "c10::quint8", "quint8"),
    ("qint32", INTEGER, 4, "QInt32", "c10::qint32", "qint32"),
    ("bfloat16", FLOATING, 2, "BFloat16", "c10::BFloat16", "bf16"),
    ("quint4x2", INTEGER, 1, "QUInt4x2", "c10::quint4x2", "quint4x2"),
    ("quint2x4", INTEGER, 1, "QUInt2x4", "c10::quint2x4", "quint2x4"),
    ("bits1x8", INTEGER, 1, "Bits1x8", "c10::bits1x8", "b1x8"),
    ("bits2x4", INTEGER, 1, "Bits2x4", "c10::bits2x4", "b2x4"),
    ("bits4x2", INTEGER, 1, "Bits4x2", "c10::bits4x2", "b4x2"),
    ("bits8", INTEGER, 1, "Bits8", "c10::bits8", "b8x1"),
    ("bits16", INTEGER, 2, "Bits16", "c10::bits16", "b16x1"),
    ("float8_e5m2", FLOATING, 1, "Float8_e5m2", "c10::Float8_e5m2", "f8e5m2"),
    ("float8_e4m3fn", FLOATING, 1, "Float8_e4m3fn", "c10::Float8_e4m3fn", "f8e4m3fn"),
    (
        "float8_e5m2fnuz",
        FLOATING,
        1,
        "Float8_e5m2fnuz",
        "c10::Float8_e5m2fnuz",
        "f8e5m2fnuz",
    ),
    (
        "float8_e4m3fnuz",
        FLOATING,
        1,
        "Float8_e4m3fnuz",
        "c10::Float8_e4m3fnuz",
        "f8e4m3fnuz",
    ),
    ("uint16", INTEGER, 2, "UInt16", "short unsigned int", "u16"),
    ("uint32", INTEGER, 4, "UInt32", "unsigned int", "u32"),
    ("uint64", INTEGER, 8, "UInt64", "long unsigned int", "u64"),
    *((f"uint{n}", INTEGER, 1, f"UInt{n}", "", f"uint{n}") for n in range(1, 8)),
    *((f"int{n}", INTEGER, 1, f"Int{n}", "", f"int{n}") for n in range(1, 8)),
    (
        "float8_e8m0fnu",
        FLOATING,
        1,
        "Float8_e8m0fnu",
        "c10::Float8_e8m0fnu",
        "f8e8m0fnu",
    ),
    (
        "float4_e2m1fn_x2",
        FLOATING,
        1,
        "Float4_e2m1fn_x2",
        "c10::Float4_e2m1fn_x2",
        "f4e2m1fnx2",
    ),
)

# The types whose arrays XLA can hold. `complex32`, the packed, quantized, bits
# and sub-byte types exist as names only.
_NUMPY_NAMES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"),
    *("int64", "float16", "float32", "float64", "complex64", "complex128"),
)
_ML_NAMES = (
    *("bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz"),
    *("float8_e4m3fnuz", "float8_e8m0fnu"),
)


def _signedness(name: str, category: int) -> bool | str:
    if name.startswith("bits"):
        return "Bits types are undefined"
    if name.startswith("q"):
        return "isSignedType not supported for quantized types"
    return not name.startswith("uint") and name != "float8_e8m0fnu" and category != BOOL


def _make(
    index: int,
    name: str,
    category: int,
    itemsize: int,
    scalar: str,
    cpp: str,
    abbr: str,
) -> dtype:
    array_type = None
    if name in _NUMPY_NAMES:
        array_type = np.dtype(name)
    elif name in _ML_NAMES and hasattr(ml_dtypes, name):
        array_type = np.dtype(getattr(ml_dtypes, name))
    package = "torch.quantized" if name.startswith("q") else "torch"
    values = {
        "name": name,
        "index": index,
        "category": category,
        "np": array_type,
        "abbr": abbr,
        "itemsize": itemsize,
        "is_floating_point": category == FLOATING,
        "is_complex": category == COMPLEX,
        "scalar_name": scalar,
        "cpp_name": cpp or f"c10::{name}",
        "tensor_name": f"{package}.{scalar}Tensor",
        "_is_signed": _signedness(name, category),
    }
    made = object.__new__(dtype)
    for key, value in values.items():
        object.__setattr__(made, key, value)
    return made


DTYPES: tuple[dtype, ...] = tuple(_make(i, *row) for i, row in enumerate(_TABLE))
_BY_NAME: dict[str, dtype] = {d.name: d for d in DTYPES}

bool_ = _BY_NAME["bool"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
float16 = _BY_NAME["float16"]
bfloat16 = _BY_NAME["bfloat16"]
float32 = _BY_NAME["float32"]
float64 = _BY_NAME["float64"]
complex32 = _BY_NAME["complex32"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]

# Every name under which the package root exports a dtype.
NAMES: dict[str, dtype] = _BY_NAME | {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "chalf": complex32,
    "cfloat": complex64,
    "cdouble": complex128,
    "bit": _BY_NAME["uint1"],
}

_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {real: both for both, real in _REAL.items()}
_COMPLEX |= {both: both for both in _REAL} | {bfloat16: complex64}

# Python's own types stand for dtypes wherever PyTorch takes a dtype.
_PYTHON_TYPES: dict[Any, dtype] = {
    float: float64,
    int: int64,
    bool: bool_,
    complex: complex128,
}


def as_dtype(value: Any) -> dtype | None:
    """The dtype that an argument stands for, or None if it is no dtype.

    >>> as_dtype(float), as_dtype(int16), as_dtype("float32")
    (torch.float64, torch.int16, None)
    """
    if value.__class__ is dtype:
        return value
    return _PYTHON_TYPES.get(value) if isinstance(value, type) else None


# NumPy ----------------------------------------------------------------------

_FROM_NUMPY: dict[type, dtype] = {np.dtype(n).type: _BY_NAME[n] for n in _NUMPY_NAMES}
_FROM_NUMPY[np.longlong] = int64
_FROM_ARRAY: dict[np.dtype[Any], dtype] = {d.np: d for d in DTYPES if d.np is not None}


def from_numpy_dtype(array_dtype: np.dtype[Any]) -> dtype:
    """The dtype of a NumPy array that a script hands over.

    Raises TypeError for element types that PyTorch can't take over, ValueError for
    a foreign byte order, as https://docs.pytorch.org/docs/2.13/generated/torch.from_numpy.html.

    >>> from_numpy_dtype(np.dtype("int16"))
    torch.int16
    """
    found = _FROM_NUMPY.get(array_dtype.type)
    if found is None:
        element = array_dtype.type
        raise TypeError(
            f"can't convert np.ndarray of type {element.__module__}.{element.__name__}."
            " The only supported types are: float64, float32, float16, complex64, "
            "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
            "and bool."
        )
    if not array_dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    return found


def from_array_dtype(array_dtype: Any) -> dtype:
    """The dtype of one of our own arrays (JAX or NumPy), ml_dtypes included.

    >>> from_array_dtype(ml_dtypes.bfloat16)
    torch.bfloat16
    """
    return _FROM_ARRAY[np.dtype(array_dtype)]


def array_dtype(d: dtype) -> np.dtype[Any]:
    """The element type of the arrays that hold `d`.

    Raises NotImplementedError for the types that XLA has no arrays for.

    >>> array_dtype(float32)
    dtype('float32')
    """
    if d.np is None:
        raise NotImplementedError(
            f"{d} exists as a name only: torchshim can't make tensors of this dtype"
        )
    return d.np


def as_numpy(d: dtype) -> np.dtype[Any]:
    """The element type of ``tensor.numpy()``; TypeError where NumPy has none.

    >>> as_numpy(int64)
    dtype('int64')
    """
    if d.name not in _NUMPY_NAMES or d.np is None:
        raise TypeError(f"Got unsupported ScalarType {d.scalar_name}")
    return d.np


# The default dtype ----------------------------------------------------------

_default = float32


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats.

    See https://docs.pytorch.org/docs/2.13/generated/torch.get_default_dtype.html.

    >>> get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d: dtype, /) -> None:
    """Sets the dtype of tensors made from Python floats, for all threads.

    See https://docs.pytorch.org/docs/2.13/generated/torch.set_default_dtype.html.

    >>> set_default_dtype(float64)
    >>> get_default_dtype(), get_default_complex_dtype()
    (torch.float64, torch.complex128)
    >>> set_default_dtype(float32)
    """
    global _default
    if d.__class__ is not dtype:
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the "
            "default type"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d.itemsize == 1:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    _default = d


def default_complex(default: dtype) -> dtype:
    """The dtype of Python complex numbers under a default dtype.

    >>> default_complex(float64)
    torch.complex128
    """
    if default is bfloat16:
        raise RuntimeError("invalid default scalar type for complex")
    return _COMPLEX[default]


def get_default_complex_dtype() -> dtype:
    """The dtype of tensors made from Python complex numbers.

    >>> get_default_complex_dtype()
    torch.complex64
    """
    return default_complex(_default)


# Limits ---------------------------------------------------------------------

# (bits, eps, largest, smallest, smallest normal, decimal digits); None: -largest.
_FLOAT_LIMITS: dict[str, tuple[int, float, float, float | None, float, int]] = {
    "float64": (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, None, 2.0**-1022, 15),
    "float32": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, None, 2.0**-126, 6),
    "float16": (16, 2.0**-10, 65504.0, None, 2.0**-14, 3),
    "bfloat16": (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, None, 2.0**-126, 2),
    "float8_e5m2": (8, 0.25, 57344.0, None, 2.0**-14, 0),
    "float8_e4m3fn": (8, 0.125, 448.0, None, 2.0**-6, 0),
    "float8_e5m2fnuz": (8, 0.125, 57344.0, None, 2.0**-15, 0),
    "float8_e4m3fnuz": (8, 0.125, 240.0, None, 2.0**-7, 0),
    "float8_e8m0fnu": (8, 1.0, 2.0**127, 2.0**-127, 2.0**-127, 0),
}


def _limits_argument(
    function: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dtype:
    """The one dtype argument, checked with the texts of PyTorch's argument parser."""
    if args:
        where, value = " (position 1)", args[0]
    elif "type" in kwargs:
        where, value = "", kwargs["type"]
    else:
        raise TypeError(f'{function}() missing 1 required positional arguments: "type"')
    if len(args) + len(kwargs) > 1:
        if function == "finfo":
            got = [type_name(type(a)) for a in args]
            got += [f"{k}={type_name(type(v))}" for k, v in sorted(kwargs.items())]
            raise TypeError(
                "finfo() received an invalid combination of arguments - got "
                f"({', '.join(got)}{'' if args else ', '}), but expected one of:\n"
                " * (torch.dtype type)\n * ()\n"
            )
        if len(args) > 1:
            raise TypeError(
                f"{function}() takes 1 positional argument but {len(args)} were given"
            )
        extra = next(k for k in kwargs if k != "type" or args)
        problem = "multiple values for" if extra == "type" else "an unexpected keyword"
        raise TypeError(f"{function}() got {problem} argument '{extra}'")
    found = as_dtype(value)
    if found is None:
        raise TypeError(
            f"{function}(): argument 'type'{where} must be torch.dtype, not "
            f"{type_name(type(value))}"
        )
    return found


class finfo(metaclass=Builtin):
    """The limits of a floating point dtype (of its parts, for a complex one).

    Without an argument, of the default dtype. Raises TypeError for other dtypes. See
    https://docs.pytorch.org/docs/2.13/type_info.html#torch.finfo.

    >>> finfo(bfloat16).eps, finfo(float32).bits
    (0.0078125, 32)
    """

    __slots__ = (
        "bits",
        "dtype",
        "eps",
        "max",
        "min",
        "resolution",
        "smallest_normal",
        "tiny",
    )

    bits: int
    dtype: str
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            given = _limits_argument("finfo", args, kwargs)
        else:
            given = get_default_dtype()
        if given.category < FLOATING:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo "
                "to handle 'torch.finfo'"
            )
        name = given.to_real().name
        if name not in _FLOAT_LIMITS:
            raise TypeError("bad argument type for built-in operation")
        bits, eps, largest, smallest, normal, digits = _FLOAT_LIMITS[name]
        values = {
            "bits": bits,
            "dtype": name,
            "eps": eps,
            "max": largest,
            "min": -largest if smallest is None else smallest,
            "resolution": float(f"1e-{digits}"),
            "smallest_normal": normal,
            "tiny": normal,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    __setattr__ = read_only
    __delattr__ = read_only

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not finfo:
            return NotImplemented
        return self.dtype == other.dtype  # pyright: ignore[reportAttributeAccessIssue]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, "
            f"max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'torch.finfo' object")


class iinfo(metaclass=Builtin):
    """The limits of an integer dtype. Raises TypeError for other dtypes.

    See https://docs.pytorch.org/docs/2.13/type_info.html#torch.iinfo.

    >>> iinfo(int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    bits: int
    dtype: str
    max: int
    min: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _limits_argument("iinfo", args, kwargs)
        if given is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if given.name.startswith("q"):
            raise NotImplementedError(
                f"\"dtype\" not implemented for '{given.scalar_name}'"
            )
        if given.category != INTEGER or given.np is None:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to "
                "handle 'torch.iinfo'"
            )
        bits = 8 * given.itemsize
        values = {
            "bits": bits,
            "dtype": given.name,
            "max": 2 ** (bits - given.is_signed) - 1,
            "min": -(2 ** (bits - 1)) if given.is_signed else 0,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    __setattr__ = read_only
    __delattr__ = read_only

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not iinfo:
            return NotImplemented
        return self.dtype == other.dtype  # pyright: ignore[reportAttributeAccessIssue]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'torch.iinfo' object")
