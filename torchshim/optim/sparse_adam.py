"""SparseAdam, for the tables of embeddings."""

from __future__ import annotations

from typing import Any

from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._functions.creation import zeros_like
from torchshim._functions.sparse_tensor import flat
from torchshim._tensor import Tensor
from torchshim.optim._rules import number
from torchshim.optim.optimizer import Optimizer, ParamsT, evaluate, grad_mode

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for what a step looked up: what a sparse gradient names.

    Follows ``torch.optim.SparseAdam``.

    >>> import torchshim as torch
    >>> table = torch.nn.Parameter(torch.ones(3, 2))
    >>> optimizer = torch.optim.SparseAdam([table], lr=0.5)
    >>> row = torch.nn.functional.embedding(torch.tensor([1]), table, sparse=True)
    >>> row.sum().backward()
    >>> optimizer.step()
    >>> table.detach()
    tensor([[1.0000, 1.0000],
            [0.5000, 0.5000],
            [1.0000, 1.0000]])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
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
        """One step; dense gradients are refused."""
        with grad_mode(False):
            loss = evaluate(closure)
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                for p in params:
                    self._begin(p)
                for p in params:
                    state = self.state[p]
                    states = state["exp_avg"], state["exp_avg_sq"]
                    update(p, p.grad, *states, state["step"], group)
        return loss

    def _begin(self, p: Any) -> None:
        if not p.grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam "
                "instead"
            )
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"] = zeros_like(p)
            state["exp_avg_sq"] = zeros_like(p)
        state["step"] += 1


def update(
    p: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, step: int, options: dict[str, Any]
) -> None:
    """Moves the rows of a parameter and of its states that its sparse gradient has."""
    beta1, beta2 = options["betas"]
    step_size = options["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    given = [p, *flat(grad), exp_avg, exp_avg_sq]
    numbers = number(step_size), float(beta1), float(beta2), float(options["eps"])
    local.rec.mutate(
        REGISTRY["adam_rows_update"],
        [*((each,) for each in given), *numbers, bool(options["maximize"])],
        [p, exp_avg, exp_avg_sq],
    )
