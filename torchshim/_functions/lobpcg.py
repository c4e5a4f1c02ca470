"""`lobpcg`: some eigenpairs of a large symmetric matrix, by iteration.

Locally optimal block preconditioned conjugate gradients (Knyazev, 2001), by default
with an orthogonal basis of the space searched (Stathopoulos and Wu, 2002; Duersch,
2015), with PyTorch's parameters, steps and rule for stopping. Each step reads which
pairs have converged, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._derived import fns, namespace, public
from torchshim._tensor import Tensor

__all__ = ["LOBPCG", "lobpcg"]


def _product(A: Any, X: Any) -> Any:
    return X if A is None else A @ X


def _form(A: Any, S: Any) -> Any:
    """`S^T A S`."""
    return S.mT @ _product(A, S)


def symmetric_pairs(A: Any, largest: bool = False) -> tuple[Any, Any]:
    """Eigenvalues and vectors by the upper triangle, the largest first if asked."""
    values, vectors = fns.eigh(A, "U")
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values, vectors


def _size(x: Any) -> float:
    return fns.norm(x).item()


class LOBPCG:
    """The state of an iteration, as `tracker` sees it.

    `iparams`, `fparams`, `bparams` are what steers it, `ivars`, `fvars`, `bvars`,
    `tvars` what varies; `E` and `X` the eigenvalues and vectors so far, `R` their
    residuals and `S` the basis of the space that is searched next.
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        X: Any,
        iK: Any,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Any,
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        m, n = iparams["m"], iparams["n"]
        self.E = X.new_zeros((n,))
        self.R = X.new_zeros((m, n))
        self.S = X.new_zeros((m, 3 * n))
        self.tvars: dict[str, Any] = {}
        self.ivars: dict[str, int] = {"istep": 0}
        self.fvars: dict[str, float] = {"_": 0.0}
        self.bvars: dict[str, bool] = {"_": False}

    def __str__(self) -> str:
        names = ("iparams", "fparams", "bparams", "ivars", "fvars", "bvars", "tvars")
        shown = (*names, "A", "B", "iK", "X", "E")
        return "".join(
            ["LOBPCG:\n", *(f"  {name}={getattr(self, name)}\n" for name in shown)]
        )

    def run(self) -> None:
        """Steps until enough pairs have converged, or as many as are allowed."""
        while True:
            self.update()
            if self.tracker is not None:
                self.call_tracker()
            if self.stop_iteration():
                return

    def call_tracker(self) -> None:
        """Shows the state to `tracker`."""
        self.tracker(self)

    def update(self) -> None:
        """One step."""
        if self.ivars["istep"] == 0:
            size = _size(self.X)
            self.fvars["X_norm"] = size
            self.fvars["A_norm"] = _size(_product(self.A, self.X)) / size
            self.fvars["B_norm"] = _size(_product(self.B, self.X)) / size
            self.ivars["iterations_left"] = self.iparams["niter"]
            self.ivars["converged_count"] = self.ivars["converged_end"] = 0
        if self.method == "ortho":
            self._update_ortho()
        else:
            self._update_basic()
        self.ivars["iterations_left"] -= 1
        self.ivars["istep"] += 1

    def update_residual(self) -> None:
        """Sets `R`."""
        self.R = _product(self.A, self.X) - _product(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many of the first pairs have errors below the tolerance."""
        scale = self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"]
        error = fns.norm(self.R, 2, (0,)) / (fns.norm(self.X, 2, (0,)) * scale)
        converged = (error < self.fparams["tol"]).tolist()
        count = converged.index(False) if False in converged else len(converged)
        before = self.ivars["converged_count"]
        if count < before:
            raise AssertionError(
                f"the number of converged eigenpairs (was {before}, got {count}) "
                "cannot decrease"
            )
        self.ivars["converged_count"] = count
        self.tvars["rerr"] = error
        return count

    def stop_iteration(self) -> bool:
        """Whether to stop; a tracker asks for it by `bvars["force_stop"]`."""
        return (
            self.bvars.get("force_stop", False)
            or self.ivars["iterations_left"] == 0
            or self.ivars["converged_count"] >= self.iparams["k"]
        )

    def _update_basic(self) -> None:
        n, largest = self.iparams["n"], self.bparams["largest"]
        done, end = self.ivars["converged_count"], self.ivars["converged_end"]
        first = self.ivars["istep"] == 0
        S = self.X if first else self.S[:, done:end]
        Ri = self._get_rayleigh_ritz_transform(S)
        values, Z = symmetric_pairs(_form(_form(self.A, S), Ri), largest)
        S = S @ Ri
        self.X[:, done:] = S @ Z[:, : n - done]
        self.E[done:] = values[: n - done]
        P = S @ Z[:, n : 2 * n - done]
        self.update_residual()
        done = self.update_converged_count()
        W = _product(self.iK, self.R if first else self.R[:, done:])
        self._search(P, W)

    def _update_ortho(self) -> None:
        n, largest = self.iparams["n"], self.bparams["largest"]
        done, end = self.ivars["converged_count"], self.ivars["converged_end"]
        if self.ivars["istep"] == 0:
            Ri = self._get_rayleigh_ritz_transform(self.X)
            _, Z = symmetric_pairs(_form(_form(self.A, self.X), Ri), largest)
            self.X = self.X @ (Ri @ Z)
            P = self.X[:, :0]
        else:
            S = self.S[:, done:end]
            values, Z = symmetric_pairs(_form(self.A, S), largest)
            kept = n - done
            self.X[:, done:] = S @ Z[:, :kept]
            self.E[done:] = values[:kept]
            P = S @ (Z[:, kept:] @ fns.linalg_qr(Z[:kept, kept:].mT)[0])
        self.update_residual()
        done = self.update_converged_count()
        R = self.R if self.ivars["istep"] == 0 else self.R[:, done:]
        self._search(P, self._get_ortho(R, namespace("torch")["cat"]((self.X, P), 1)))

    def _search(self, P: Any, W: Any) -> None:
        """The vectors so far, where they came from and where they lead: the next S."""
        end = 0
        for each in (self.X, P, W):
            start, end = end, end + each.shape[-1]
            self.S[:, start:end] = each
        self.ivars["converged_end"] = end

    def _get_rayleigh_ritz_transform(self, S: Any) -> Any:
        """The triangular matrix that makes S orthonormal by B."""
        SBS = _form(self.B, S)
        row = SBS.diagonal(0, -2, -1) ** -0.5
        R = fns.linalg_cholesky(SBS * row * row.unsqueeze(-1), upper=True)
        return fns.solve_triangular(R, row.diag_embed(), upper=True, left=False)

    def _get_svqb(self, U: Any, drop: bool, tau: float) -> Any:
        """U made orthonormal by B; with `drop`, without what adds little."""
        if not U.numel():
            return U
        UBU = _form(self.B, U)
        zero = (UBU.diagonal(0, -2, -1) == 0).tolist()
        if any(zero):
            U = U[:, [i for i, z in enumerate(zero) if not z]]
            if not U.numel():
                return U
            UBU = _form(self.B, U)
        scale = UBU.diagonal(0, -2, -1) ** -0.5
        values, Z = symmetric_pairs(UBU * scale.unsqueeze(-1) * scale)
        least = tau * values.abs().max()
        if drop:
            kept = (values > least).tolist()
            at = [i for i, k in enumerate(kept) if k]
            values, Z, scale = values[at], Z[:, at], scale[at]
        else:
            values = fns.maximum(values, least)
        return (U * scale) @ (Z * values**-0.5)

    def _get_ortho(self, U: Any, V: Any) -> Any:
        """U made orthonormal and orthogonal to V by B; empty if it lies within V."""
        goal, replace = self.fparams["ortho_tol"], self.fparams["ortho_tol_replace"]
        for name in [n for n in self.fvars if n.startswith("ortho_")]:
            if name.endswith("_rerr"):
                del self.fvars[name]
        size = _size(_product(self.B, V))
        VBU = V.mT @ _product(self.B, U)
        i = j = 0
        for i in range(self.iparams["ortho_i_max"]):
            U = U - V @ VBU
            drop, tau = False, self.fparams["ortho_tol_drop"]
            for j in range(self.iparams["ortho_j_max"]):
                if self.bparams["ortho_use_drop"]:
                    U = self._get_svqb(U, drop, tau)
                    drop, tau = True, replace
                else:
                    U = self._get_svqb(U, False, replace)
                self.ivars["ortho_i"], self.ivars["ortho_j"] = i, j
                if not U.numel():
                    return U
                BU = _product(self.B, U)
                rest = U.mT @ BU
                rest = rest - namespace("torch")["eye"](len(rest), dtype=U.dtype)
                error = _size(rest) / (_size(BU) * _size(U))
                self.fvars[f"ortho_UBUmI_rerr[{i}, {j}]"] = error
                if error < goal:
                    break
            VBU = V.mT @ _product(self.B, U)
            error = _size(VBU) / (size * _size(U))
            self.fvars[f"ortho_VBU_rerr[{i}]"] = error
            if error < goal:
                break
            if self.iparams["m"] < U.shape[-1] + V.shape[-1]:
                if self.B is None:
                    raise AssertionError("B must not be None")
                raise ValueError(
                    f"Overdetermined shape of U: #B-cols(={self.B.shape[-1]}) >= "
                    f"#U-cols(={U.shape[-1]}) + #V-cols(={V.shape[-1]}) must hold"
                )
        self.ivars["ortho_i"], self.ivars["ortho_j"] = i, j
        return U


@public
def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (smallest) eigenvalues of a symmetric matrix, and eigenvectors.

    A, dense, sparse or a batch, is multiplied with only. Starts at X or random vectors
    and takes at most `niter` steps, to relative residuals below `tol`; `iK` is a
    preconditioner. With B, `A x = e B x` is solved, and there are no gradients.
    https://docs.pytorch.org/docs/2.13/generated/torch.lobpcg.html

    >>> import torchshim as torch
    >>> torch.lobpcg(torch.diag(torch.arange(1.0, 7.0)), k=2)[0].round()
    tensor([6., 5.])
    """
    needed = A.requires_grad or (B is not None and B.requires_grad)
    given = A, B
    if needed and A.layout.name == "strided":
        A, B = (None if M is None else (M + M.mT) / 2 for M in given)
    with untracked():
        solver = A.detach(), None if B is None else B.detach()
        steering = niter, tol, True if largest is None else largest, method, tracker
        ortho = ortho_iparams, ortho_fparams, ortho_bparams
        values, vectors = _solved(*solver, k, X, n, iK, *steering, ortho)
    if not needed:
        return values, vectors
    refusal = ""
    if A.layout.name != "strided":
        A, refusal = A.to_dense(), "does not support sparse input yet. "
    elif A.is_complex():
        refusal = "does not support complex input yet. "
    if refusal:
        refusal += "Note that lobpcg.forward does though."
    elif B is not None:
        refusal = "does not support backward with B != I yet."
    return fns._eigenpairs(A, B, values, vectors, refusal)


def _complete(
    iparams: dict[str, int],
    fparams: dict[str, float],
    bparams: dict[str, bool],
    ortho: tuple[Any, Any, Any],
) -> None:
    """Adds what steers the method "ortho": as given, or else as usual."""
    integers, numbers, switches = (given or {} for given in ortho)
    tol = fparams["tol"]
    iparams |= {"ortho_i_max": 3, "ortho_j_max": 3} | integers
    fparams |= numbers
    for name in ("ortho_tol", "ortho_tol_drop", "ortho_tol_replace"):
        fparams.setdefault(name, tol)
    bparams |= {"ortho_use_drop": False} | switches


def _solved(
    A: Any,
    B: Any,
    k: int | None,
    X: Any,
    n: int | None,
    iK: Any,
    niter: int | None,
    tol: float | None,
    largest: bool,
    method: str | None,
    tracker: Any,
    ortho: tuple[Any, Any, Any],
) -> tuple[Any, Any]:
    shape = tuple(A.shape)
    if shape[-2] != shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and tuple(B.shape) != shape:
        raise AssertionError(
            f"A and B must have same shape, got {A.shape} vs {B.shape}"
        )
    dtype = A.dtype if A.dtype.is_floating_point else dtypes.float32
    if tol is None:
        tol = math.sqrt({dtypes.float32: 1.2e-07, dtypes.float64: 2.23e-16}[dtype])
    m = shape[-1]
    columns = None if X is None else int(X.shape[-1])
    k = (columns or 1) if k is None else k
    n = (k if n is None else n) if columns is None else columns
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is "
            f"smaller than 3 x the number of requested eigenpairs (={n})"
        )
    method = "ortho" if method is None else method
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    fparams: dict[str, float] = {"tol": tol}
    bparams: dict[str, bool] = {"largest": largest}
    if method == "ortho":
        _complete(iparams, fparams, bparams, ortho)

    def solved(A: Any, B: Any, X: Any, name: str) -> tuple[Any, Any]:
        if X is None:
            X = namespace("torch")["randn"]((m, n), dtype=dtype, device=A.device)
        if tuple(X.shape) != (m, n):
            raise AssertionError(
                f"{name} shape mismatch: got {X.shape}, expected {(m, n)}"
            )
        worker = LOBPCG(A, B, X, iK, iparams, fparams, bparams, method, tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    if len(shape) == 2:
        return solved(A, B, X, "X")
    parts = [None if M is None else M.reshape((-1, *M.shape[-2:])) for M in (A, B, X)]
    found = []
    for i in range(math.prod(shape[:-2])):
        iparams["batch_index"] = i
        found.append(solved(*(None if M is None else M[i] for M in parts), "X_"))  # type: ignore[call-arg]
    stack = namespace("torch")["stack"]
    values, vectors = (stack(each) for each in zip(*found, strict=True))
    return values.reshape((*shape[:-2], k)), vectors.reshape((*shape[:-2], m, k))
