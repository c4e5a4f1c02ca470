"""Functions of linear algebra over the operators, compared with PyTorch.

Of vectors that have a sign or a phase of their own, what does not depend on it.
"""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


def _matrix(torch, *shape, complex=False):
    n = 1
    for s in shape:
        n *= s
    x = torch.sin(torch.arange(1.0, n + 1, dtype=torch.float64) ** 2).view(shape)
    return torch.complex(x, torch.cos(3 * x)) if complex else x


def _grads(torch, function, x):
    """The gradient of a weighted sum of what does not depend on signs."""
    x = x.clone().requires_grad_()
    total = x.new_zeros((), dtype=torch.float64)
    for y in function(x):
        parts = (y.real, y.imag) if y.is_complex() else (y,)
        for p in parts:
            weight = torch.cos(torch.arange(p.numel(), dtype=p.dtype)).view(p.shape)
            total = total + (p * weight).sum()
    total.backward()
    return x.grad


def _losses(torch):
    """Of vectors: a loss that depends on their phases, and one that does not."""
    weights = _matrix(torch, 3, 3, complex=True)

    def depends(vectors):
        return sum((v * weights[: v.size(-2), : v.size(-1)]).sum() for v in vectors)

    def defined(vectors):
        return sum((v.abs() * v.real.detach()).sum() for v in vectors)

    return lambda vectors: depends(vectors).real, defined


@case.over(complex=[False, True])
def phases_of_vectors(torch, complex):
    A = _matrix(torch, 3, 3, complex=complex).requires_grad_()
    factor = torch.ones((), requires_grad=True)

    def attempted(loss, vectors):
        A.grad = factor.grad = None
        error = attempt(lambda: (loss(vectors()) * factor).backward())
        return error, A.grad is None, factor.grad is None

    for vectors in (
        lambda: torch.linalg.eig(A)[1:],
        lambda: torch.linalg.eigh(A + A.mH)[1:],
        lambda: torch.linalg.svd(A)[:1],
        lambda: torch.svd(A.expand(2, 3, 3))[2:],
        lambda: torch.linalg.svd(A[:, :2], full_matrices=False)[::2],
    ):
        for loss in _losses(torch):
            yield attempted(loss, vectors)


@case
def phases_in_transforms(torch):
    A = _matrix(torch, 3, 3, complex=True)

    def loss(A):
        return (torch.linalg.eigh(A + A.mH)[1] * A).sum().real

    def defined(A):
        return (torch.linalg.svd(A)[0].abs() * A.abs()).sum()

    yield torch.func.grad(loss)(A).isfinite().all()
    x = A.clone().requires_grad_()
    (grad,) = torch.autograd.grad(defined(x), x, create_graph=True)
    grad.abs().sum().backward()
    yield x.grad


@case.over(complex=[False, True])
def eigenvectors(torch, complex):
    A = _matrix(torch, 2, 3, 3, complex=complex)

    def symmetric(x, uplo="L"):
        values, vectors = torch.linalg.eigh(x, uplo)
        return values, vectors[..., :1] @ vectors[..., :1].mH

    def general(x):
        values, vectors = torch.linalg.eig(x)
        order = values.real.argsort(-1)
        first = vectors.gather(-1, order[..., None, :1].expand(2, 3, 1))
        return values.real.sort(-1)[0], first @ first.mH

    for function in (symmetric, lambda x: symmetric(x, "U"), general):
        yield [y.detach() for y in function(A)], _grads(torch, function, A)
    values, vectors = torch.linalg.eig(A)
    yield vectors @ torch.diag_embed(values) @ torch.linalg.inv(vectors)


@case.over(complex=[False, True])
def singular_vectors(torch, complex):
    for shape in ((3, 3), (4, 2), (2, 4)):
        A = _matrix(torch, *shape, complex=complex)

        def function(x, full=False):
            u, s, vh = torch.linalg.svd(x, full_matrices=full)
            return s, u[:, :1] @ u[:, :1].mH, u[:, 1:2] @ vh[1:2]

        yield [y.detach() for y in function(A)], _grads(torch, function, A)
        yield [y.shape for y in torch.linalg.svd(A)]
        u, s, v = torch.svd(A)
        yield s, u @ torch.diag(s).to(u.dtype) @ v.mH
        yield [y.shape for y in torch.svd(A, some=False)]
        yield torch.svd(A, compute_uv=False)


