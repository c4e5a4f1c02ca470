"""Products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._derived import fns, public
from torchshim._functions._arguments import combination, tensor_argument, wrong
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.lobpcg import lobpcg
from torchshim._functions.sparse_compressed import alike
from torchshim._functions.sparse_elements import takes_out, written
from torchshim._functions.sparse_tensor import (
    COO,
    coalesced,
    coo,
    handles,
    is_sparse,
    keys_of,
    named,
    refuse,
)
from torchshim._tensor import Tensor


def matrix(name: str, tensor: Any) -> Any:
    """A sparse matrix in coordinates."""
    tensor = tensor.to_sparse_coo()
    if tensor._i.shape[0] != 2 or tensor.ndim != 2:
        raise RuntimeError(
            f"{name}: expected a sparse matrix (2 sparse dimensions and no dense one), "
            f"got {tensor._i.shape[0]} sparse and {tensor._v.ndim - 1} dense"
        )
    return tensor


def same_dtype(sparse: Any, *dense: Any) -> None:
    """Raises where operands of a product differ in dtype."""
    for other in dense:
        if other.dtype is not sparse.dtype:
            raise RuntimeError(
                f"expected scalar type {sparse.dtype.scalar_name} but found "
                f"{other.dtype.scalar_name}"
            )


def check_product(sparse: Any, dense: Any) -> None:
    """Raises where a sparse matrix and a dense operand do not fit together."""
    if dense.ndim != 2:
        raise RuntimeError(
            f"addmm: 2D tensor expected, got {dense.ndim}D tensor for argument #3"
        )
    if sparse.shape[1] != dense.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {sparse.shape[1]}, got "
            f"{dense.shape[0]}"
        )
    same_dtype(sparse, dense)


def times_dense(sparse: Any, dense: Any, form: str = "sparse_mm") -> Any:
    """A sparse matrix times a dense one."""
    sparse = matrix("mm", sparse)
    check_product(sparse, dense)
    return getattr(fns, form)(sparse._i, sparse._v, dense, sparse.shape[0])


def dense_times(dense: Any, sparse: Any) -> Any:
    """A dense matrix times a sparse one."""
    sparse = matrix("mm", sparse)
    if dense.ndim != 2 or dense.shape[1] != sparse.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_by(dense.shape)} and "
            f"{_by(sparse.shape)})"
        )
    same_dtype(sparse, dense)
    return fns.dense_sparse_mm(sparse._i, sparse._v, dense, sparse.shape[1])


def _by(shape: Any) -> str:
    return "x".join(map(str, shape))


def times_sparse(a: Any, b: Any) -> Any:
    """The product of two sparse matrices, which is sparse."""
    template = a
    a, b = coalesced(matrix("mm", a)), coalesced(matrix("mm", b))
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_by(a.shape)} and "
            f"{_by(b.shape)})"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"mat1 dtype {a.dtype.scalar_name} does not match mat2 dtype "
            f"{b.dtype.scalar_name}"
        )
    size, device = (a.shape[0], b.shape[1]), a.device

    def make(left: np.ndarray, right: np.ndarray) -> Any:
        # Each value of `a` meets the row of `b` that its column names.
        begins = np.searchsorted(right[0], left[1], "left")
        counts = np.searchsorted(right[0], left[1], "right") - begins
        of_a = np.repeat(np.arange(left.shape[1]), counts)
        steps = np.arange(len(of_a)) - np.repeat(np.cumsum(counts) - counts, counts)
        of_b = np.repeat(begins, counts) + steps
        places = np.stack([left[0][of_a], right[1][of_b]])
        _, first, groups = np.unique(
            keys_of(places, size), return_index=True, return_inverse=True
        )
        found = places[:, first], of_a, of_b, groups.reshape(-1)
        return [placed(part.astype(np.int64), device) for part in found]

    places, of_a, of_b, groups = planned(("product", size), make, a._i, b._i)
    count = places.shape[1]
    values = fns.sparse_pair_values(a._v, b._v, of_a, of_b, groups, count)
    return alike(coo(places, values, size, True), template)


@handles("mm", "smm")
def mm(input: Any, mat2: Any) -> Any:
    """As `torch.mm`, where an operand is sparse."""
    if not is_sparse(mat2):
        return times_dense(input, mat2)
    if not is_sparse(input):
        return dense_times(input, mat2)
    made = times_sparse(input, mat2)
    return made._like(named(made._v, "Mm"))


@handles("mv")
def mv(input: Any, vec: Any) -> Any:
    """As `torch.mv`, where the matrix is sparse."""
    if is_sparse(input) and input.is_sparse and (input.ndim != 2 or vec.ndim != 1):
        raise RuntimeError(
            "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: "
            f"{input.ndim}Tensor Dim: {vec.ndim}"
        )
    if not is_sparse(input) or is_sparse(vec):
        refuse("mv", vec)
    input = matrix("mv", input)
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    same_dtype(input, vec)
    return fns.sparse_mv(input._i, input._v, vec, input.shape[0])


@handles("matmul", "__matmul__")
def matmul(input: Any, other: Any) -> Any:
    """As `torch.matmul`, where an operand is sparse."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return NotImplemented
    if is_sparse(input):
        if other.ndim == 1 and not is_sparse(other):
            return mv(input, other)
        if input.ndim == 2 and other.ndim == 2:
            return mm(input, other)
        if input.ndim == 3 and other.ndim == 3:
            return bmm(input, other)
        raise RuntimeError("expand is unsupported for Sparse tensors")
    if other.ndim != 2:
        refuse("matmul", other)
    if input.ndim == 1:
        return dense_times(input.unsqueeze(0), other).squeeze(0)
    rows = dense_times(input.reshape(-1, input.shape[-1]), other)
    return rows if input.ndim == 2 else rows.view(*input.shape[:-1], other.shape[1])


