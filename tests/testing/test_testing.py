"""`torch.testing`, compared with PyTorch to the letter."""

from __future__ import annotations

import importlib

import numpy as np

from tests.oracle import attempt, case

NAN = float("nan")


def _testing(torch):
    return importlib.import_module(f"{torch.__name__}.testing")


def pairs(torch):
    t = torch.tensor
    one = t([1.0, 2.0, 3.0])
    yield one, one + 1e-7
    yield one, t([1.0, 2.5, 4.0])
    yield t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 0.0], [3.0, NAN]])
    yield t(1.0), t(2.0)
    yield t(1.0), t(0.0)
    yield one, one.double()
    yield one, one[:2]
    yield t([1, 2, 3]), t([1, 5, 0])
    yield t([True, False]), t([True, True])
    yield t([1 + 2j]), t([1 + 3j])
    yield t([NAN]), t([NAN])
    yield t([float("inf"), -1.0]), t([float("inf"), 1.0])
    yield one.bfloat16(), (one + 0.5).bfloat16()
    yield one.half(), (one + 0.001).half()
    yield t([3], dtype=torch.uint8), t([255], dtype=torch.uint8)
    yield torch.empty(0), torch.empty(0)
    yield np.ones(2), np.ones(2)
    yield np.ones(2), np.zeros(2, np.float32)
    yield 1, 1
    yield 1, 1.0
    yield 1.0, 1.0 + 1e-9
    yield 1.0, 2.0
    yield 1.0, 0
    yield NAN, NAN
    yield 1 + 1j, 1 + 2j
    yield np.float64(1), 1.0
    yield True, False
    yield True, np.bool_(True)
    yield None, 1
    yield None, None
    yield [1, one], [1, one]
    yield [1, one], (1, one + 1)
    yield [1], [1, 2]
    yield {"a": 1, "b": [one, one]}, {"a": 1, "b": [one, one + 1]}
    yield {"a": 1}, {"b": 1}
    yield {2: 1.0, 1: 2.0}, {2: 2.0, 1: 3.0}
    yield torch.nn.Parameter(one), one
    meta = one.to("meta")
    yield meta, meta + 1
    yield [meta], [meta[:1]]
    yield meta, meta.double()
    yield meta, one
    yield {meta: 1, one: 2}, {meta: 1, one: 3}
    yield {1: 1, "a": 2}, {1: 1, "a": 2.5}


@case
def closeness(torch):
    testing = _testing(torch)
    for actual, expected in pairs(torch):
        yield attempt(testing.assert_close, actual, expected)


@case
def options(torch):
    close, t = _testing(torch).assert_close, torch.tensor
    one = t([1.0, 2.0])
    yield attempt(close, t([NAN]), t([NAN]), equal_nan=True)
    yield attempt(close, NAN, NAN, equal_nan=True)
    yield attempt(close, one, one + 0.1, rtol=0, atol=0.2)
    yield attempt(close, one, one + 0.1, rtol=0.01, atol=0.01)
    yield attempt(close, one, one + 0.1, rtol=0, atol=0)
    yield attempt(close, one, one, rtol=0.1)
    yield attempt(close, 1.0, 1.0, atol=0.1)
    yield attempt(close, one, one.double(), check_dtype=False)
    yield attempt(close, 1, 1.0, check_dtype=False)
    yield attempt(close, one, t([1, 3]), check_dtype=False)
    yield attempt(close, t([1, 2]), t([1, 4]), rtol=0.1, atol=0.1)
    yield attempt(close, torch.ones(2, 3), torch.ones(3, 2).T, check_stride=True)
    yield attempt(close, torch.ones(2, 3), torch.ones(3, 2).T)
    yield attempt(close, torch.nn.Parameter(one), one, allow_subclasses=False) is None
    yield attempt(close, one, one + 1, msg="mine")
    yield attempt(close, one, one + 1, msg=lambda text: f"<{text}>")
    yield attempt(close, [one], [one, one], msg="mine")
    small = t([200, 1], dtype=torch.uint8), t([1.5, 1.0])
    yield attempt(close, *small, check_dtype=False)
    yield attempt(close, one, one.to("meta"), check_device=False)