@case
def full_bases_are_orthogonal(torch):
    A = _matrix(torch, 4, 2)
    u, s, vh = torch.linalg.svd(A)
    yield u.T @ u, vh @ vh.T, s
    yield _grads(torch, lambda x: (torch.linalg.svd(x)[0][:, :1].abs(),), A)


@case
def lu(torch):
    for shape in ((3, 3), (4, 2), (2, 2, 4)):
        A = _matrix(torch, *shape).requires_grad_()
        P, L, U = torch.linalg.lu(A)
        yield P, L, U
        (L.sum() + (U**2).sum()).backward()
        yield A.grad
        packed = torch.linalg.lu_factor(A)
        yield torch.lu_unpack(*packed), torch.lu_unpack(*packed, True, False)[1]
        yield torch.lu_unpack(*packed, unpack_data=False)[0]
    out = [torch.empty(0, dtype=torch.float64) for _ in range(3)]
    yield torch.linalg.lu(A.detach(), out=out), out
    yield attempt(torch.lu_unpack, packed[0], packed[1].long())
    yield attempt(torch.linalg.lu, torch.ones(3))
    yield attempt(torch.linalg.lu, torch.ones(3, 3), pivot=False)


@case
def lu_of_singular_matrices(torch):
    A = torch.outer(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 2.0]))
    for infos in (False, True):
        yield torch.lu(A, True, infos), A.lu(get_infos=infos)
        yield attempt(torch.lu, A, False, infos)
    yield attempt(torch.linalg.lu_factor, A), torch.linalg.lu(A)


@case
def older_names(torch):
    A, B = _matrix(torch, 3, 3), _matrix(torch, 3, 2)
    S = A @ A.T + torch.eye(3, dtype=torch.float64)
    yield torch.cholesky(S), S.cholesky(upper=True), torch.lu(A), A.lu(get_infos=True)
    yield B.lu_solve(*torch.lu(A)), torch.pinverse(B), torch.inverse(A)
    yield torch.triangular_solve(B, A), B.triangular_solve(A, False, True, True)
    yield torch.cross(A, A + 1), torch.cross(B, B + 1), A.cross(A.T, dim=1)
    yield torch.qr(B), attempt(torch.cross, B, A[0]), attempt(torch.cross, B[:2], B[:2])
    yield torch.orgqr(*torch.geqrf(B)), torch.logdet(S), S.logdet(), A.slogdet()
    out = torch.empty(0, dtype=torch.float64)
    yield torch.cholesky(S, out=out) is out, out


@case
def removed(torch):
    A = torch.ones(2, 2)
    for name in ("symeig", "eig", "solve", "lstsq"):
        yield attempt(getattr(torch, name), A, A), attempt(getattr(A, name), A)
    yield attempt(torch.matrix_rank, A)


@case
def errors_that_depend_on_values(torch):
    L, zero = torch.linalg, torch.zeros(3, 3)
    pair = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 1.0]))])
    negative = torch.diag(torch.tensor([1.0, 1.0, -1.0]))
    for A in (zero, pair):
        for function in (L.inv, L.cholesky, L.lu_factor, torch.inverse):
            yield attempt(lambda A=A, f=function: [x.tolist() for x in f(A)])
        yield attempt(lambda A=A: L.solve(A, torch.ones(3, 2)).tolist())
        for function in (L.inv_ex, L.cholesky_ex, L.lu_factor_ex):
            yield attempt(
                lambda A=A, f=function: [x.tolist() for x in f(A, check_errors=True)]
            )
            yield function(A).info
        yield L.solve_ex(A, torch.ones(3, 2)).info
    yield attempt(lambda: L.cholesky(negative).tolist())
    yield L.cholesky_ex(negative, upper=True).info, L.cholesky_ex(torch.eye(2)).info
    yield attempt(lambda: L.matrix_power(zero, -1).tolist())
    for hermitian in (False, True):
        yield attempt(lambda h=hermitian: L.pinv(zero / 0, hermitian=h).tolist())
    yield attempt(lambda: torch.norm(zero / 0, "nuc").tolist())
    yield issubclass(L.LinAlgError, RuntimeError), L.LinAlgError.__name__
    yield torch._C._LinAlgError is L.LinAlgError
    yield torch._C.OutOfMemoryError is torch.OutOfMemoryError


