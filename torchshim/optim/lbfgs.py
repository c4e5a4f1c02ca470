"""LBFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

import torchshim
from torchshim._core import dtypes
from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._functions.creation import place
from torchshim._tensor import Tensor, from_array
from torchshim.optim._line_search import Point, strong_wolfe
from torchshim.optim._line_search import (
    cubic_minimum as _cubic_interpolate,  # noqa: F401 -- PyTorch's names
)
from torchshim.optim._line_search import with_tensors as _strong_wolfe  # noqa: F401
from torchshim.optim._rules import check_lr, densified
from torchshim.optim.optimizer import Optimizer, ParamsT, grad_mode

__all__ = ["LBFGS"]

# What is remembered of the last steps: y, s, 1 / (y @ s), the scale of the Hessian.
_MEMORY = ("old_dirs", "old_stps", "ro", "H_diag")


def _scalar(value: Any) -> Any:
    """The value of a 0-dim tensor, as NumPy's scalar of the dtype PyTorch rounds to."""
    double = value.dtype is torchshim.float64
    return (np.float64 if double else np.float32)(value.item())


def _array_dtype(like: Any) -> Any:
    return dtypes.array_dtype(like.dtype)


def _placed(value: Any, like: Any) -> Any:
    """A number as a tensor of the dtype and on the device of another."""
    array = place(np.asarray(value, _array_dtype(like)), like.device)
    return from_array(array, device=like.device)


