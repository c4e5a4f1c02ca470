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

    __name__ = property(  # pyright: ignore[reportAssignmentType]
        lambda cls: cls.__qualname__
    )

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

# Python's flags of classes: made at run time, and those of them that cannot be changed.
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8


def type_name(cls: type[Any]) -> str:
    """The name of `cls` in PyTorch's error texts ("torch.dtype", "int", "Tensor").

    As C has it: classes written in C with their module (`decimal.Decimal`).
    """
    of_c = cls.__flags__ & _IMMUTABLE or not cls.__flags__ & _HEAP
    if of_c and cls.__module__ != "builtins":
        return f"{cls.__module__}.{cls.__name__}"
    return "type" if cls is Builtin else _full_name(cls)


def read_only(self: Any, name: str, value: Any = None) -> NoReturn:
    """``__setattr__`` and ``__delattr__`` of a class that PyTorch implements in C."""
    kind: Any = self.__class__
    owner = type_name(kind)
    if hasattr(kind, name):
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
        *("name", "index", "category", "np", "abbr", "itemsize", "is_complex"),
        *("is_floating_point", "scalar_name", "cpp_name", "tensor_name", "_is_signed"),
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


# All types, in the order of PyTorch's ScalarType numbers: name, bytes, scalar name,
# name in C++ ("" where it follows from the scalar name).
_TABLE: tuple[tuple[str, int, str, str], ...] = (
    ("uint8", 1, "Byte", "unsigned char"),
    ("int8", 1, "Char", "signed char"),
    ("int16", 2, "Short", "short int"),
    ("int32", 4, "Int", "int"),
    ("int64", 8, "Long", "long int"),
    ("float16", 2, "Half", ""),
    ("float32", 4, "Float", "float"),
    ("float64", 8, "Double", "double"),
    ("complex32", 4, "ComplexHalf", "c10::complex<c10::Half>"),
    ("complex64", 8, "ComplexFloat", "c10::complex<float>"),
    ("complex128", 16, "ComplexDouble", "c10::complex<double>"),
    ("bool", 1, "Bool", "bool"),
    ("qint8", 1, "QInt8", "c10::qint8"),
    ("quint8", 1, "QUInt8", "c10::quint8"),
    ("qint32", 4, "QInt32", "c10::qint32"),
    ("bfloat16", 2, "BFloat16", ""),
    ("quint4x2", 1, "QUInt4x2", "c10::quint4x2"),
    ("quint2x4", 1, "QUInt2x4", "c10::quint2x4"),
    ("bits1x8", 1, "Bits1x8", "c10::bits1x8"),
    ("bits2x4", 1, "Bits2x4", "c10::bits2x4"),
    ("bits4x2", 1, "Bits4x2", "c10::bits4x2"),
    ("bits8", 1, "Bits8", "c10::bits8"),
    ("bits16", 2, "Bits16", "c10::bits16"),
    ("float8_e5m2", 1, "Float8_e5m2", ""),
    ("float8_e4m3fn", 1, "Float8_e4m3fn", ""),
    ("float8_e5m2fnuz", 1, "Float8_e5m2fnuz", ""),
    ("float8_e4m3fnuz", 1, "Float8_e4m3fnuz", ""),
    ("uint16", 2, "UInt16", "short unsigned int"),
    ("uint32", 4, "UInt32", "unsigned int"),
    ("uint64", 8, "UInt64", "long unsigned int"),
    *((f"uint{n}", 1, f"UInt{n}", f"c10::dummy_uint1_7_t<{n}>") for n in range(1, 8)),
    *((f"int{n}", 1, f"Int{n}", f"c10::dummy_int1_7_t<{n}>") for n in range(1, 8)),
    ("float8_e8m0fnu", 1, "Float8_e8m0fnu", ""),
    ("float4_e2m1fn_x2", 1, "Float4_e2m1fn_x2", ""),
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


_SUB_BYTE = {f"{kind}{n}" for kind in ("int", "uint") for n in range(1, 8)}


def _category(name: str) -> int:
    if name == "bool":
        return BOOL
    if name.startswith("complex"):
        return COMPLEX
    return FLOATING if name.lstrip("b").startswith("float") else INTEGER


def _signedness(name: str) -> bool | str:
    if name.startswith("bits"):
        return "Bits types are undefined"
    if name.startswith("q"):
        return "isSignedType not supported for quantized types"
    return not name.startswith("uint") and name not in ("bool", "float8_e8m0fnu")


def _abbreviation(name: str, itemsize: int) -> str:
    """PyTorch's short name ("f32"), as its debugging tools print it."""
    if name == "bool":
        return "b8"
    if name in ("bits8", "bits16"):
        return f"b{8 * itemsize}x1"
    if name.startswith("q") or name in _SUB_BYTE:
        return name
    for long, short in (
        *(("bits", "b"), ("bfloat", "bf"), ("float", "f"), ("complex", "c")),
        *(("uint", "u"), ("int", "i"), ("_", "")),
    ):
        name = name.replace(long, short)
    return name


def _make(index: int, name: str, itemsize: int, scalar: str, cpp: str) -> dtype:
    array_type = None
    if name in _NUMPY_NAMES:
        array_type = np.dtype(name)
    elif name in _ML_NAMES and hasattr(ml_dtypes, name):
        array_type = np.dtype(getattr(ml_dtypes, name))
    package = "torch.quantized" if name.startswith("q") else "torch"
    category = _category(name)
    values = {
        "name": name,
        "index": index,
        "category": category,
        "np": array_type,
        "abbr": _abbreviation(name, itemsize),
        "itemsize": itemsize,
        "is_floating_point": category == FLOATING,
        "is_complex": category == COMPLEX,
        "scalar_name": scalar,
        "cpp_name": cpp or f"c10::{scalar}",
        "tensor_name": f"{package}.{scalar}Tensor",
        "_is_signed": _signedness(name),
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
_COMPLEX = {
    **{real: both for both, real in _REAL.items()},
    **{both: both for both in _REAL},
    bfloat16: complex64,
}

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


def get_default_complex_dtype() -> dtype:
    """The dtype of tensors made from Python complex numbers.

    Raises RuntimeError if the default dtype is bfloat16, as ``torch.tensor(1j)`` does.

    >>> get_default_complex_dtype()
    torch.complex64
    """
    if _default is bfloat16:
        raise RuntimeError("invalid default scalar type for complex")
    return _COMPLEX[_default]


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
            got = [type_name(a.__class__) for a in args]
            got += [f"{k}={type_name(v.__class__)}" for k, v in sorted(kwargs.items())]
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
            f"{type_name(value.__class__)}"
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
        *("bits", "dtype", "eps", "max", "min"),
        *("resolution", "smallest_normal", "tiny"),
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
        return isinstance(other, finfo) and self.dtype == other.dtype

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

    __slots__ = ("_of", "bits", "max", "min")

    bits: int
    max: int
    min: int
    _of: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _limits_argument("iinfo", args, kwargs)
        if given is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        quantized = given.name.startswith("q")
        if not quantized and (given.category != INTEGER or given.np is None):
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to "
                "handle 'torch.iinfo'"
            )
        bits = 8 * given.itemsize
        signed = given.name.startswith("qint") if quantized else given.is_signed
        least = -(2 ** (bits - 1)) if signed else 0
        values = {"bits": bits, "max": least + 2**bits - 1, "min": least, "_of": given}
        for key, value in values.items():
            object.__setattr__(self, key, value)

    __setattr__ = read_only
    __delattr__ = read_only

    @property
    def dtype(self) -> str:
        of = self._of
        if of.name.startswith("q"):
            raise NotImplementedError(f'"dtype" not implemented for {of.scalar_name!r}')
        return of.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self._of is other._of

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'torch.iinfo' object")
