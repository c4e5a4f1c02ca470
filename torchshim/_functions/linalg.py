"""Functions of linear algebra that choose among operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchshim._autocast import autocast_whole
from torchshim._core import dtypes
from torchshim._core.promotion import real_number
from torchshim._core.record import untracked
from torchshim._derived import fns, namespace, public
from torchshim._functions._arguments import only_bools, tensor_argument, unfit
from torchshim._functions.memory import write_into
from torchshim._ops._common import broadcast_shapes
from torchshim._ops._linalg import castable_text
from torchshim._ops.view_geometry import wrap_dim
from torchshim._out import check_outs
from torchshim._structseq import structseq
from torchshim._tensor import Tensor

# What norms say of an `out=` of another dtype, after their name.
OTHER_NORM = "expected out tensor dtype {want.scalar_name} but got: {have.scalar_name}"


def _given(name: str, result: Tensor, out: Any, *args: Any) -> Tensor:
    """A result, in `out` if there is one; `name` is the function's in errors."""
    if out is None:
        return result
    text = castable_text(name, "solution" if name.endswith("lstsq") else "result")
    return write_into(f"linalg_{name.split('.')[-1]}", result, out, args, True, text)


def _check_square(A: Tensor, name: str) -> None:
    _check_matrix(A, name)
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by "
            f"{columns} matrices"
        )


def _check_matrix(A: Tensor, name: str, which: str = "A") -> None:
    if A.dim() < 2:
        raise RuntimeError(
            f"{name}: The input tensor {which} must have at least 2 dimensions."
        )


@public(method=True)
@autocast_whole("inverse")
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse matrix; `linalg.inv` by its older name.

    https://docs.pytorch.org/docs/2.13/generated/torch.inverse.html

    >>> import torchshim as torch
    >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return fns.linalg_inv(input, out=out)


@public(namespaces=("linalg",))
def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """A norm of vectors or, where two dimensions are given or there, of matrices.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.norm.html

    >>> import torchshim as torch
    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if dim is not None:
        axes = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(axes) not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                f"[{', '.join(map(str, axes))}]"
            )
    elif ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or "
            f"2D. Got {A.dim()}D."
        )
    else:
        axes = (-2, -1) if A.dim() == 2 else ()
    matrix = isinstance(ord, str) or (
        ord is not None and (len(axes) == 2 if dim is not None else A.dim() == 2)
    )
    if matrix:
        pair = axes if dim is not None else (-2, -1)
        result = fns.matrix_norm(A, ord, pair, keepdim, dtype=dtype)
    else:
        order = 2.0 if ord is None else ord
        result = fns.vector_norm(
            A, order, axes if dim is not None else None, keepdim, dtype=dtype
        )
    if out is None:
        return result
    return write_into("linalg_norm", result, out, (A,), f"linalg.norm {OTHER_NORM}")


# Pseudo-inverses, ranks, condition numbers --------------------------------------------


@public(namespaces=("linalg",))
def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudo-inverse: singular values up to a tolerance count as zeros.

    The tolerance is max(atol, rtol * largest); `rcond` is `rtol` by its older name.
    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.pinv.html

    >>> import torchshim as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    tensor_argument("linalg_pinv", "input", 1, input)
    _check_tolerances("linalg_pinv", atol, rtol)
    if isinstance(rcond, Tensor):
        _check_tolerance("torch.linalg.pinv", "rcond", rcond)
    relative = _as_float(rtol if rcond is None else rcond)
    found = fns.linalg_pinv(input, _as_float(atol), relative, hermitian)
    return _given("linalg.pinv", found, out, input)


def _check_tolerances(name: str, atol: Any, rtol: Any) -> None:
    """Raises for tensors with dimensions beside a number: there is no such form."""
    both = None not in (atol, rtol)
    tensors = [isinstance(t, Tensor) and t.dim() > 0 for t in (atol, rtol)]
    numbers = [not isinstance(t, Tensor) for t in (atol, rtol)]
    if both and any(tensors) and any(numbers):
        raise unfit(name)


def _check_tolerance(name: str, which: str, tolerance: Any) -> None:
    if isinstance(tolerance, Tensor) and tolerance._tmeta.dtype.is_complex:
        raise RuntimeError(
            f"{name}: {which} tensor of complex type is not supported. Got "
            f"{tolerance._tmeta.dtype.scalar_name}"
        )


def _as_float(tolerance: Any) -> Any:
    return float(tolerance) if isinstance(tolerance, int) else tolerance


@public(method=True)
@autocast_whole("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; `linalg.pinv` by its older name.

    https://docs.pytorch.org/docs/2.13/generated/torch.pinverse.html

    >>> import torchshim as torch
    >>> torch.pinverse(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return fns.linalg_pinv(input, None, _as_float(rcond), False)


@public(namespaces=("linalg",))
@autocast_whole("linalg_matrix_rank")
def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values are above the tolerance max(atol, rtol * largest).

    `tol` is `atol` with an `rtol` of 0.
    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.matrix_rank.html

    >>> import torchshim as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 2))
    tensor(1)
    """
    name = "torch.linalg.matrix_rank"
    tensor_argument("linalg_matrix_rank", "input", 1, input)
    _check_tolerances("linalg_matrix_rank", atol, rtol)
    _check_matrix(input, name, "input")
    dtype = input._tmeta.dtype
    if dtype.category < dtypes.FLOATING or dtype.itemsize < 4:
        raise RuntimeError(
            "This function doesn't handle types other than float and double"
        )
    if tol is not None:
        atol, rtol = tol, 0.0
    for which, each in (("atol", atol), ("rtol", rtol)):
        _check_tolerance(name, which, each)
    with untracked():
        result = _rank(input.detach(), atol, rtol, hermitian)
    return _given("torch.linalg.matrix_rank", result, out)


