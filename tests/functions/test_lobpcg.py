"""`lobpcg`: the steps of the iteration and what steers it; vectors but for signs."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case


def _matrix(torch, m, seed=0.0):
    x = torch.sin((torch.arange(1.0, m * m + 1, dtype=torch.float64) + seed) ** 2)
    return x.view(m, m) @ x.view(m, m).mT / m + torch.eye(m, dtype=torch.float64)


def _start(torch, m):
    return torch.cos(torch.arange(2.0 * m, dtype=torch.float64) ** 2).view(m, 2)


def _followed(torch, A, **kwargs):
    """The pairs, how many steps led to them, and what a tracker sees."""
    steps = []

    def tracker(worker):
        state = worker.ivars["istep"], worker.ivars["converged_count"]
        steps.append((*state, sorted(worker.ivars), sorted(worker.bparams)))

    values, vectors = torch.lobpcg(A, tracker=tracker, **kwargs)
    return values, vectors.abs(), len(steps), steps[0], steps[-1]


@case(rtol=1e-5, atol=1e-6, why="the iteration stops within its own tolerance")
def steered(torch):
    A, X = _matrix(torch, 9), _start(torch, 9)
    yield _followed(torch, A, X=X.clone())
    yield _followed(torch, A, X=X.clone(), largest=False, method="basic", tol=1e-4)
    yield _followed(torch, A, X=X.clone(), k=1, niter=2)
    yield _followed(torch, A, X=X.clone(), iK=torch.linalg.inv(A), niter=2)
    yield _followed(torch, A, X=X.clone(), B=_matrix(torch, 9, 0.5), niter=2)
    options = {"ortho_iparams": {"ortho_i_max": 1}, "ortho_fparams": {"ortho_tol": 0.1}}
    yield _followed(torch, A, X=X.clone(), niter=2, **options)
    yield _followed(torch, A.to_sparse(), X=X.clone(), niter=2)
    torch.manual_seed(2)
    pair = torch.stack([A, A + A])
    yield [x.abs() for x in torch.lobpcg(pair, k=1, n=2, niter=3)]

    def stop(worker):
        worker.bvars["force_stop"] = True

    yield torch.lobpcg(A, X=X.clone(), tracker=stop)[0]
    changed = X.clone()
    torch.lobpcg(A, X=changed, niter=1, method="basic")
    yield changed.abs()


@case(rtol=1e-5, atol=1e-6, why="the iteration stops within its own tolerance")
def gradients(torch):
    A, X = _matrix(torch, 7).requires_grad_(), _start(torch, 7)
    values, vectors = torch.lobpcg(A, X=X, tol=1e-12)
    weight = torch.arange(7.0, dtype=torch.float64).unsqueeze(-1)
    total = (values**2).sum() + (weight * vectors**2).sum()
    yield type(values.grad_fn).__name__, torch.autograd.grad(total, A)
    steered = {"X": X, "niter": 2}
    found = torch.lobpcg(A, B=_matrix(torch, 7, 0.5), **steered)
    yield attempt(found[0].sum().backward)
    sparse = A.detach().to_sparse().requires_grad_()
    yield attempt(lambda: torch.lobpcg(sparse, **steered)[0].sum().backward())


@case(rtol=1e-5, atol=1e-6, why="the iteration stops within its own tolerance")
def second_gradients(torch):
    A, X = _matrix(torch, 7).requires_grad_(), _start(torch, 7)
    weight = torch.arange(14.0, dtype=torch.float64).view(7, 2).requires_grad_()
    for batch in (A, torch.stack([A, A + A])):
        start = X.expand(*batch.shape[:-2], 7, 2).clone()
        values, vectors = torch.lobpcg(batch, X=start, tol=1e-12)
        total = (values**3).sum() + (weight * vectors**2).sum()
        (first,) = torch.autograd.grad(total, A, create_graph=True)
        yield torch.autograd.grad((first**2).sum(), (A, weight))


@case
def refused(torch):
    A, X = _matrix(torch, 7), _start(torch, 7)
    yield attempt(torch.lobpcg, A, k=3), attempt(torch.lobpcg, A[:3], k=1)
    yield attempt(torch.lobpcg, A, B=A[:3], k=1), attempt(torch.lobpcg, A, X=X[:3])


@case
def helpers(torch):
    """What PyTorch's own test of `lobpcg` imports."""
    utils = importlib.import_module(f"{torch.__name__}._linalg_utils")
    module = importlib.import_module(f"{torch.__name__}._lobpcg")
    yield module.lobpcg(torch.eye(9), k=1)[0], module.LOBPCG.__name__
    A, X = torch.tensor([[2.0, 1], [1, 3]]), torch.tensor([[1.0], [2.0]])
    yield (
        utils.is_sparse(A),
        utils.is_sparse(A.to_sparse()),
        attempt(utils.is_sparse, 3),
    )
    for name in ("int32", "float16", "complex64"):
        kind = getattr(torch, name)
        yield utils.get_floating_dtype(torch.ones(2, dtype=kind))
    yield utils.matmul(None, X), utils.matmul(A, X), utils.matmul(A.to_sparse(), X)
    yield utils.bform(X, A, X), utils.qform(None, X), utils.qform(A, X)
    yield utils.basis(A).abs(), utils.symeig(A)[0], utils.symeig(A, True)[0]
    for name in ("matrix_rank", "solve", "lstsq", "_symeig", "eig"):
        yield attempt(getattr(utils, name), A, A)
