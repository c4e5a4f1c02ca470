"""What PyTorch says of operands of products that do not go together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torchshim._core.dtypes import FLOATING, bool_, from_array_dtype, int64
from torchshim._core.dtypes import dtype as DType
from torchshim._core.naming import tensor_type
from torchshim._core.op import Array
from torchshim._core.promotion import check_result, promote_types, real_number
from torchshim._ops._common import broadcast_shapes
from torchshim._ops._reducing import spread
from torchshim._ops.view_geometry import expanded_shape, size_at

# Checks of shapes alone take arrays as well as metas: `inplace_check` shares them.


def kind(x: Any) -> DType:
    """The dtype of an array or a meta."""
    return x.dtype if isinstance(x.dtype, DType) else from_array_dtype(x.dtype)


def expands(x: Any, shape: Sequence[int]) -> None:
    """Raises PyTorch's error where `x` can't be expanded to a shape."""
    expanded_shape(tuple(x.shape), shape, tensor_type(kind(x)))


def expanded(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` broadcast to a shape, or PyTorch's error."""
    expands(x, shape)
    return spread(x, shape)


def keeps_size(input: Any, shape: tuple[int, ...]) -> None:
    """Raises PyTorch's error for a result that the tensor written to can't hold."""
    if tuple(input.shape) != shape:
        raise RuntimeError(
            f"Bad in-place call: input tensor size {list(input.shape)} and output "
            f"tensor size {list(shape)} should match"
        )


def kind_name(x: Any) -> str:
    """PyTorch's name of the dtype of an array or a meta: Float, Long, …"""
    return kind(x).scalar_name


def refuse_bool(a: Any, kernel: str, *sizes: int) -> None:
    """There are no products of bools, but where one of the sizes is 0."""
    if kind(a) is bool_ and 0 not in sizes:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def refuse_sum(a: Any, b: Any, rows: int, beta: Any = 1) -> None:
    """Of bools: there are no sums with products, but where these have no elements.

    What has no terms is the addend times `beta`, which is a bool no more.
    """
    refuse_bool(a, "addmm_impl_cpu_", rows, *b.shape[-2:])
    if (
        kind(a) is bool_
        and rows
        and b.shape[-1]
        and not (beta is not None and beta == 0)
    ):
        check_result(int64, bool_)


# Two matrices ------------------------------------------------------------------------


def check_inner(a: Any, b: Any, rows: int | None = None) -> None:
    """That matrices can be multiplied; `rows`: of all matrices in `a` together."""
    n, k = a.shape[0] if rows is None else rows, a.shape[-1]
    if k != b.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({n}x{k} and {b.shape[0]}x{b.shape[1]})"
        )


def check_matrices(a: Any, b: Any, rows: int | None = None) -> None:
    """Raises PyTorch's errors for a product of two matrices."""
    n = a.shape[0] if rows is None else rows
    check_inner(a, b, rows)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{kind(a).cpp_name} != {kind(b).cpp_name}"
        )
    refuse_bool(a, "addmm_impl_cpu_", n, *b.shape)


def check_same(mat1: Any, mat2: Any) -> None:
    """Raises PyTorch's error for two matrices of different types."""
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{kind_name(mat1)} and {kind_name(mat2)}"
        )


def check_addend(input: Any, other: Any, name: str) -> None:
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"self and {name} must have the same dtype, but got "
            f"{kind_name(input)} and {kind_name(other)}"
        )


def check_addmm(input: Any, mat1: Any, mat2: Any) -> tuple[int, ...]:
    """The shape of the product that `addmm` adds to."""
    check_addend(input, mat2, "mat2")
    check_same(mat1, mat2)
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if len(x.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(x.shape)}-D tensor")
    check_inner(mat1, mat2)
    return mat1.shape[0], mat2.shape[1]


def addmm_in_place(input: Any, mat1: Any, mat2: Any, *_: Any) -> None:
    keeps_size(input, check_addmm(input, mat1, mat2))


# Vectors -----------------------------------------------------------------------------


def check_vectors(a: Any, b: Any) -> None:
    """Raises PyTorch's errors for `dot`."""
    n, m = len(a.shape), len(b.shape)
    if n != 1 or m != 1:
        raise RuntimeError(f"1D tensors expected, but got {n}D and {m}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{kind_name(a)} and {kind_name(b)}"
        )
    (n,), (m,) = a.shape, b.shape
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have "
            f"the same number of elements, but got {n} and {m} elements respectively"
        )


def check_mv(mat: Any, vec: Any) -> None:
    """Raises PyTorch's errors for `mv`."""
    check_mv_shapes(mat, vec)
    check_mv_dtypes(vec, mat, vec)


