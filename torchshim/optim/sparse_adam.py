"""SparseAdam, for gradients that torchshim does not have."""

from __future__ import annotations

from typing import Any

from torchshim._tensor import Tensor
from torchshim.optim.optimizer import Optimizer, ParamsT, evaluate, grad_mode

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for the rows that a sparse gradient names.

    Gradients are dense here, those of ``Embedding(sparse=True)`` too; `step` refuses
    them as PyTorch does. Follows ``torch.optim.SparseAdam``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.ones(2))
    >>> p.grad = torch.ones(2)
    >>> torch.optim.SparseAdam([p]).step()
    Traceback (most recent call last):
    RuntimeError: SparseAdam does not support dense gradients, please consider Adam \
instead
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:  # type: ignore[attr-defined]
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        indexed = [
            ([i, j], p)
            for i, group in enumerate(self.param_groups)
            for j, p in enumerate(group["params"])
        ]
        sparse_params = [at for at, p in indexed if p.is_sparse]
        complex_params = [at for at, p in indexed if p.is_complex()]
        if sparse_params:
            raise ValueError(
                f"Sparse params at indices {sparse_params}: SparseAdam requires dense "
                "parameter tensors"
            )
        if complex_params:
            raise ValueError(
                f"Complex params at indices {complex_params}: SparseAdam does not "
                "support complex parameters"
            )

    def step(self, closure: Any = None) -> Any:
        """Raises for every gradient there is; see the class."""
        with grad_mode(False):
            loss = evaluate(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.layout is not p.layout:
                    raise NotImplementedError(
                        "SparseAdam: steps with sparse gradients are not supported"
                    )
                raise RuntimeError(
                    "SparseAdam does not support dense gradients, please consider Adam "
                    "instead"
                )
        return loss