@case(message=False)
def what_is_no_pair(torch):
    close = _testing(torch).assert_close
    for pair in (("a", "a"), (torch.ones(1), 1.0), (torch.ones(1), [1.0]), ({1}, {1})):
        yield attempt(close, *pair)


@case
def allclose(torch):
    close = _testing(torch).assert_allclose
    yield attempt(close, torch.ones(2), [1.0, 1.0])
    yield attempt(close, [1.0, 2.0], torch.tensor([1.0, 2.5]))
    yield attempt(close, torch.ones(2), torch.ones(2, dtype=torch.float64) + 1e-4)
    yield attempt(close, torch.ones(1), torch.zeros(1), msg="mine")


@case
def made(torch):
    make = _testing(torch).make_tensor
    for name in (
        "float32",
        "float64",
        "int64",
        "uint8",
        "bool",
        "complex64",
        "bfloat16",
    ):
        yield make((2, 3), dtype=getattr(torch, name), device="cpu")
    float32 = {"dtype": torch.float32, "device": "cpu"}
    yield make(2, 2, **float32, low=1, high=2), make(**float32), make([], **float32)
    yield make(3, **float32, requires_grad=True)
    strided = make(2, 3, **float32, noncontiguous=True)
    yield strided, strided.stride(), strided.storage_offset()
    yield make(1, **float32, noncontiguous=True).is_contiguous()
    images = make(1, 2, 2, 2, **float32, memory_format=torch.channels_last)
    yield images.stride()
    integers = {"dtype": torch.int8, "device": "cpu"}
    yield make(20, **integers, low=0, high=2, exclude_zero=True)
    yield make(4, **integers, low=-1000, high=1000), make(2, **integers, low=0.5)
    yield make(3, **float32, low=float("-inf"), high=float("inf")).isfinite()


@case
def make_errors(torch):
    make = _testing(torch).make_tensor
    float32 = {"dtype": torch.float32, "device": "cpu"}
    integers = {"dtype": torch.int8, "device": "cpu"}
    yield attempt(make, 2, **float32, low=NAN)
    yield attempt(make, 2, **float32, low=1, high=1)
    yield attempt(make, 2, **float32, low=2, high=1)
    yield attempt(make, 2, **integers, low=200, high=300)
    yield attempt(make, 2, **integers, requires_grad=True)
    yield attempt(
        make, 2, **float32, noncontiguous=True, memory_format=torch.contiguous_format
    )


@case
def tolerances_by_dtype(torch):
    found = importlib.import_module(f"{torch.__name__}.testing._comparison")
    default = found.default_tolerances
    yield default(torch.float32), default(torch.int64), default(torch.complex64)
    yield default(torch.float64, torch.ones(1, dtype=torch.half))
    yield default(torch.float32, dtype_precisions={torch.float32: (0.5, 0.25)})
    yield attempt(default, 3)


@case
def questions_of_dtypes_and_strides(torch):
    prims = importlib.import_module(f"{torch.__name__}._prims_common")
    for shape in ((), (2,), (2, 3), (4, 0, 3), (1, 2, 3, 4)):
        yield prims.make_contiguous_strides_for(shape)
        yield prims.make_contiguous_strides_for(shape, row_major=False)
    names = "bool int8 uint16 float16 bfloat16 float8_e4m3fn complex32 complex128"
    for dtype in (getattr(torch, name) for name in names.split()):
        kinds = ("boolean", "integer", "float", "complex")
        yield [getattr(prims, f"is_{kind}_dtype")(dtype) for kind in kinds]
        yield prims.dtype_to_type(dtype)
        yield attempt(prims.corresponding_complex_dtype, dtype)
        yield attempt(prims.corresponding_real_dtype, dtype)