class LBFGS(Optimizer):
    """A quasi-Newton method: directions from what the last steps changed.

    `step` takes a closure that computes the loss and the gradients anew, and calls it
    up to `max_eval` times; it reads the loss, so it is several programs. One group of
    parameters only. `line_search_fn`: None or "strong_wolfe". Follows
    ``torch.optim.LBFGS``.

    >>> import torchshim as torch
    >>> p = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> optimizer = torch.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (p**2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    13.0
    >>> bool(p.abs().max() < 1e-4)
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )
        self._params = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(
                p.numel() * (2 if p.is_complex() else 1) for p in self._params
            )
        return self._numel_cache

    def _gather_flat_grad(self) -> Any:
        """All gradients as one vector."""
        pieces = []
        for p in self._params:
            grad = torchshim.zeros_like(p) if p.grad is None else p.grad
            piece = densified(grad).reshape(-1)
            if piece.is_complex():
                piece = torchshim.view_as_real(piece).reshape(-1)
            pieces.append(piece)
        return torchshim.cat(pieces, 0)

    def _add_grad(self, step_size: Any, update: Any) -> None:
        start = 0
        for p in self._params:
            if p.is_complex():
                p = torchshim.view_as_real(p)
            end = start + p.numel()
            p.add_(update[start:end].view_as(p), alpha=float(step_size))
            start = end

    def _clone_param(self) -> list[Any]:
        return [
            p.clone(memory_format=torchshim.contiguous_format) for p in self._params
        ]

    def _set_param(self, params_data: list[Any]) -> None:
        for p, data in zip(self._params, params_data, strict=True):
            p.copy_(data)

    def _directional_evaluate(
        self, closure: Callable[[], Any], x: list[Any], t: Any, d: Any
    ) -> tuple[float, Any]:
        """Loss and gradient a step away; the parameters are put back."""
        self._add_grad(t, d)
        loss = closure()
        grad = self._gather_flat_grad()
        self._set_param(x)
        return float(loss), grad

    def step(self, closure: Callable[[], Any]) -> Any:
        """Up to `max_iter` iterations; gives the first loss. Follows PyTorch's."""
        groups = len(self.param_groups)
        assert groups == 1, f"Expected exactly one param_group, but got {groups}"

        def evaluate() -> Any:
            with grad_mode(True):
                return closure()

        with grad_mode(False):
            return self._optimize(evaluate)

    def _optimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"]
        lr = _scalar(lr) if isinstance(lr, Tensor) else lr
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_change = group["tolerance_change"]
        # All state is kept with the first parameter.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        grad = self._gather_flat_grad()
        flat = self._is_flat(grad)
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        if flat:
            return first_loss

        history = _History(state)
        d, t = state.get("d"), state.get("t")
        previous, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        iteration = 0
        while iteration < max_iter:
            iteration += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = grad.neg()
                history.clear()
            else:
                size = len(state.setdefault("al", [None] * group["history_size"]))
                history.remember(grad.sub(previous), d, t, size)
                d = history.direction(grad, size)
            if previous is None:
                previous = grad.clone(memory_format=torchshim.contiguous_format)
            else:
                previous.copy_(grad)
            previous_loss = loss
            slope, total = grad.dot(d), grad.abs().sum()
            slope = _scalar(slope)
            t = min(1.0, 1.0 / _scalar(total)) * lr if state["n_iter"] == 1 else lr
            if slope > -tolerance_change:
                break

            count = 0
            if group["line_search_fn"] is not None:
                left = max_eval - evaluations
                start = Point(0, loss, grad, slope)
                found, count = self._search(closure, t, start, d, left)
                loss, grad, t = found.f, found.g, found.t
                self._add_grad(t, d)
                flat = self._is_flat(grad)
            else:
                self._add_grad(t, d)
                if iteration != max_iter:
                    new_loss = closure()
                    grad = self._gather_flat_grad()
                    flat = self._is_flat(grad)
                    loss = float(new_loss)
                    count = 1
            evaluations += count
            state["func_evals"] += count
            if iteration == max_iter or evaluations >= max_eval:
                break
            moved = d.mul(float(t)).abs().max() <= tolerance_change
            if flat or moved or abs(loss - previous_loss) < tolerance_change:
                break

        history.keep_coefficients(state)
        if isinstance(t, np.generic):
            t = torchshim.tensor(float(t), dtype=grad.dtype, device=grad.device)
        state.update(
            d=d, t=t, **history.steps, prev_flat_grad=previous, prev_loss=previous_loss
        )
        return first_loss

    def _is_flat(self, grad: Any) -> Any:
        return grad.abs().max() <= self.param_groups[0]["tolerance_grad"]

    def _search(
        self, closure: Callable[[], Any], t: Any, start: Point, d: Any, max_ls: int
    ) -> tuple[Point, int]:
        if self.param_groups[0]["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        x = self._clone_param()

        def evaluate(t: Any) -> Point:
            loss, grad = self._directional_evaluate(closure, x, t, d)
            return Point(t, loss, grad, _scalar(grad.dot(d)))

        return strong_wolfe(evaluate, t, start, _scalar(d.abs().max()), max_ls=max_ls)


class _History:
    """The last steps, with the changes of the gradient, and what follows from them.

    `state` has what earlier calls left; `size` is how many steps are remembered.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.steps: dict[str, Any] = {name: state.get(name) for name in _MEMORY}
        self._zeros: list[list[Tensor]] = [[], [], []]
        # Of the first loop of the last direction.
        self._coefficients: Any = None

    def clear(self) -> None:
        self.steps = dict(zip(_MEMORY, ([], [], [], 1), strict=True))

    def remember(self, y: Any, d: Any, t: Any, size: int) -> None:
        """Adds the step `t * d`, by which the gradient changed by `y`."""
        s = d.mul(t if isinstance(t, Tensor) else float(t))
        ys = y.dot(s)
        if ys > 1e-10:
            made = (y, s, 1.0 / ys)
            for name, value in zip(_MEMORY, made, strict=False):
                if len(self.steps[name]) == size:
                    self.steps[name].pop(0)
                self.steps[name].append(value)
            self.steps["H_diag"] = ys / y.dot(y)

    def direction(self, grad: Any, size: int) -> Any:
        """Where to go from a point with this gradient.

        Zeros come first, up to a power of two. Each is a tensor of its own, as a step
        is, so that a growing history is few programs.
        """
        steps = self.steps
        count = len(steps["ro"])
        if not count:
            return grad.neg().mul(steps["H_diag"])
        missing = min(1 << (count - 1).bit_length(), size) - count
        padded = []
        for name, zeros in zip(_MEMORY, self._zeros, strict=False):
            if len(zeros) < missing:
                like = steps[name][0]
                array = place(np.zeros(like.shape, _array_dtype(like)), like.device)
                more = missing - len(zeros)
                zeros += [from_array(array, device=like.device) for _ in range(more)]
            padded.append((*zeros[:missing], *steps[name]))
        rec = local.rec
        operation = REGISTRY["lbfgs_direction"]
        found = rec.call(operation, [grad, *padded, steps["H_diag"]])
        found, self._coefficients = cast(tuple[Any, Any], rec.results(found))
        return found

    def keep_coefficients(self, state: dict[str, Any]) -> None:
        """Puts those of the last direction into the optimizer's state."""
        if self._coefficients is not None:
            # Their program has run. Views of them would be events of the next one.
            host, count = self._coefficients._host(), len(self.steps["old_dirs"])
            last = [_placed(value, self._coefficients) for value in host[-count:]]
            state["al"][:count] = last