@case
def given_results(torch):
    """`out=`: tuples of tensors of the right dtypes, which are resized."""
    L, A = torch.linalg, torch.tensor([[2.0, 1.0], [1.0, 3.0]])

    def empty(*dtypes):
        return tuple(torch.empty(0, dtype=d) for d in dtypes)

    outs = empty(torch.float32, torch.float32)
    for function in (L.qr, L.slogdet, torch.slogdet, torch.geqrf, torch.qr):
        outs = empty(torch.float32, torch.float32)
        found = function(A, out=outs)
        yield type(found).__name__, found[0] is outs[0], found[1] is outs[1]
        yield found[1].abs()
    for function in (L.qr, L.lu, torch.svd, torch.lu):
        yield attempt(function, A, out=outs[0])
    for out in (outs[:1], (1, 2), (outs[0], None), outs * 2):
        yield attempt(L.eigh, A, out=out)
    wide = empty(torch.float64, torch.float64, torch.float64)
    for function in (L.qr, L.inv_ex, L.svd, L.lu, L.lu_factor_ex):
        count = len(function(A))
        yield attempt(function, A, out=wide[:count])
    for function in (L.inv, L.det, L.norm, L.vector_norm, L.cond, L.pinv, L.svdvals):
        found = attempt(function, A, out=wide[0])
        refused = isinstance(found, Exception)
        # Computed in float32, whatever the result's dtype.
        yield found if refused else (found.dtype, found.float())
    yield attempt(L.multi_dot, [A, A], out=wide[0])
    yield attempt(L.vecdot, A, A, out=wide[0])
    yield attempt(torch.tensordot, A, A, out=wide[0])
    yield attempt(L.lstsq, A, A, out=wide)
    out = torch.empty(0)
    yield L.multi_dot([A, A, A], out=out) is out, out
    yield torch.tensordot(A, A, 1, out=out) is out, out
    out = torch.empty(0)
    yield L.norm(A, 1, out=out) is out, out
    yield attempt(L.inv, 3), attempt(L.inv, A, out=3), attempt(torch.fft.fft, 3)
    yield attempt(L.qr, A.clone().requires_grad_(), out=outs)


@case
def refused_gradients(torch):
    A = _matrix(torch, 3, 2).requires_grad_()
    yield attempt(torch.linalg.qr(A, "r")[1].sum().backward)
    yield attempt(torch.linalg.qr(A, "complete")[0].sum().backward)
    yield attempt(torch.geqrf(A)[0].sum().backward)


@case
def least_squares(torch):
    A, B = _matrix(torch, 4, 2), _matrix(torch, 4, 3)
    for driver in (None, "gels", "gelsd", "gelss"):
        yield torch.linalg.lstsq(A, B, driver=driver)
    yield torch.linalg.lstsq(A.T, B[:2], driver="gelsd")
    yield torch.linalg.lstsq(torch.stack([A, A + 1]), torch.stack([B, B]), rcond=0.1)
    yield torch.linalg.lstsq(torch.stack([A, A + 1]), B.T[:2], driver="gelsd")
    yield torch.linalg.lstsq(torch.ones(4, 2), torch.ones(4), driver="gelss").rank
    A.requires_grad_()
    B.requires_grad_()
    result = torch.linalg.lstsq(A, B, driver="gels")
    ((result.solution**2).sum() + result.residuals.sum()).backward()
    yield A.grad, B.grad
    for args, kwargs in (
        ((A, B[:3]), {}),
        ((A, B), {"driver": "foo"}),
        ((A, B.float()), {}),
        ((A[0], B), {}),
        ((A, B.sum()), {}),
        ((A.long(), B.long()), {}),
    ):
        yield attempt(torch.linalg.lstsq, *args, **kwargs)