def _rank(input: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if hermitian:
        values = fns.abs(fns.eigvalsh(input))
    else:
        values = fns.svdvals(input)
    if not values.shape[-1]:
        return fns.sum(values, -1).to(dtypes.int64)
    dtype = values._tmeta.dtype
    relative = max(input.shape[-2:]) * dtypes.finfo(dtype).eps
    if rtol is None:
        if isinstance(atol, Tensor):
            rtol = fns.where(atol > 0, 0.0, relative)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else relative
    least = fns.amax(values, -1) * rtol
    if isinstance(atol, Tensor):
        least = fns.maximum(least, atol.to(dtype))
    elif atol is not None:
        least = fns.clamp(least, min=float(atol))
    return fns.sum(values > least.unsqueeze(-1), -1)


@public(namespaces=("linalg",))
@autocast_whole("linalg_cond")
def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number in a matrix norm, by default the spectral one.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.cond.html

    >>> import torchshim as torch
    >>> torch.linalg.cond(torch.tensor([[1.0, 0.0], [0.0, 4.0]]))
    tensor(4.)
    """
    tensor_argument("linalg_cond", "A", 1, A)
    if A.dim() < 2:
        raise RuntimeError(
            "linalg.cond: The input tensor must have at least 2 dimensions."
        )
    p = real_number(p, dtypes.float64.np)
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = fns.svdvals(A)
        if not values.shape[-1]:
            return _given("linalg.cond", fns.sum(values, -1), out, A)
        first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        ratio = last / first if p is not None and p < 0 else first / last
        return _given("linalg.cond", ratio.squeeze(-1), out, A)
    named = isinstance(p, str)
    shown = p if named else f"{p:g}"
    if named:  # of names PyTorch looks at the matrix first
        _check_square(A, f"linalg.cond(ord={shown})")
    if p not in ("fro", "nuc") if named else abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {shown}")
    _check_square(A, f"linalg.cond(ord={shown})")
    if not A.numel():
        batch = tuple(A.shape)[:-2]
        empty = namespace("torch")["zeros"](
            batch, dtype=A._tmeta.dtype.to_real(), device=A.device
        )
        return _given("linalg.cond", empty, out, A)
    if p == "nuc":
        values = fns.svdvals(A)
        result = fns.sum(values, -1) * fns.sum(1 / values, -1)
        return _given("linalg.cond", result, out, A)
    inverse, info = fns.inv_ex(A)
    result = fns.matrix_norm(A, p) * fns.matrix_norm(inverse, p)
    result = fns.where(info == 0, result, math.inf)
    result = fns.nan_to_num(result, math.inf, math.inf, -math.inf)
    return _given("linalg.cond", result, out, A)


# Least squares ------------------------------------------------------------------------

_FOUND = ("solution", "residuals", "rank", "singular_values")
Lstsq = structseq("linalg_lstsq", _FOUND)
LstsqOut = structseq("linalg_lstsq_out", _FOUND)
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@public(namespaces=("linalg",))
@autocast_whole("linalg_lstsq")
def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Any = None,
) -> Any:
    """The X that brings `input @ X` closest to `b`, and what the driver finds by it.

    Whether there are residuals depends on the rank, which drivers `gelsd` and `gelss`
    read. https://docs.pytorch.org/docs/2.13/generated/torch.linalg.lstsq.html

    >>> import torchshim as torch
    >>> A = torch.tensor([[1.0], [1.0]])
    >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0]])).solution.round()
    tensor([[2.]])
    """
    name = "torch.linalg.lstsq"
    tensor_argument("linalg_lstsq", "input", 1, input)
    tensor_argument("linalg_lstsq", "b", 2, b)
    dtype = input._tmeta.dtype
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if dtype is not b._tmeta.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's "
            f"dtype {dtype.scalar_name} and other's dtype {b._tmeta.dtype.scalar_name}"
        )
    if not 0 <= input.dim() - b.dim() <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    vector = b.dim() == 1 or tuple(b.shape) == tuple(input.shape)[:-1]
    rows = -1 if vector else -2
    if input.shape[-2] != b.shape[rows]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({rows})")
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of ({', '.join(_DRIVERS)})"
        )
    if dtype.category < dtypes.FLOATING or dtype.itemsize < 4:
        raise RuntimeError(
            "This function doesn't handle types other than float and double"
        )
    right = b.unsqueeze(-1) if vector else b
    if b.dim() < input.dim() and not vector:
        # PyTorch counts batches as if these were vectors.
        right = fns.expand(b, (*b.shape[:-1], *b.shape[-2:]))
    result = _lstsq(input, right, vector, rcond, driver or "gelsy")
    if out is None:
        return result
    check_outs("linalg_lstsq", out, len(_FOUND), 4)
    pairs = zip(result, out, strict=True)
    return LstsqOut([_given("torch.linalg.lstsq", r, o, input, b) for r, o in pairs])


def _lstsq(A: Tensor, B: Tensor, vector: bool, rcond: float | None, driver: str) -> Any:
    empty = namespace("torch")["empty"]
    dtype = A._tmeta.dtype
    m, n = A.shape[-2:]
    if rcond is None:
        rcond = dtypes.finfo(dtype).eps * max(m, n)
    batch, given = tuple(B.shape)[:-2], A
    if tuple(A.shape)[:-2] != batch:
        batch = broadcast_shapes(tuple(A.shape)[:-2], batch)
        A = fns.expand(A, (*batch, m, n))
        B = fns.expand(B, (*batch, m, B.shape[-1]))
    # `gels` takes a full rank for granted.
    solution = fns._lstsq(A, B, 0.0 if driver == "gels" else rcond)
    real = dtype.to_real() if dtype.is_complex else dtype
    rank = empty(0, dtype=dtypes.int64)
    values = empty(0, dtype=real)
    full = m > n and driver != "gelsy"
    if driver != "gels":
        with untracked():
            found = fns.svdvals(given.detach())
            rank = _rank(given.detach(), 0.0, rcond, False)
        if driver != "gelsy":
            values = found
            full = full and bool(fns.eq(rank, n).all().item())
    if full:
        rest = B - A @ solution
        size = fns.abs(rest) if dtype.is_complex else rest
        residuals = fns.sum(size * size, -2)
    else:
        # As PyTorch has it: nothing, but with a history.
        residuals = fns.sum(solution[..., :0].real, -1).reshape(-1)[:0]
    return Lstsq(
        (solution.squeeze(-1) if vector else solution, residuals, rank, values)
    )


# Equations of tensors -----------------------------------------------------------------


@public(namespaces=("linalg",))
@autocast_whole("linalg_tensorinv")
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the product with a tensor over all but its first `ind` dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.tensorinv.html

    >>> import torchshim as torch
    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """
    tensor_argument("linalg_tensorinv", "input", 1, input)
    if ind <= 0:
        raise RuntimeError(
            f"Expected a strictly positive integer for 'ind', but got {ind}"
        )
    shape = tuple(input.shape)
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    inverse = fns.linalg_inv(fns.reshape(input, (rows, columns)))
    result = fns.reshape(inverse, (*shape[ind:], *shape[:ind]))
    return _given("tensorinv", result, out, input)


