# compat: rtol=1e-3 atol=1e-3 seconds=6 (factorizations in another order)
"""A Gaussian process fitted by L-BFGS, and a Kalman filter, both from scratch."""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_printoptions(precision=3, sci_mode=False)


def rbf(a, b, ls, var):
    return var * torch.exp(-0.5 * torch.cdist(a / ls, b / ls) ** 2)


X = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(1)
y = torch.sin(6 * X).squeeze() + 0.1 * torch.randn(12, dtype=torch.float64)
raw = torch.zeros(3, dtype=torch.float64, requires_grad=True)
opt = torch.optim.LBFGS([raw], lr=0.5, max_iter=5)


def nll():
    ls, var, noise = F.softplus(raw)
    K = rbf(X, X, ls, var) + noise * torch.eye(12, dtype=torch.float64)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y.unsqueeze(1), L)
    return (
        0.5 * y @ alpha.squeeze() + L.diagonal().log().sum() + 6 * math.log(2 * math.pi)
    )


def closure():
    opt.zero_grad()
    loss = nll()
    loss.backward()
    return loss


for _ in range(2):
    print(f"{opt.step(closure).item():.5f}", F.softplus(raw).detach())
with torch.no_grad():
    ls, var, noise = F.softplus(raw)
    L = torch.linalg.cholesky(rbf(X, X, ls, var) + noise * torch.eye(12).double())
    Xs = torch.tensor([[0.05], [0.5], [1.2]]).double()
    Ks = rbf(X, Xs, ls, var)
    v = torch.linalg.solve_triangular(L, Ks, upper=False)
    print(
        (Ks.T @ torch.cholesky_solve(y[:, None], L)).squeeze(),
        (rbf(Xs, Xs, ls, var) - v.T @ v).diag().sqrt(),
    )
A = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
H = torch.tensor([[1.0, 0.0]])
Q = 0.01 * torch.eye(2)
R = torch.tensor([[0.5]])
m, P = torch.zeros(2, 1), torch.eye(2)
logl = 0.0
zs = torch.cumsum(torch.ones(10), 0) + 0.5 * torch.randn(10)
ms, Ps = [], []
for z in zs:
    m, P = A @ m, A @ P @ A.T + Q
    S = H @ P @ H.T + R
    K = P @ H.T @ torch.inverse(S)
    r = z - H @ m
    logl += -0.5 * (r.T @ torch.inverse(S) @ r + torch.logdet(2 * math.pi * S)).item()
    m = m + K @ r
    P = (torch.eye(2) - K @ H) @ P
    ms.append(m)
    Ps.append(P)
print(torch.stack(ms).squeeze()[::3], P, f"{logl:.4f}")