@case
def ranks_and_condition_numbers(torch):
    L, A = torch.linalg, _matrix(torch, 3, 3)
    low = A[:, :1] @ A[:1]
    tall, pair = A[:, :2], torch.stack([A, low])
    yield L.matrix_rank(A), L.matrix_rank(low), L.matrix_rank(tall), L.matrix_rank(pair)
    yield L.matrix_rank(A, 0.9), L.matrix_rank(A, atol=0.9), L.matrix_rank(A, rtol=0.9)
    yield L.matrix_rank(pair, tol=torch.tensor([0.5, 50.0], dtype=torch.float64))
    yield L.matrix_rank(low + low.T, hermitian=True), L.matrix_rank(A[:0])
    yield L.pinv(A), L.pinv(low), L.pinv(tall, 0.5), L.pinv(A, atol=0.9), L.pinv(A[:0])
    yield L.pinv(A + A.T, hermitian=True), L.pinv(A, rtol=0.1, atol=torch.tensor(0.1))
    yield _grads(torch, lambda x: (L.pinv(x),), tall)
    # One triangle is read, the derivative is that of any matrix.
    for B in (A, _matrix(torch, 3, 3, complex=True)):
        yield L.pinv(B, hermitian=True)
        yield _grads(torch, lambda x: (L.pinv(x, hermitian=True),), B)
    for p in (1, -1, float("inf"), "fro", "nuc"):
        yield L.cond(A, p)
    for p in (None, 2, -2):
        yield L.cond(A, p), _grads(torch, lambda x, p=p: (L.cond(x, p),), A)
    yield L.cond(tall), L.cond(pair, 1)[0], L.cond(torch.zeros(2, 2), 1)
    for args in ((A, 3), (A, "foo"), (tall, 1), (tall, "fro"), (A[0],)):
        yield attempt(L.cond, *args)
    yield attempt(L.matrix_rank, A[0]), attempt(L.matrix_rank, A.long())
    yield attempt(L.matrix_rank, tall, hermitian=True)
    yield attempt(L.pinv, A[0]), attempt(L.pinv, A.long())


@case.lines("""
torch.linalg.vander(torch.tensor([1, 2, 3]))
torch.linalg.vander(torch.tensor([True, False]))
torch.vander(torch.tensor([True, False]), 3)
torch.vander(torch.tensor([1., 2.]).half())
torch.linalg.vander(torch.tensor([1., 2.]).half())
torch.linalg.vander(torch.tensor([[1., 2]]), N=4)
torch.linalg.vander(torch.tensor([1., 2.], requires_grad=True), N=3)
torch.linalg.vander(torch.tensor([1, 2]), N=1)
torch.linalg.vander(torch.tensor(1.0))
torch.linalg.vander(torch.tensor(3.0), N=3)
torch.vander(torch.tensor([1, 2, 3])), torch.vander(torch.tensor([1., 2.]), 4, True)
torch.vander(torch.tensor([1., 2.], requires_grad=True), N=1)
torch.vander(torch.tensor([1, 2]), N=0), torch.vander(torch.tensor([1, 2]), N=1)
torch.vander(torch.tensor([1, 2]), N=-1)
torch.vander(torch.ones(2, 2))
x = torch.arange(6.0).view(2, 3); torch.linalg.vecdot(x, x[0])
x = torch.tensor([1 + 2j, 3j]); torch.linalg.vecdot(x, x, dim=0)
torch.linalg.vecdot(torch.ones(2, 3), torch.ones(2, 4))
torch.linalg.vecdot(torch.ones(2).long(), torch.ones(2))
x = torch.empty(0); torch.linalg.vecdot(torch.ones(2), torch.ones(2), out=x) is x, x
torch.linalg.diagonal(torch.arange(12).view(2, 2, 3))
torch.linalg.diagonal(torch.arange(12).view(2, 2, 3), offset=1, dim1=0, dim2=2)
torch.linalg.matmul(torch.ones(2, 3), torch.ones(3))
A = torch.eye(12).reshape(3, 4, 6, 2) * 2; torch.linalg.tensorinv(A).sum((0, 1))
torch.linalg.tensorinv(torch.ones(4, 3), ind=1)
torch.linalg.tensorinv(torch.ones(4, 3), ind=0)
A = torch.eye(6).reshape(2, 3, 6) * 2; torch.linalg.tensorsolve(A, torch.ones(2, 3))
A = torch.eye(6).reshape(2, 6, 3); torch.linalg.tensorsolve(A, torch.ones(2, 3), (1,))
torch.linalg.tensorsolve(torch.ones(2, 3, 4), torch.ones(2, 3))
torch.linalg.slogdet(torch.eye(2)), torch.slogdet(torch.eye(2))
torch.linalg.lu_factor(torch.eye(2))
torch.linalg.eigh(torch.eye(2)).eigenvalues
""")
def lines(torch, line):
    return evaluate(torch, line)