@handles("__rmatmul__")
def rmatmul(self: Any, other: Any) -> Any:
    """`other @ self`."""
    return matmul(other, self)


@handles("bmm")
def bmm(input: Any, mat2: Any) -> Any:
    """As `torch.bmm`, where the first operand is sparse."""
    if not is_sparse(input) or is_sparse(mat2):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    input = input.to_sparse_coo()
    if input._i.shape[0] != 3 or mat2.ndim != 3:
        raise RuntimeError("bmm_sparse: Tensors must be 3-D")
    batches, rows, inner = input.shape
    if tuple(mat2.shape[:2]) != (batches, inner):
        raise RuntimeError(
            "bmm_sparse: 'self' and 'mat2' do not fit together: "
            f"{list(input.shape)} and {list(mat2.shape)}"
        )
    batch, row, column = input._i
    places = fns.stack([batch * rows + row, batch * inner + column])
    flat = coo(places, input._v, (batches * rows, batches * inner), False)
    product = times_dense(flat, mat2.reshape(batches * inner, mat2.shape[2]))
    return product.view(batches, rows, mat2.shape[2])


def _addmm(
    name: str, form: str, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any
) -> Any:
    compressed = [is_sparse(t) and not t.is_sparse for t in (input, mat1, mat2)]
    if all(compressed):
        check_product(mat1, mat2)
        same_dtype(mat1, input, mat2)
        return input * beta + times_sparse(mat1, mat2) * alpha
    if is_sparse(input) or not is_sparse(mat1) or is_sparse(mat2):
        raise RuntimeError(
            f"{name}: expected 'input' and 'mat2' to have strided layout and 'mat1' to "
            f"be sparse, got {input.layout}, {mat1.layout} and {mat2.layout}"
        )
    mat1 = matrix(name, mat1)
    check_product(mat1, mat2)
    same_dtype(mat1, input)
    function = getattr(fns, form)
    return function(input, mat1._i, mat1._v, mat2, beta, alpha, mat1.shape[0])