@public(namespaces=("linalg",))
@autocast_whole("linalg_tensorsolve")
def tensorsolve(
    A: Tensor,
    B: Tensor,
    dims: Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The X of which `tensordot(A, X)` is `B`; `dims` of A are moved to its end.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.tensorsolve.html

    >>> import torchshim as torch
    >>> A = torch.eye(6).reshape(2, 3, 6)
    >>> torch.linalg.tensorsolve(A, torch.ones(2, 3)).shape
    torch.Size([6])
    """
    tensor_argument("linalg_tensorsolve", "A", 1, A)
    tensor_argument("linalg_tensorsolve", "B", 2, B)
    if dims is not None:
        chosen = [wrap_dim(d, A.dim()) for d in dims]
        A = fns.permute(A, (*(d for d in range(A.dim()) if d not in chosen), *chosen))
    shape = tuple(A.shape)
    rows, columns = math.prod(shape[: B.dim()]), math.prod(shape[B.dim() :])
    given = B.numel()
    if columns != given:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {given}"
        )
    if rows != columns:
        raise RuntimeError(
            f"shape '[{columns}, {columns}]' is invalid for input of size "
            f"{rows * columns}"
        )
    solution = fns.solve(fns.reshape(A, (rows, columns)), fns.reshape(B, (-1,)))
    return _given("tensorsolve", fns.reshape(solution, shape[B.dim() :]), out, A, B)


# Products and views -------------------------------------------------------------------


@public(namespaces=("linalg",))
@autocast_whole("linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The dot products of vectors along a dimension; `x` is conjugated.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.vecdot.html

    >>> import torchshim as torch
    >>> torch.linalg.vecdot(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    tensor_argument("linalg_vecdot", "x", 1, x)
    tensor_argument("linalg_vecdot", "y", 2, y)
    dtype = x._tmeta.dtype
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            f"{dtype.scalar_name}"
        )
    if y._tmeta.dtype is not dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of "
            f"type {dtype.scalar_name} and y of type {y._tmeta.dtype.scalar_name} "
            "instead"
        )
    if x.dim() == y.dim() == 1:
        result = fns.vdot(x, y)
    else:
        result = fns.sum(x.conj() * y, dim)
    if out is not None and out._tmeta.dtype is not result._tmeta.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected out of dtype{result.dtype.scalar_name} but "
            f"found {out.dtype.scalar_name}"
        )
    return _given("linalg.vecdot", result, out, x, y)


@public(namespaces=("linalg",))
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.vander.html

    >>> import torchshim as torch
    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    tensor_argument("linalg_vander", "x", 1, x)
    kind = x._tmeta.dtype
    if kind in (dtypes.bool_, dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but "
            f"got {kind.scalar_name}"
        )
    return _powers(x, N)


def _powers(x: Tensor, N: int | None) -> Tensor:
    if not x.dim():
        x = x.reshape(1)
    shape = tuple(x.shape)
    n = shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = fns.cumprod(fns.expand(x.unsqueeze(-1), (*shape, n - 1)), -1)
    ones = namespace("torch")["ones"](
        (*shape, 1), dtype=powers._tmeta.dtype, device=x.device
    )
    return namespace("torch")["cat"]((ones, powers), -1)


@public(name="vander")
def descending_vander(
    x: Tensor, N: int | None = None, increasing: bool = False
) -> Tensor:
    """The powers N - 1 to 0 of each element; `increasing` turns the order round.

    https://docs.pytorch.org/docs/2.13/generated/torch.vander.html

    >>> import torchshim as torch
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    only_bools(increasing)
    tensor_argument("vander", "x", 1, x)
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if n < 2:
        ones = namespace("torch")["ones"]
        return ones((x.shape[0], n), dtype=fns.cumprod(x, 0).dtype, device=x.device)
    powers = _powers(x, n)
    return powers if increasing else fns.flip(powers, (1,))


@public(name="diagonal", namespaces=("linalg",))
def matrix_diagonal(
    A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Tensor:
    """`torch.diagonal`, by default of the last two dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.diagonal.html

    >>> import torchshim as torch
    >>> torch.linalg.diagonal(torch.eye(2))
    tensor([1., 1.])
    """
    return fns.diagonal(A, offset, dim1, dim2)


@public(name="matmul", namespaces=("linalg",))
def matrix_product(
    input: Tensor, other: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """`torch.matmul`.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.matmul.html

    >>> import torchshim as torch
    >>> torch.linalg.matmul(torch.eye(2), torch.ones(2))
    tensor([1., 1.])
    """
    return fns.matmul(input, other, out=out)
