"""Parametrizations that are used often: orthogonal, weight and spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import torchshim
from torchshim._functions.memory import put_into
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.module import Module
from torchshim.nn.utils import parametrize
from torchshim.nn.utils.spectral_norm import output_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _is_orthogonal(q: Any) -> bool:
    n, k = q.size(-2), q.size(-1)
    identity = torchshim.eye(k, dtype=q.dtype, device=q.device)
    atol = 10.0 * n * torchshim.finfo(q.dtype).eps
    return torchshim.allclose(q.mH @ q, identity, atol=atol)


def _make_orthogonal(a: Any) -> Any:
    """The orthogonal factor of `a`, the one for which its triangle is positive."""
    x, tau = torchshim.geqrf(a)
    q = torchshim.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError(
                "The householder parametrization does not support complex tensors."
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map is _OrthMaps.householder:
            a = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = torchshim.linalg.householder_product(a, tau)
            # The diagonal of X holds signs.
            q = q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._of_skew(X.tril(), n, k)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    def _of_skew(self, x: Any, n: int, k: int) -> Any:
        if n != k:
            zeros = x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)
            x = torchshim.cat([x, zeros], dim=-1)
        a = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = torchshim.matrix_exp(a)
        else:
            identity = torchshim.eye(n, dtype=a.dtype, device=a.device)
            q = torchshim.linalg.solve(
                identity.add(a, alpha=-0.5), identity.add(a, alpha=0.5)
            )
        return q[..., :k] if n != k else q

    @torchshim.no_grad()
    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                f"tensor of shape {Q.shape}."
            )
        given = Q
        n, k = Q.size(-2), Q.size(-1)
        transposed = n < k
        if transposed:
            Q = Q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the "
                    "Cayley parametrizations when use_trivialization=False."
                )
            a, tau = torchshim.geqrf(Q)
            signs = a.diagonal(dim1=-2, dim2=-1).sign()
            signs = torchshim.where(tau == 0.0, -signs, signs)
            a.diagonal(dim1=-2, dim2=-1).copy_(signs)
            return a.mT if transposed else a
        if n != k:
            noise = torchshim.randn(
                *Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device
            )
            Q = _make_orthogonal(torchshim.cat([Q, noise], dim=-1))
        else:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        self.base = Q
        # All three maps take the triangle of minus the identity to the identity.
        start = torchshim.zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def _weight(module: Module, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(
            f"Module '{module}' has no parameter or buffer with name '{name}'"
        )
    return weight


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix orthogonal (its columns or rows, whichever are fewer).

    `orthogonal_map`: "matrix_exp", "cayley" or "householder". Follows
    ``torch.nn.utils.parametrizations.orthogonal``.

    >>> import torchshim as torch
    >>> layer = orthogonal(torch.nn.Linear(2, 2))
    >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(2), atol=1e-6)
    True
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(
            "Expected a matrix or batch of matrices. Got a tensor of "
            f"{weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        whole = square or weight.is_complex()
        orthogonal_map = "matrix_exp" if whole else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return torchshim._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return torchshim.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learns a weight's length (`original0`) and direction (`original1`) apart.

    `dim`: the dimension along which lengths differ; None for one length. State dicts of
    the older ``nn.utils.weight_norm`` can be loaded. Follows
    ``torch.nn.utils.parametrizations.weight_norm``.

    >>> import torchshim as torch
    >>> layer = weight_norm(torch.nn.Linear(2, 3))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([3, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(
        self,
        weight: Any,
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    @torchshim.no_grad()
    def _power_method(self, weight_mat: Any, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            u = F.normalize(weight_mat.mv(self._v), dim=0, eps=self.eps)
            put_into(self._u, u)
            v = F.normalize(weight_mat.mH.mv(self._u), dim=0, eps=self.eps)
            put_into(self._v, v)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Several forward passes before one backward need their own.
        u = self._u.clone(memory_format=torchshim.contiguous_format)
        v = self._v.clone(memory_format=torchshim.contiguous_format)
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        # What is assigned may have any norm; only its direction counts.
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Keeps the largest singular value of a weight at 1, by power iterations.

    Follows ``torch.nn.utils.parametrizations.spectral_norm``.

    >>> import torchshim as torch
    >>> layer = spectral_norm(torch.nn.Linear(4, 3))
    >>> bool(torch.linalg.matrix_norm(layer.weight, 2) < 1.1)
    True
    """
    weight = _weight(module, name)
    dim = output_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module