@handles("addmm")
def addmm(
    input: Any,
    mat1: Any,
    mat2: Any,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Any:
    """As `torch.addmm`, where `mat1` is sparse."""
    return _addmm("addmm", "sparse_plus_mm", input, mat1, mat2, beta, alpha)


@handles("addmv")
def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """As `torch.addmv`, where `mat` is sparse."""
    if is_sparse(input):
        refuse("addmv", input)
    product = mv(mat, vec) * alpha
    return product if beta == 0 else input * beta + product


@handles("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """As `nn.functional.linear`, where the input or the weight is sparse."""
    if bias is None:
        return matmul(input, weight.t())
    if not is_sparse(input):
        if weight.layout is not COO or input.dim() != 2:
            return matmul(input, weight.t()) + bias
        kinds = [LAYOUT_TEXTS[each.layout.name] for each in (input, weight.t())]
        raise RuntimeError(
            "addmm_sparse_dense: expected either 'mat1' to have sparse layout and "
            "'mat2' to have strided layout, got 'mat1' with layout "
            f"{kinds[0]} and 'mat2' with layout {kinds[1]}"
        )
    return addmm(bias, input, weight.t())


# -- torch.sparse ----------------------------------------------------------------------


def _check_reduced(sparse: Any, dense: Any) -> None:
    count, shape = sparse.shape[1], dense.shape
    if len(shape) != 2 or shape[0] != count:
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {count} but got: "
            f"dimension {len(shape)} and tensor.size[0] = {shape[0] if shape else 0}"
        )
    if dense.dtype is not sparse.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'other' to have scalar type "
            f"{sparse.dtype.scalar_name}; but got "
            f"torch.{dense.dtype.scalar_name}Tensor instead (while checking arguments "
            "for sparse_mm_reduce)"
        )


_REDUCTIONS = {
    "sum": "sum",
    "mean": "mean",
    "amax": "amax",
    "max": "amax",
    "amin": "amin",
    "min": "amin",
}


@public(namespaces=("sparse",), name="mm")
@handles("sparse.mm", "sparse.sparse_mm")
def sparse_mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Tensor:
    """The product of matrices of which one, at least, is sparse.

    Two sparse ones have a sparse product. With `reduce` ("sum", "mean", "amax" or
    "max", "amin" or "min"), for a CSR and a dense matrix, each element is that of its
    terms.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.mm.html

    >>> import torchshim as torch
    >>> s = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    >>> torch.sparse.mm(s, torch.eye(2))
    tensor([[0., 2.],
            [3., 0.]])
    """
    tensor_argument("_sparse_mm", "sparse", 1, mat1)
    tensor_argument("_sparse_mm", "dense", 2, mat2)
    if reduce is not None:
        if not isinstance(reduce, str):
            raise TypeError(wrong("_sparse_mm", "reduce", 3, "str", reduce))
        if not is_sparse(mat1) or mat1.is_sparse or is_sparse(mat2):
            refuse("sparse.mm with reduce", mat1)
        layout = LAYOUT_TEXTS[mat1.layout.name]
        if layout != "SparseCsr":
            raise RuntimeError(
                f"sparse_mm_reduce: expect self to be SparseCsr, got {layout}"
            )
        kind = _REDUCTIONS.get(reduce)
        if kind is None:
            raise RuntimeError(
                "sparse_mm_reduce: reduce type of prod has not been enabled."
                if reduce == "prod"
                else "reduce argument must be either sum, prod, mean, amax or amin, "
                f"got {reduce}"
            )
        mat1 = matrix("mm", mat1)
        _check_reduced(mat1, mat2)
        return fns.sparse_mm_reduce(mat1._i, mat1._v, mat2, mat1.shape[0], kind)
    if is_sparse(mat1) and not is_sparse(mat2):
        return times_dense(mat1, mat2, "sparse_only_mm")
    if is_sparse(mat1):
        return times_sparse(mat1, mat2)
    return dense_times(mat1, mat2) if is_sparse(mat2) else fns.mm(mat1, mat2)


@public(namespaces=("sparse",), name="addmm")
@handles("sparse.addmm", "sparse.sparse_addmm")
def sparse_addmm(
    mat: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)` with `mat1` sparse.

    `mat` and `mat2` are dense.

    >>> import torchshim as torch
    >>> mat, two = torch.ones(2, 2), torch.eye(2).to_sparse() * 2
    >>> torch.sparse.addmm(mat, two, torch.eye(2), beta=10, alpha=3)
    tensor([[16., 10.],
            [10., 16.]])
    """
    sparse = is_sparse(mat), is_sparse(mat1), is_sparse(mat2)
    if not any(sparse):
        return fns.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)
    if sparse[0]:
        raise RuntimeError(
            "addmm_sparse_dense: expected strided result tensor, got tensor with "
            f"layout {LAYOUT_TEXTS[mat.layout.name]}"
        )
    if sparse[1:] != (True, False):
        first, second = (LAYOUT_TEXTS[m.layout.name] for m in (mat1, mat2))
        raise RuntimeError(
            "addmm_sparse_dense: expected either 'mat1' to have sparse layout and "
            f"'mat2' to have strided layout, got 'mat1' with layout {first} and 'mat2' "
            f"with layout {second}"
        )
    return _addmm("addmm", "sparse_addmm", mat, mat1, mat2, beta, alpha)


@public(namespaces=("ops.aten",))
@handles("_sparse_addmm")
def _sparse_addmm(
    self: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """As `torch.sparse.addmm`."""
    return sparse_addmm(self, mat1, mat2, beta=beta, alpha=alpha)


@public(namespaces=("sparse",))
@handles("sparse.sampled_addmm", "sampled_addmm")
def sampled_addmm(
    input: Any,
    mat1: Any,
    mat2: Any,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Any = None,
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places where `input` has values.

    `input` is of `torch.sparse_csr`, else RuntimeError; both matrices are dense.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.sampled_addmm.html

    >>> import torchshim as torch
    >>> places = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(places, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not is_sparse(input) or input.layout.name != "sparse_csr":
        raise RuntimeError(
            "Expected input to have sparse csr layout, but got "
            f"{getattr(input, 'layout', None)}"
        )
    same_dtype(input, mat1, mat2)
    if mat1.ndim != 2 or mat2.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
            f"({_by(mat1.shape)} and {_by(mat2.shape)})"
        )
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError(
            f"sampled_addmm: Expected input of shape {[mat1.shape[0], mat2.shape[1]]}, "
            f"got {list(input.shape)}"
        )
    places = input._coordinates()._i
    values = fns.sparse_sampled_values(input._v, places, mat1, mat2, beta, alpha)
    operands = input, mat1, mat2
    return written("sparse_sampled_addmm", input._like(values), out, operands)


# -- the older names -------------------------------------------------------------------


@public(aliases=("dsmm",))
@handles("spmm", "dsmm")
def spmm(input: Any, mat2: Any) -> Tensor:
    """As `torch.mm`: the product with a sparse matrix.

    >>> import torchshim as torch
    >>> torch.spmm(torch.eye(2).to_sparse() * 2, torch.ones(2, 3))
    tensor([[2., 2., 2.],
            [2., 2., 2.]])
    """
    return (
        fns.mm(input, mat2)
        if not (is_sparse(input) or is_sparse(mat2))
        else mm(input, mat2)
    )


@public(method=True)
@handles("smm")
def smm(input: Any, mat: Any) -> Tensor:
    """The product of a sparse and a dense matrix, as a sparse one.

    https://docs.pytorch.org/docs/2.13/generated/torch.smm.html

    >>> import torchshim as torch
    >>> torch.smm(torch.eye(2).to_sparse() * 2, torch.ones(2, 1)).is_sparse
    True
    """
    if not is_sparse(input):
        raise combination("smm", (input, mat), {}, "(Tensor input, Tensor mat)")
    rows, product = _rows_of_product(input, mat)
    width, device = mat.shape[1], mat.device

    def make(host: np.ndarray) -> Any:
        columns = np.tile(np.arange(width), len(host))
        return placed(np.stack([np.repeat(host, width), columns]), device)

    places = planned(("grid", width), make, rows)
    return coo(places, product.reshape(-1), (input.shape[0], width), False)


@public(aliases=("hsmm",))
@handles("hspmm", "hsmm")
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> Tensor:
    """The product of a sparse and a dense matrix, sparse in its rows.

    Its values are rows of the product.

    https://docs.pytorch.org/docs/2.13/generated/torch.hspmm.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[0.0, 0.0], [0.0, 2.0]]).to_sparse()
    >>> torch.hspmm(x, torch.ones(2, 3)).values()
    tensor([[2., 2., 2.]])
    """
    if not is_sparse(mat1):
        raise combination("hspmm", (mat1, mat2), {}, "(Tensor mat1, Tensor mat2)")
    rows, product = _rows_of_product(mat1, mat2)
    size = mat1.shape[0], mat2.shape[1]
    made = coo(rows.unsqueeze(0), product, size, True)
    return written("hspmm", made, out, (mat1, mat2))


def _rows_of_product(sparse: Any, dense: Any) -> tuple[Any, Any]:
    """The rows that a product may have values in, and the product there."""
    sparse = matrix("mm", sparse)
    device = sparse.device
    rows = planned(
        "used rows", lambda host: placed(np.unique(host[0]), device), sparse._i
    )
    return rows, times_dense(sparse, dense).index_select(0, rows)


@public(method=True, aliases=("saddmm",))
@handles("sspaddmm", "saddmm")
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` with `input` and `mat1` sparse.

    An error unless both are.

    https://docs.pytorch.org/docs/2.13/generated/torch.sspaddmm.html

    >>> import torchshim as torch
    >>> x = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(x, x, torch.ones(2, 2), beta=10).to_dense()
    tensor([[11.,  1.],
            [ 1., 11.]])
    """
    if not is_sparse(input) or not is_sparse(mat1):
        args = (input, mat1, mat2)
        raise combination("sspaddmm", args, {}, "(Tensor, Tensor mat1, Tensor mat2)")
    product = smm(mat1, mat2)
    for dim, (want, have) in enumerate(zip(product.shape, input.shape, strict=True)):
        if want != have:
            raise RuntimeError(
                f"sspaddmm: Argument #1: Expected dim {dim} size {want}, got {have}"
            )
    same_dtype(product, input)
    places = fns.cat([input._i, product._i], 1)
    return coo(
        places, fns.cat([input._v * beta, product._v * alpha]), input.shape, False
    )


handles("lobpcg")(lobpcg)
for _name in ("mm", "mv", "matmul", "bmm", "addmm", "addmv"):
    takes_out(_name)
