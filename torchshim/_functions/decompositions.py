"""Matrix decompositions that are several operators: `lu`, older names, low rank."""

from __future__ import annotations

import functools
from typing import Any

from torchshim._derived import fns, namespace, public
from torchshim._functions._arguments import tensor_argument, warn_once, wrong
from torchshim._functions._family import described
from torchshim._functions.memory import write_into
from torchshim._out import check_outs
from torchshim._structseq import structseq
from torchshim._tensor import Tensor

Svd = structseq("svd", ("U", "S", "V"))
Lu = structseq("linalg_lu", ("P", "L", "U"))
Unpacked = structseq("lu_unpack", ("P", "L", "U"))
Infos = structseq("_lu_with_info", ("LU", "pivots", "info"))


@functools.cache
def written_kind(kind: type) -> type:
    """The class of named results that were written to `out=`."""
    return structseq(f"{kind.__name__}_out", kind.__match_args__)


def _written(results: Any, out: Any, *args: Any) -> Any:
    """Named results written to `out=`, which takes their own dtypes alone."""
    if out is None:
        return results
    kind = type(results)
    check_outs(kind.__name__, out, len(results), len(args) + 1)
    named = written_kind(kind)
    pairs = zip(results, out, strict=True)
    return named(
        [write_into(kind.__name__, r, o, args, text="exact") for r, o in pairs]
    )


# LU -----------------------------------------------------------------------------------


@public(name="lu", namespaces=("linalg",))
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The factors of `A = P @ L @ U`.

    https://docs.pytorch.org/docs/2.13/generated/torch.linalg.lu.html

    >>> import torchshim as torch
    >>> torch.linalg.lu(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).U
    tensor([[2., 3.],
            [0., 1.]])
    """
    tensor_argument("linalg_lu", "A", 1, A)
    permutation = fns._lu_permutation(A, pivot)
    return _written(Lu((permutation, *fns._lu_triangles(A))), out, A)


@public
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor_ex` by its older name; `get_infos`: with what it found.

    https://docs.pytorch.org/docs/2.13/generated/torch.lu.html

    >>> import torchshim as torch
    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [0.0, 3.0]]))[1]
    tensor([1, 2], dtype=torch.int32)
    """
    function = "_lu_with_info"  # what PyTorch's Python calls
    tensor_argument(function, "input", 1, A)
    if type(pivot) is not bool:
        raise TypeError(wrong(function, "pivot", 0, "bool", pivot))
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / "
        f"torch.linalg.lu_factor_ex{_REPLACED}LU, pivots = torch.lu(A, compute_pivots)"
        "\nshould be replaced with\nLU, pivots = torch.linalg.lu_factor(A, "
        "compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
        "get_infos=True)\nshould be replaced with\nLU, pivots, info = "
        "torch.linalg.lu_factor_ex(A, compute_pivots) "
        f"{_WHERE}BatchLinearAlgebra.cpp:2073.)"
    )
    result: Any = Infos(fns.lu_factor_ex(A, pivot=pivot))
    if not get_infos:
        result = tuple(result)[:2]
    if out is None:
        return result
    if not isinstance(out, (tuple, list)):
        raise TypeError("argument 'out' must be tuple of Tensors, not Tensor")
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    for target, value in zip(out, result, strict=True):
        write_into("lu", value, target, (A,))
    return out


def _lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """As `torch.lu`, always a plain tuple.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.lu.html

    >>> import torchshim as torch
    >>> LU, pivots = torch.tensor([[0.0, 2.0], [4.0, 0.0]]).lu()
    >>> LU, pivots
    (tensor([[4., 0.],
            [0., 2.]]), tensor([2, 2], dtype=torch.int32))
    """
    return tuple(lu(self, pivot, get_infos))


_lu_method.__name__ = "lu"
Tensor.lu = _lu_method


@public(name="lu_solve", method=True)
def lu_solve_older(
    b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """`linalg.lu_solve` by its older name, with the right side first.

    https://docs.pytorch.org/docs/2.13/generated/torch.lu_solve.html

    >>> import torchshim as torch
    >>> torch.linalg.solve(2 * torch.eye(2), torch.ones(2, 1))
    tensor([[0.5000],
            [0.5000]])
    """
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve"
        f"{_REPLACED[1:]}Note that torch.linalg.lu_solve has its arguments reversed.\n"
        "X = torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = "
        "torch.linalg.lu_solve(LU, pivots, B) "
        f"{_WHERE}BatchLinearAlgebra.cpp:2230.)"
    )
    return fns.lu_solve(LU_data, LU_pivots, b, out=out)