@case
def low_rank(torch):
    A = _matrix(torch, 5, 2) @ _matrix(torch, 2, 4)
    for function in (torch.svd_lowrank, torch.pca_lowrank):
        for x in (A, A.T):
            u, s, v = function(x, q=2)
            yield s, u @ torch.diag(s) @ v.T
    u, s, v = torch.svd_lowrank(A, 2, 1, M=A / 2)
    yield u @ torch.diag(s) @ v.T
    yield torch.pca_lowrank(A.float(), center=False)[1][:2]
    yield attempt(torch.pca_lowrank, A, q=9), attempt(torch.pca_lowrank, A, niter=-1)


@case
def nuclear_condition_of_singular_matrices(torch):
    # Whose singular values are exact: 1 and 0, 0 twice, 4 and 1.
    a = torch.diag_embed(torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 4.0]]))
    yield torch.linalg.cond(a, "nuc"), torch.linalg.cond(a[0], "nuc")
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    torch.linalg.cond(a, "nuc").backward()
    yield a.grad


@case(warnings=False).lines("""
torch.linalg.inv(torch.eye(3).expand(2,3,3)).stride()
torch.linalg.inv_ex(torch.eye(3))[0].stride()
torch.inverse(torch.eye(3)).stride()
[x.stride() for x in torch.linalg.qr(torch.ones(4,3))]
[x.stride() for x in torch.linalg.qr(torch.ones(3,4))]
[x.stride() for x in torch.linalg.qr(torch.ones(2,4,3), mode='complete')]
[x.stride() for x in torch.linalg.qr(torch.ones(4,3), mode='r')]
[x.stride() for x in torch.qr(torch.ones(4,3))]
[x.stride() for x in torch.linalg.svd(torch.ones(2,4,3))]
[x.stride() for x in torch.linalg.svd(torch.ones(4,3), full_matrices=False)]
[x.stride() for x in torch.linalg.svd(torch.ones(3,4), full_matrices=False)]
[x.stride() for x in torch.svd(torch.ones(4,3))]
torch.linalg.svdvals(torch.ones(2,4,3)).stride()
[x.stride() for x in torch.linalg.eigh(torch.eye(3).expand(2,3,3))]
torch.linalg.eigvalsh(torch.eye(3).expand(2,3,3)).stride()
[x.stride() for x in torch.linalg.eig(torch.eye(3).expand(2,3,3))]
[x.stride() for x in torch.linalg.eig(torch.eye(3).expand(2,3,3)*(1+0j))]
torch.linalg.eigvals(torch.eye(3).expand(2,3,3)).stride()
torch.linalg.cholesky(torch.eye(3).expand(2,3,3)).stride()
torch.linalg.cholesky(torch.eye(3), upper=True).stride()
torch.cholesky(torch.eye(3)).stride()
torch.cholesky(torch.eye(3), upper=True).stride()
torch.linalg.cholesky_ex(torch.eye(3))[0].stride()
torch.cholesky_inverse(torch.eye(3)).stride()
torch.cholesky_inverse(torch.eye(3).expand(2,3,3)).stride()
torch.cholesky_solve(torch.ones(3,2), torch.eye(3)).stride()
torch.cholesky_solve(torch.ones(2,3,2), torch.eye(3)).stride()
torch.linalg.solve(torch.eye(3), torch.ones(3)).stride()
torch.linalg.solve(torch.eye(3).expand(2,3,3), torch.ones(2,3,4)).stride()
torch.linalg.solve(torch.eye(3).expand(2,3,3), torch.ones(2,3)).stride()
torch.linalg.solve(torch.eye(3), torch.ones(2,3), left=False).stride()
torch.linalg.solve_ex(torch.eye(3), torch.ones(3,2))[0].stride()
torch.linalg.solve_triangular(torch.eye(3), torch.ones(3,2), upper=True).stride()
torch.linalg.solve_triangular(torch.eye(3).t(), torch.ones(3,2), upper=True).stride()
torch.linalg.solve_triangular(torch.eye(3), torch.ones(2,3).t(), upper=True).stride()
[x.stride() for x in torch.triangular_solve(torch.ones(3,2), torch.eye(3))]
[x.stride() for x in torch.linalg.lu(torch.ones(2,4,3))]
[x.stride() for x in torch.linalg.lu_factor(torch.eye(3).expand(2,3,3))]
[x.stride() for x in torch.linalg.lu_factor(torch.ones(4,3)+torch.eye(4,3))]
[x.stride() for x in torch.linalg.lu_factor_ex(torch.eye(3))]
torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.eye(3)), torch.ones(3,2)).stride()
torch.lu_solve(torch.ones(3,2), *torch.linalg.lu_factor(torch.eye(3))).stride()
[x.stride() for x in torch.lu_unpack(*torch.linalg.lu_factor(torch.eye(3)))]
[x.stride() for x in torch.linalg.lstsq(torch.eye(3).expand(2,3,3), torch.ones(2,3,2))]
torch.linalg.pinv(torch.ones(4,3)).stride()
torch.linalg.pinv(torch.eye(3).expand(2,3,3)).stride()
torch.linalg.pinv(torch.eye(3), hermitian=True).stride()
torch.pinverse(torch.ones(3,4)).stride()
torch.linalg.matrix_power(torch.eye(3), -2).stride()
torch.linalg.matrix_power(torch.eye(3), 3).stride()
torch.linalg.matrix_power(torch.eye(3), 1).stride()
torch.linalg.tensorinv(torch.eye(4).view(2,2,4), ind=2).stride()
torch.linalg.tensorsolve(torch.eye(4).view(2,2,4), torch.ones(2,2)).stride()
torch.linalg.householder_product(torch.ones(4,3), torch.ones(3)).stride()
torch.ormqr(torch.ones(4,3), torch.ones(3), torch.ones(4,2)).stride()
[x.stride() for x in torch.geqrf(torch.ones(4,3))]
[x.stride() for x in torch.linalg.ldl_factor(torch.eye(3))]
torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.eye(3)), torch.ones(3,2)).stride()
torch.linalg.matrix_exp(torch.eye(3).expand(2,3,3)).stride()
torch.linalg.inv(torch.eye(3).double()*(1+0j)).stride()
[x.stride() for x in torch.linalg.slogdet(torch.eye(3))]
torch.linalg.vander(torch.ones(2,3)).stride()
torch.linalg.multi_dot([torch.ones(2,3), torch.ones(3,4), torch.ones(4,2)]).stride()
torch.linalg.cross(torch.ones(2,3).t(), torch.ones(2,3).t(), dim=0).stride()
torch.linalg.inv(torch.ones(0,3,3)).stride()
torch.linalg.inv(torch.ones(0,0)).stride()
torch.linalg.inv(torch.ones(1,1)).stride()
torch.linalg.qr(torch.ones(0,3))[0].stride()
x=torch.eye(3,requires_grad=True); torch.linalg.inv(x).sum().backward(); x.grad.stride()
""")
def by_columns(torch, line):
    """As LAPACK leaves matrices: the strides of what the functions give."""
    return evaluate(torch, line)


