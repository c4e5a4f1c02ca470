"""Values that tests compare: bytes as numbers, sparse matrices, checks of creation."""

from __future__ import annotations

import functools
import math
import random
import struct
import types
import unittest
from typing import Any
from unittest.mock import MagicMock

import torchshim as torch
from torchshim import _pytree as tree

_FORMATS = {
    torch.int8: "b",
    torch.uint8: "B",
    torch.uint16: "H",
    torch.uint32: "I",
    torch.uint64: "Q",
    torch.int16: "h",
    torch.int32: "i",
    torch.int64: "q",
    torch.bool: "?",
    torch.float32: "f",
    torch.complex64: "2f",
    torch.float64: "d",
    torch.complex128: "2d",
}


def bytes_to_scalar(byte_list: list[int], dtype: Any, device: Any) -> Any:
    """A tensor of one element with these bytes."""
    layout = "=" + _FORMATS[dtype]
    if len(byte_list) != struct.calcsize(layout):
        raise AssertionError(
            f"expected len(byte_list) == {struct.calcsize(layout)}, got "
            f"{len(byte_list)}"
        )
    parts = struct.unpack(layout, bytes(byte_list))
    value = complex(*parts) if dtype.is_complex else parts[0]
    return torch.tensor(value, device=device, dtype=dtype)


def mock_wrapper(method: Any) -> Any:
    """The method, whose calls its attribute `mock` notes."""
    mock = MagicMock()

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        mock(*args, **kwargs)
        return method(self, *args, **kwargs)

    wrapper.mock = mock  # type: ignore[attr-defined]
    return wrapper


def copy_func(f: Any) -> Any:
    """Another function of the same code."""
    made = types.FunctionType(
        f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    made = functools.update_wrapper(made, f)
    made.__kwdefaults__ = f.__kwdefaults__  # type: ignore[attr-defined]
    return made


def download_file(url: str, binary: bool = True) -> str:
    """Skips the test: nothing is fetched."""
    raise unittest.SkipTest(f"could not download test file '{url}'")


def do_test_dtypes(self: Any, dtypes: Any, layout: Any, device: Any) -> None:
    """Checks what `zeros` gives in these dtypes."""
    for dtype in dtypes:
        if dtype != torch.float16:
            out = torch.zeros((2, 3), dtype=dtype, layout=layout, device=device)
            self.assertIs(dtype, out.dtype)
            self.assertIs(layout, out.layout)
            self.assertEqual(device, out.device)


def do_test_empty_full(self: Any, dtypes: Any, layout: Any, device: Any) -> None:
    """Checks `empty` and `full` with their kin in these dtypes."""
    shape = torch.Size([2, 3])

    def check(made: Any, dtype: Any, value: Any, grad: bool, at: Any = layout) -> None:
        self.assertEqual(shape, made.shape)
        self.assertIs(dtype, made.dtype)
        self.assertIs(at, made.layout)
        self.assertEqual(made.requires_grad, grad)
        if value is not None:
            self.assertEqual(made, made.new(shape).fill_(value))

    default = torch.get_default_dtype()
    check(torch.empty(shape), default, None, False, torch.strided)
    check(torch.full(shape, -5.0), default, -5.0, False, torch.strided)
    for dtype in dtypes:
        for grad in {dtype.is_floating_point, False}:
            at = {"dtype": dtype, "layout": layout, "device": device}
            v = torch.empty(shape, **at, requires_grad=grad)
            check(v, dtype, None, grad)
            out = v.new()
            given = {"out": out, "layout": layout, "device": device}
            check(torch.empty(shape, **given, requires_grad=grad), dtype, None, grad)
            check(v.new_empty(shape), dtype, None, False)
            check(v.new_empty(shape, dtype=torch.int64), torch.int64, None, False)
            check(torch.empty_like(v), dtype, None, False)
            check(torch.empty_like(v, dtype=torch.int64), torch.int64, None, False)
            if dtype is torch.float16 or layout == torch.sparse_coo:
                continue
            v = torch.full(shape, 3, **at, requires_grad=grad)
            check(v, dtype, 3, grad)
            check(v.new_full(shape, 4), dtype, 4, False)
            given["out"] = v.new()
            check(torch.full(shape, 5, **given, requires_grad=grad), dtype, 5, grad)
            check(v.new_full(shape, 6, dtype=torch.int64), torch.int64, 6, False)
            check(torch.full_like(v, 7), dtype, 7, False)
            check(torch.full_like(v, 8, dtype=torch.int64), torch.int64, 8, False)


def outs_and_grads(fn: Any, graph_inps: Any, inps: Any) -> tuple[Any, list[Any]]:
    """What a function gives, and the gradients of its sums."""
    outs = fn(*graph_inps)
    for out in tree.tree_leaves(outs):
        if isinstance(out, torch.Tensor) and out.requires_grad:
            out.sum().backward(retain_graph=True)
    tensors = [i for i in tree.tree_leaves(inps) if isinstance(i, torch.Tensor)]
    grads = [each.grad for each in tensors]
    for each in tensors:
        each.grad = None
    return outs, grads


def compare_equal_outs_and_grads(test: Any, m1: Any, m2: Any, inps: Any) -> None:
    """Both functions give the same results and gradients."""
    r1, g1 = outs_and_grads(m1, inps, inps)
    r2, g2 = outs_and_grads(m2, inps, inps)
    test.assertEqual(r1, r2)
    test.assertEqual(g1, g2)


def coalescedonoff(f: Any) -> Any:
    """A test with `coalesced=True`, then False."""

    @functools.wraps(f)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        f(self, *args, **kwargs, coalesced=True)
        f(self, *args, **kwargs, coalesced=False)

    return run


def random_sparse_matrix(
    rows: int, columns: int, density: float = 0.01, **kwargs: Any
) -> Any:
    """A sparse matrix that has an element in each row, or in each column."""
    dtype = kwargs.get("dtype", torch.double)
    device = kwargs.get("device", "cpu")
    wanted = max(min(rows, columns), int(rows * columns * density))
    longer = max(rows, columns)
    places = [(i * rows // longer, i * columns // longer) for i in range(longer)]
    places = list(dict.fromkeys(places))[:wanted]
    while len(places) < wanted:
        place = random.randrange(rows), random.randrange(columns)
        if place not in places:
            places.append(place)
    values = torch.randn(len(places), dtype=dtype, device=device)
    scale = [math.exp(-(float(i - j) ** 2)) for i, j in places]
    values = values * torch.tensor(scale, dtype=dtype, device=device)
    indices = torch.tensor(places, device=device).t()
    return torch.sparse_coo_tensor(indices, values, (rows, columns)).coalesce()


def random_sparse_pd_matrix(
    matrix_size: int, density: float = 0.01, **kwargs: Any
) -> Any:
    """A sparse positive definite matrix with eigenvalues of 1/n, 2/n, ..., 1."""
    n = matrix_size
    dense = torch.diag(torch.arange(1, n + 1, dtype=torch.double) / n)
    while int((dense != 0).sum()) < density * n * n:
        i, j = random.randrange(n), random.randrange(n)
        if i == j:
            continue
        angle = random.uniform(0, 2 * math.pi)
        turn = torch.eye(n, dtype=torch.double)
        turn[i, i] = turn[j, j] = math.cos(angle)
        turn[i, j], turn[j, i] = math.sin(angle), -math.sin(angle)
        dense = turn.T @ dense @ turn
    made = dense.to(kwargs.get("dtype", torch.double)).to(kwargs.get("device", "cpu"))
    return made.to_sparse()