@public
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """P, L and U from what `linalg.lu_factor` gives; what is not asked for is empty.

    https://docs.pytorch.org/docs/2.13/generated/torch.lu_unpack.html

    >>> import torchshim as torch
    >>> torch.lu_unpack(*torch.linalg.lu_factor(2 * torch.eye(2))).U
    tensor([[2., 0.],
            [0., 2.]])
    """
    tensor_argument("lu_unpack", "LU_data", 1, LU_data)
    tensor_argument("lu_unpack", "LU_pivots", 2, LU_pivots)
    if LU_data.dim() < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data.shape)} instead"
        )

    def empty() -> Tensor:
        return namespace("torch")["empty"](0, dtype=LU_data.dtype)

    permutation = empty()
    if unpack_pivots:
        permutation = fns._lu_unpacked_permutation(LU_data, LU_pivots)
    lower, upper = empty(), empty()
    if unpack_data:
        lower, upper = fns._lu_unpacked_triangles(LU_data)
    return _written(Unpacked((permutation, lower, upper)), out, LU_data)


# Older names --------------------------------------------------------------------------

_REPLACED = " and will be removed in a future PyTorch release.\n"
_WHERE = "(Triggered internally at /__w/pytorch/pytorch/aten/src/ATen/native/"


@public(method=True)
def cholesky(
    input: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Deprecated: `linalg.cholesky` by its older name.

    https://docs.pytorch.org/docs/2.13/generated/torch.cholesky.html

    >>> import torchshim as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0]]))
    tensor([[2.]])
    """
    warn_once(
        f"torch.cholesky is deprecated in favor of torch.linalg.cholesky{_REPLACED}"
        "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\n"
        "and\nU = torch.cholesky(A, upper=True)\nshould be replaced with\nU = "
        "torch.linalg.cholesky(A).mH\nThis transform will produce equivalent results "
        "for all valid (symmetric positive definite) inputs. "
        f"{_WHERE}BatchLinearAlgebra.cpp:1765.)"
    )
    return fns._cholesky(input, upper, out=out)


@public(method=True)
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Deprecated: `linalg.qr` by its older name.

    https://docs.pytorch.org/docs/2.13/generated/torch.qr.html

    >>> import torchshim as torch
    >>> torch.linalg.qr(torch.eye(2)).Q.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    warn_once(
        f"torch.qr is deprecated in favor of torch.linalg.qr{_REPLACED}The boolean "
        "parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = "
        "torch.qr(A, some)\nshould be replaced with\nQ, R = torch.linalg.qr(A, "
        f"'reduced' if some else 'complete') {_WHERE}BatchLinearAlgebra.cpp:2505.)"
    )
    return _written(fns._qr(input, some), out, input)


@public(method=True)
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """Deprecated: `linalg.solve_triangular` with the right side first.

    https://docs.pytorch.org/docs/2.13/generated/torch.triangular_solve.html

    >>> import torchshim as torch
    >>> torch.linalg.solve_triangular(torch.eye(2), torch.ones(2, 1), upper=True)
    tensor([[1.],
            [1.]])
    """
    warn_once(
        "torch.triangular_solve is deprecated in favor of "
        f"torch.linalg.solve_triangular{_REPLACED[1:]}torch.linalg.solve_triangular "
        "has its arguments reversed and does not return a copy of one of the inputs.\n"
        "X = "
        "torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        f"torch.linalg.solve_triangular(A, B). {_WHERE}BatchLinearAlgebra.cpp:2273.)"
    )
    found = fns._triangular_solve(b, A, upper, transpose, unitriangular)
    return _written(found, out, b, A)


@public(method=True)
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The cross product along a dimension, by default the first of three elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.cross.html

    >>> import torchshim as torch
    >>> x, y = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
    >>> torch.cross(x, y, dim=0)
    tensor([0., 0., 1.])
    """
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease "
            "either pass the dim explicitly or simply use torch.linalg.cross.\nThe "
            "default value of dim will change to agree with that of linalg.cross in a "
            f"future release. {_WHERE}Cross.cpp:63.)"
        )
        of_three = [i for i, size in enumerate(input.shape) if size == 3]
        if not of_three:
            raise RuntimeError("no dimension of size 3 in input")
        dim = of_three[0]
    return fns.linalg_cross(input, other, dim=dim, out=out)


# Singular values ----------------------------------------------------------------------