@case
def conditions_by_norms_that_are_none(torch):
    for p in ("fro", "none", 7):
        for shape in ((2, 3), (2, 2)):
            yield attempt(torch.linalg.cond, torch.eye(*shape), p)


@case.over(kind=["infinite", "one", "batch", "complex", "nan"])
def without_finite_singular_values(torch, kind):
    """LAPACK refuses NaN; of infinite matrices everything is NaN."""
    inf, L = float("inf"), torch.linalg
    x = {
        "infinite": torch.full((2, 2), inf),
        "one": torch.tensor([[1.0, 2], [inf, 4]]),
        "batch": torch.stack([torch.eye(2), torch.full((2, 2), -inf)]),
        "complex": torch.full((2, 2), inf, dtype=torch.complex128),
        "nan": torch.tensor([[1.0, 2], [float("nan"), 4]]),
    }[kind]

    def shown(function, *args):
        return attempt(lambda: function(x, *args).tolist())

    yield shown(L.svdvals)
    yield shown(lambda x: L.svd(x).S)
    yield shown(lambda x: torch.svd(x, compute_uv=False).S)
    for order in (None, 2, -2, "nuc"):
        yield shown(L.cond, order)
    for order in (2, -2, "nuc"):
        yield shown(L.matrix_norm, order)
    yield shown(L.matrix_rank)
    yield shown(L.pinv)