def check_mv_shapes(mat: Any, vec: Any, given: tuple[int, ...] | None = None) -> None:
    """That a matrix and a vector can be multiplied, and added to the shape `given`."""
    shapes = tuple(mat.shape), tuple(vec.shape)
    added = shapes[0][:1] if given is None else given
    counts = 1 if given is None else len(given), *map(len, shapes)
    if counts[0] > 1 or counts[1:] != (2, 1):
        raise RuntimeError(
            "vector + matrix @ vector expected, got {}, {}, {}".format(*counts)
        )
    (rows, columns), (length,) = shapes
    if columns != length or added not in ((), (1,), (rows,)):
        raise RuntimeError(
            f"size mismatch, got input ({size_at(added, 0)}), mat "
            f"({rows}x{columns}), vec ({length})"
        )


def check_mv_dtypes(input: Any, mat: Any, vec: Any) -> None:
    if not input.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{kind_name(input)}, {kind_name(mat)}, and {kind_name(vec)}"
        )
    refuse_bool(mat, "addmv_impl_cpu", *mat.shape)


def addmv_in_place(input: Any, mat: Any, vec: Any, *_: Any) -> None:
    check_mv_shapes(mat, vec, tuple(input.shape))
    keeps_size(input, (mat.shape[0],))


def _check_outer(vec1: Any, vec2: Any) -> None:
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if len(x.shape) != 1:
            raise RuntimeError(
                f"addr: Expected 1-D argument {name}, but got {len(x.shape)}-D"
            )


def check_addr(input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> None:
    """Of metas, as half types reach the function as float32."""
    _check_outer(vec1, vec2)
    expands(input, (vec1.shape[0], vec2.shape[0]))
    result = promote_types(promote_types(input.dtype, vec1.dtype), vec2.dtype)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if isinstance(factor, bool):
            if result is not bool_:
                raise RuntimeError(
                    f"Boolean {name} only supported for Boolean results."
                )
        elif isinstance(factor, (float, complex)) and result.category < FLOATING:
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating "
                "point number."
            )
    for factor in (beta, alpha):
        real_number(factor, result.np)


def addr_in_place(input: Any, vec1: Any, vec2: Any, *_: Any) -> None:
    _check_outer(vec1, vec2)
    if len(input.shape) != 2:
        raise RuntimeError(
            f"2D tensor expected, got {len(input.shape)}D tensor for input"
        )
    if tuple(input.shape) != (vec1.shape[0], vec2.shape[0]):
        raise RuntimeError(
            f"size mismatch, input: {list(input.shape)}, v1: {list(vec1.shape)}, "
            f"v2: {list(vec2.shape)}"
        )


# Batches -----------------------------------------------------------------------------


def check_batch_shapes(a: Any, b: Any) -> None:
    """That matrices can be multiplied pair by pair."""
    a, b = tuple(a.shape), tuple(b.shape)
    for name, x in (("batch1", a), ("batch2", b)):
        if len(x) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]."
        )


def check_batches(a: Any, b: Any, kernel: str = "bmm") -> None:
    """Raises PyTorch's errors for `bmm`."""
    check_batch_shapes(a, b)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected scalar type {kind_name(a)} but found {kind_name(b)}"
        )
    if a.shape[1] * a.shape[2] * b.shape[2] >= 400:
        kernel = "addmm_impl_cpu_"  # larger ones are products of matrices each
    refuse_bool(a, kernel, *a.shape, *b.shape)


def batches_to(input: Any, *sizes: tuple[Any, int]) -> tuple[int, ...]:
    """The shape of sizes of operands, which `input` expands to before other checks."""
    shape = tuple(size_at(tuple(x.shape), d) for x, d in sizes)
    expands(input, shape)
    return shape


def check_baddbmm(input: Any, batch1: Any, batch2: Any) -> tuple[int, ...]:
    """The shape of the products that `baddbmm` adds to."""
    shape = batches_to(input, (batch1, 0), (batch1, 1), (batch2, 2))
    check_batch_shapes(batch1, batch2)
    return shape


def baddbmm_in_place(input: Any, batch1: Any, batch2: Any, *_: Any) -> None:
    keeps_size(input, check_baddbmm(input, batch1, batch2))


def check_addbmm(input: Any, batch1: Any, batch2: Any) -> tuple[int, ...]:
    """The shape of the product that `addbmm` adds to."""
    shape = batches_to(input, (batch1, 1), (batch2, 2))
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if len(x.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        a, b = batch1.shape, batch2.shape
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({a[1]}x{a[2]} and {b[1]}x{b[2]})"
        )
    return shape


