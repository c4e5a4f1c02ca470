"""Questions about tensors and types, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tests.oracle import attempt, case, evaluate


@case(raises=AssertionError).lines(r"""
torch.typename(torch.ones(2))
torch.typename(3)
torch.numel(torch.ones(2,3))
torch._assert(torch.ones(2).sum() > 1, "small")
torch._assert(condition=1 > 2, message="small")
torch._assert(torch.zeros(1), "none")
torch._assert_tensor_metadata(torch.ones(2, 3))
torch._assert_tensor_metadata(torch.ones(2, 3), [2, 3], [3, 1], torch.float32)
torch._assert_tensor_metadata(torch.ones(2, 3), device="cpu", layout=torch.strided)
torch._assert_tensor_metadata(torch.ones(2), [3], [1], torch.float)
torch._assert_tensor_metadata(torch.ones(2), [2], [3], torch.float)
torch._assert_tensor_metadata(torch.ones(2, dtype=torch.int64), dtype=torch.bfloat16)
torch._assert_tensor_metadata(torch.ones(2), device="meta")
torch._assert_tensor_metadata(torch.ones(2), layout=torch.sparse_csr)
torch._assert_tensor_metadata(1)
torch.numel(3)
torch.is_tensor(3)
torch.is_storage(torch.ones(2).untyped_storage())
torch.is_floating_point(3)
torch.is_floating_point(torch.ones(2))
torch.is_complex(torch.ones(2))
torch._is_all_true(torch.arange(2) > 0), torch._is_any_true(torch.arange(2) > 0)
torch._is_all_true(torch.ones(2, 2) > 0), torch._is_all_true(torch.ones(0) > 0)
torch._is_any_true(torch.ones(2, 2) < 0), torch._is_any_true(torch.ones(0) > 0)
torch.ones(2).is_signed()
torch.result_type(torch.ones(2),1)
torch.result_type(1,2)
torch.result_type(torch.ones(2,dtype=torch.int32),1.5)
torch.result_type('a',1)
""")
def query(torch, line):
    return evaluate(torch, line, np=np, copy=copy, pickle=pickle)


@case
def result_types(torch):
    kinds = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex64]
    for a in kinds:
        for b in kinds:
            whole, single = torch.ones(2, dtype=a), torch.tensor(1, dtype=b)
            yield torch.result_type(whole, single), torch.result_type(whole, 1.5)


@case.lines(r"""
torch.broadcast_shapes()
torch.broadcast_shapes((2, 1), (3,), 1, [4, 1, 1])
torch.broadcast_shapes(None, torch.Size([2]), ())
torch.broadcast_shapes((0,), (1,))
torch.broadcast_shapes((True, 3))
torch.broadcast_shapes((0,), (2,))
torch.broadcast_shapes((3, 2), (1, 1), (3, 4))
torch.broadcast_shapes((2, 3), (-5, 3))
torch.broadcast_shapes(-3)
torch.broadcast_shapes(1.5)
torch.broadcast_shapes(torch.tensor([2, 3]))
torch.pi, torch.e, torch.inf, -torch.inf
torch.tensor([torch.nan, torch.inf, torch.pi])[torch.newaxis]
""")
def shapes_and_constants(torch, line):
    return evaluate(torch, line)


@case
def sizes_beyond_64_bits(torch):
    x = torch.empty((), dtype=torch.float64)
    for size in ([2, 4, 2**29, 2**29], [0, 4, 2**61]):
        for make in (torch.empty, torch.zeros, torch.randn, x.resize_):
            yield attempt(make, size)


@case
def formats_of_resizing(torch):
    x = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    for format in (torch.preserve_format, torch.contiguous_format):
        yield torch.ones(96).resize_as_(x, memory_format=format).stride()
    yield attempt(x.resize_, 4, memory_format=torch.preserve_format)


@case
def other_dtypes_of_nothing(torch):
    for shape in ((0, 5, 64), (2, 0), (0, 3)):
        for dtype in (torch.uint8, torch.complex64, torch.int16):
            yield attempt(lambda s=shape, d=dtype: torch.ones(s).view(d).shape)
    a = torch.ones(4, 4, 4)
    yield attempt(lambda: a[:, :, 1:2].view(torch.complex64))
    yield attempt(lambda: a[:, :, ::2].view(torch.complex64))


@case
def refused_pieces(torch):
    place = torch.empty((), dtype=torch.int64, device="meta")
    yield attempt(torch.tensor_split, torch.rand(4), place, 0)
    yield attempt(torch.tensor(1).unflatten, 0, [])


@case
def warnings_each_time(torch):
    """A call that warns does so again where the same was recorded before."""

    def told(function):
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        return [str(w.message)[:30] for w in caught]

    one, x = torch.ones(1), torch.ones(2, 1)
    for function in (
        lambda: one.std(),
        lambda: torch.var_mean(x, dim=1),
        lambda: torch.var(one * 2, correction=5).item(),
        lambda: torch.cov(torch.ones(1, 1)),
    ):
        yield [told(function) for _ in range(6)]
    w = torch.ones(1, requires_grad=True)
    for _ in range(3):
        yield told(lambda: (w.std() + one.var()).item())
    yield told(lambda: torch.ones(3).std()), told(lambda: torch.ones(3).std())


@case.lines("""
torch.isin(elements=x, test_element=1.0), torch.isin(x, test_element=2)
torch.isin(element=1.0, test_elements=x)
torch.isin(element=5, test_elements=x, invert=True)
torch.isin(x, test_element=2, out=torch.empty(2, dtype=torch.bool))
(x > 0)._is_all_true(), (x > 1)._is_all_true(), (x > 1)._is_any_true()
torch.ones(0, dtype=torch.bool)._is_any_true()
""")
def tests_of_elements(torch, line):
    return evaluate(torch, line, x=torch.tensor([1.0, 2.0]))