@public(method=True)
def svd(
    input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None
) -> Any:
    """U, S and V (not its adjoint, as `linalg.svd` has it).

    Without `compute_uv`, U and V are zeros.
    https://docs.pytorch.org/docs/2.13/generated/torch.svd.html

    >>> import torchshim as torch
    >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    tensor_argument("svd", "input", 1, input)
    if input.dim() < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{input.dim()} dimensions instead"
        )
    if compute_uv:
        u, s, vh = fns.svd(input, not some)
        return _written(Svd((u, s, _adjoint(vh))), out, input)
    s = fns.svdvals(input)
    batch, (m, n) = tuple(input.shape)[:-2], tuple(input.shape)[-2:]
    zeros = namespace("torch")["zeros"]
    options = {"dtype": input.dtype, "device": input.device}
    result = Svd(
        (zeros((*batch, m, m), **options), s, zeros((*batch, n, n), **options))
    )
    return _written(result, out, input)


def _adjoint(x: Tensor) -> Tensor:
    return fns.transpose(x, -2, -1).conj()


def _basis(A: Tensor, q: int, niter: int | None, M: Tensor | None) -> Tensor:
    """An orthonormal basis for most of the range of `A - M`, from a random one."""
    start = namespace("torch")["randn"](A.shape[-1], q, dtype=A.dtype, device=A.device)

    def ranged(matrix: Tensor, less: Tensor | None, x: Tensor) -> Tensor:
        image = fns.matmul(matrix, x)
        return fns.linalg_qr(image if less is None else image - fns.matmul(less, x))[0]

    across = _adjoint(A), None if M is None else _adjoint(M)
    basis = ranged(A, M, start)
    for _ in range(2 if niter is None else niter):
        basis = ranged(A, M, ranged(*across, basis))
    return basis


@public
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest q singular values of `A - M` and their vectors, by random projection.

    https://docs.pytorch.org/docs/2.13/generated/torch.svd_lowrank.html

    >>> import torchshim as torch
    >>> torch.svd_lowrank(torch.ones(4, 3), q=1)[1]
    tensor([3.4641])
    """
    if M is not None:
        M = fns.expand(M, tuple(A.shape))
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = _adjoint(A), None if M is None else _adjoint(M)
    Q = _basis(A, 6 if q is None else q, niter, M)
    B = _adjoint(Q) @ A
    if M is not None:
        B = B - _adjoint(Q) @ M
    u, s, vh = fns.svd(B, False)
    u, v = fns.matmul(Q, u), _adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


@public
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of a matrix with the mean of each column taken off.

    https://docs.pytorch.org/docs/2.13/generated/torch.pca_lowrank.html

    >>> import torchshim as torch
    >>> torch.pca_lowrank(torch.tensor([[1.0], [3.0]]), q=1)[1]
    tensor([1.4142])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - fns.mean(A, (-2,), True)
    return svd_lowrank(A, q, niter)


# Removed functions --------------------------------------------------------------------

_REMOVED = "This function was deprecated since version 1.9 and is now removed."


def _removed(name: str, text: str, method: bool = True) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        """The error says what has taken its place.

        >>> import torchshim as torch
        >>> try:
        ...     torch.solve(torch.ones(1, 1), torch.ones(1, 1))
        ... except RuntimeError as error:
        ...     print(str(error).splitlines()[-1])
        X = torch.linalg.solve(A, B)
        """
        raise RuntimeError(_REMOVED + text)

    described(refuse, name, "Removed from PyTorch; always raises RuntimeError.")
    public(refuse, method=method)


_removed(
    "symeig",
    " The default behavior has changed from using the upper triangular portion of the "
    "matrix by default to using the lower triangular portion.\n\nL, _ = "
    "torch.symeig(A, upper=upper) should be replaced with:\nL = "
    "torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\nand\n\nL, V = "
    "torch.symeig(A, eigenvectors=True) should be replaced with:\nL, V = "
    "torch.linalg.eigh(A, UPLO='U' if upper else 'L')",
)
_removed(
    "eig",
    " `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather "
    "than real tensors mimicking complex tensors.\n\nL, _ = torch.eig(A) should be "
    "replaced with:\nL_complex = torch.linalg.eigvals(A)\n\nand\n\nL, V = "
    "torch.eig(A, eigenvectors=True) should be replaced with:\nL_complex, V_complex = "
    "torch.linalg.eig(A)",
)
_removed(
    "solve",
    " `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
    "`torch.linalg.solve` has its arguments reversed and does not return the LU "
    "factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used "
    "with `torch.lu_solve` or `torch.lu_unpack`.\nX = torch.solve(B, A).solution "
    "should be replaced with:\nX = torch.linalg.solve(A, B)",
)
_removed(
    "lstsq",
    " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n"
    "`torch.linalg.lstsq` has reversed arguments and does not return the QR "
    "decomposition in the returned tuple (although it returns other information about "
    "the problem).\n\nTo get the QR decomposition consider using `torch.linalg.qr`.\n\n"
    "The returned solution in `torch.lstsq` stored the residuals of the solution in "
    "the last m - n columns of the returned value whenever m > n. In "
    "torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned "
    "named tuple.\n\nThe "
    "unpacking of the solution, as in\nX, _ = torch.lstsq(B, A).solution[:A.size(1)]\n"
    "should be replaced with:\nX = torch.linalg.lstsq(A, B).solution",
)
_removed(
    "matrix_rank",
    "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter "
    "'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'.",
    method=False,
)