# `matmul` and `linear` ---------------------------------------------------------------


class Side(NamedTuple):
    """What these look at of an operand, which may be one that they derive."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    requires_grad: bool

    @property
    def turned(self) -> Side:
        """With the last two dimensions swapped."""
        if len(self.shape) < 2:
            return self
        *lead, a, b = self.shape
        *steps, c, d = self.strides
        return self._replace(shape=(*lead, b, a), strides=(*steps, d, c))


def side(x: Any) -> Side:
    return Side(tuple(x.shape), tuple(x.strides), x.dtype, x.requires_grad)


def _folds(a: Side, b: Side) -> bool:
    """Whether a batch and a matrix or a vector make one product in PyTorch."""
    larger = len(a.shape) > len(b.shape)
    batch, single = (a, b) if larger else (b.turned, a)
    if single.requires_grad:
        return True
    if not larger and len(single.shape) == 2:
        return False
    shape, strides = batch.shape, batch.strides
    return 0 in shape or all(
        strides[d] == strides[d + 1] * shape[d + 1] for d in range(len(shape) - 2)
    )


def _single(a: Side, b: Side) -> Side | None:
    """The batch of one matrix that gets a gradient, which PyTorch takes as a matrix."""
    if len(a.shape) != 3 or len(b.shape) != 3 or a.shape[0] == b.shape[0]:
        return None
    return next((x for x in (a, b) if x.shape[0] == 1 and x.requires_grad), None)


def _folded(batch: Side) -> Side:
    """The matrix of all rows of a batch."""
    return batch._replace(shape=(math.prod(batch.shape[:-1]), batch.shape[-1]))


def check_sides(a: Side, b: Side) -> None:
    """Raises PyTorch's errors for `matmul`, which finds them in other products."""
    n, m = len(a.shape), len(b.shape)
    if not n or not m:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {n}D and "
            f"{m}D"
        )
    if n == 1 and m == 1:
        check_vectors(a, b)
        refuse_bool(a, "dot")
    elif n <= 2 and m <= 2:
        if m == 1:
            check_mv(a, b)
        else:
            check_matrices(a if n == 2 else a._replace(shape=(1, *a.shape)), b)
    elif min(n, m) <= 2 and _folds(a, b):
        if n > m:
            check_sides(_folded(a), b)
        else:
            check_sides(_folded(b.turned), a.turned)
    elif (single := _single(a, b)) is a:
        check_sides(a._replace(shape=a.shape[1:], strides=a.strides[1:]), b)
    elif single is b:
        check_sides(a, b._replace(shape=b.shape[1:], strides=b.strides[1:]))
    else:
        count = math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
        rows, inner = a.shape[-2] if n > 1 else 1, b.shape[-2] if m > 1 else b.shape[-1]
        columns = b.shape[-1] if m > 1 else 1
        check_batches(
            a._replace(shape=(count, rows, a.shape[-1])),
            b._replace(shape=(count, inner, columns)),
        )


def check_matmul(input: Any, other: Any) -> None:
    check_sides(side(input), side(other))


def is_fused(bias: tuple[int, ...]) -> bool:
    """Whether `linear` may add a bias of this shape with `addmm`."""
    return len(bias) == 1 or sum(n != 1 for n in bias) == 1


def adds_by_addmm(input: Any, bias: Any) -> bool:
    """Whether the product and the sum of `linear` are one call in PyTorch."""
    return len(input.shape) == 2 or (is_fused(tuple(bias.shape)) and input.contiguous)


def check_linear(input: Any, weight: Any, bias: Any = None) -> None:
    n, m = len(input.shape), len(weight.shape)
    if not n or not m:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {n}D and "
            f"{m}D"
        )
    if m > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {m}D"
        )
    a, b = side(input), side(weight).turned
    if bias is None:
        check_sides(a, b)
    elif adds_by_addmm(input, bias):
        a = _folded(a)
        expands(bias, check_addmm(bias, a, b))
        refuse_sum(a, b, math.prod(a.shape[:-1]))
    else:
        check_sides(a, b)
        shape, added = (*a.shape[:-1], *b.shape[1:]), tuple(bias.shape)
        both = broadcast_shapes(shape, added)
        check_result(promote_types(input.dtype, bias.dtype), input.dtype)
        if both != shape:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape "
                f"{list(both)}"
            )


def check_bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> None:
    given = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    kinds = {name: kind(each) for name, each in given.items()}
    if len(set(kinds.values())) > 1:
        told = ", ".join(f"{name}: {each.cpp_name}" for name, each in kinds.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {told}")
    if kinds["weight"] is bool_:
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
