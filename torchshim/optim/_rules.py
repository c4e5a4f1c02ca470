"""Optimizers whose whole step is one recorded operator."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import torchshim
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.placement import put
from torchshim._core.record import local
from torchshim._counter import advance, counts_of
from torchshim._functions.sparse_tensor import flat
from torchshim._tensor import Tensor, from_array
from torchshim.optim.optimizer import (
    Optimizer,
    _device_dtype_check_for_fused,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _use_grad_for_differentiable,
    evaluate,
)


def _copied(function: Any) -> Any:
    """A function that does the same."""
    code, space, name = function.__code__, function.__globals__, function.__name__
    return types.FunctionType(
        code, space, name, function.__defaults__, function.__closure__
    )


class RuleOptimizer(Optimizer):
    """Collects what an update rule of `_ops.optimizer` needs, and writes it back."""

    # The operator, whether `state["step"]` counts, and the formula depends on it.
    _rule: str
    _counts = True
    _by_step = True
    # What PyTorch says of `capturable`, without and with `foreach`: the tensors that
    # have to be on an accelerator, and whether XLA's devices count as one.
    _captured = ("params and state_steps",) * 2
    _on_xla = (True, False)
    # Whether `foreach` and `differentiable` go together.
    _foreach_tracks = False
    # Whether parameters have some of the states only.
    _some = False
    # Options of groups that state dicts of older versions lack.
    _later_options: Mapping[str, Any] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Each optimizer has a `step` of its name, which errors of hooks show."""
        super().__init_subclass__(**kwargs)
        if RuleOptimizer in cls.__bases__ and "step" not in vars(cls):
            step = functools.wraps(RuleOptimizer.step)(_copied(RuleOptimizer.step))
            step.__qualname__ = f"{cls.__name__}.step"
            cls.step = step

    def _names(self, group: dict[str, Any]) -> Sequence[str | None]:
        """State tensors in the order of the rule; None where this group has none."""
        raise NotImplementedError

    def _numbers(self, group: dict[str, Any], step: Any) -> Sequence[Any]:
        """What the rule takes after the lists of tensors."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for option, default in self._later_options.items():
                group.setdefault(option, default)
            if self._counts:
                self._numbers_as_tensors(group)

    def _numbers_as_tensors(self, group: dict[str, Any]) -> None:
        """Older state dicts hold plain numbers where there are tensors now."""
        for p in group["params"]:
            state = self.state.get(p, {})
            for name in ("step", "mu_product", "eta", "mu"):
                value = state.get(name)
                if value is not None and not isinstance(value, Tensor):
                    state[name] = number_tensor(group, p, value)

    def _init_state(self, group: dict[str, Any], p: Any, state: dict[str, Any]) -> None:
        """Fills the empty state of a parameter that has a gradient at last."""
        if self._counts:
            state["step"] = number_tensor(group, p, 0.0)
        for name in self._names(group):
            if name is not None:
                state[name] = zeros_like(p)

    @_use_grad_for_differentiable
    def step(self, closure: Any = None) -> Any:
        """Moves the parameters once; `closure` computes the loss anew.

        Follows ``torch.optim.Optimizer.step``.
        """
        loss = evaluate(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        names = self._names(group)
        kept = names.count(None) < len(names)
        # Each read once: another thread may forget it meanwhile.
        found = [(p, g) for p in group["params"] if (g := p._grad) is not None]
        params, grads = [p for p, _ in found], [g for _, g in found]
        states: list[dict[str, Any]] = [self.state[p] if kept else {} for p in params]
        variants: list[Any] = [None] * len(params)
        if kept:
            if not all(states):
                for p, state in zip(params, states, strict=True):
                    if not state:
                        self._check(group, p)
                        made: dict[str, Any] = {}
                        self._init_state(group, p, made)
                        state.update(made)  # at once: Ctrl-C leaves all or nothing
            variants = self._variants(params, states)
        rule = REGISTRY[self._rule]
        for variant, moved, slopes, theirs in _alike(variants, params, grads, states):
            columns = [tuple(moved), tuple(slopes)]
            targets = list(moved)
            for name in names:
                if name is None:
                    columns.append((None,) * len(moved))
                    continue
                column = tuple([state.get(name) for state in theirs])
                columns.append(column)
                if column[0] is not None:
                    targets += column
                elif not self._some:
                    check_states(names, theirs)
            numbers = self._numbers(group, variant)
            if not group.get("differentiable"):
                try:
                    local.rec.mutate(rule, [*columns, *numbers], targets)
                except NotImplementedError:
                    # Not asked for before, which would cost every step.
                    if not any(g._composed for g in columns[1]):
                        raise
                    self._check_sparse(group)
                    self._move_sparsely(rule, columns, numbers)
                except (AttributeError, TypeError):
                    check_states(names, theirs)
                    raise
                continue
            if group.get("foreach") and not self._foreach_tracks:
                raise AssertionError("_foreach ops don't support autograd")
            self._tracked(columns, numbers, targets)
        if kept and self._counts:
            advance([state["step"] for state in states])

    def _rule_of_rows(self, numbers: Sequence[Any]) -> tuple[str, Sequence[Any]] | None:
        """The rule for sparse gradients, and its numbers, where there is one."""
        return None

    def _move_sparsely(self, rule: Any, columns: Any, numbers: Sequence[Any]) -> None:
        """A step with gradients some of which are sparse."""
        rows = self._rule_of_rows(numbers)
        if any(p._composed for p in columns[0]):
            kind = type(self).__name__
            raise NotImplementedError(f"{kind} does not support sparse parameters")
        sparse = [g._composed and rows is not None for g in columns[1]]
        others = [not each for each in sparse]
        dense = [list(itertools.compress(c, others)) for c in columns]
        if dense[0]:
            dense[1] = [densified(g) for g in dense[1]]
            _mutate(rule, dense, numbers)
        if rows is not None:
            named = [list(itertools.compress(c, sparse)) for c in columns]
            params, grads, *states = named
            indices, values = zip(*map(flat, grads), strict=True)
            kept = [column for column in states if column[0] is not None]
            _mutate(REGISTRY[rows[0]], [params, indices, values, *kept], rows[1], 3)

    def _tracked(self, columns: Any, numbers: Any, targets: Sequence[Any]) -> None:
        """The step as something that gradients flow through."""
        rec = local.rec
        for target in targets:
            rec.check_writable(target)
        # Of clones, since what backward needs is overwritten right here.
        copies = [tuple(t if t is None else t.clone() for t in c) for c in columns]
        state = rec.call(REGISTRY[f"{self._rule}_tracked"], [*copies, *numbers])
        for target, new in zip(targets, rec.results(state), strict=True):
            rec.write(target, new)

    def _variants(self, params: list[Any], states: list[dict[str, Any]]) -> list[Any]:
        """What the formula depends on, for each parameter: the number of this step."""
        if not self._by_step:
            return [None] * len(params)
        return [n + 1.0 for n in counts_of([state["step"] for state in states])]

    def _check_sparse(self, group: dict[str, Any]) -> None:
        """Raises where sparse gradients are not taken: nearly everywhere."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _check_fused(self, group: dict[str, Any]) -> None:
        """For optimizers whose steps need no state that would be checked when made."""
        if group["fused"]:
            for p in group["params"]:
                if p.grad is not None:
                    self._check(group, p)

    def _check(self, group: dict[str, Any], p: Any) -> None:
        if group.get("fused"):
            _device_dtype_check_for_fused(p)
        if group.get("capturable") and not group.get("fused"):
            foreach = bool(group.get("foreach"))
            supported = _get_capturable_supported_devices(self._on_xla[foreach])
            if p.device.type not in supported:
                raise AssertionError(
                    f"If capturable=True, {self._captured[foreach]} must be on "
                    f"supported devices: {supported}."
                )


def _mutate(rule: Any, columns: Any, numbers: Any, first: int = 2) -> None:
    """A step of these parameters; states are the columns from the `first` on."""
    states = [c for c in columns[first:] if c[0] is not None]
    targets = [t for column in (columns[0], *states) for t in column]
    local.rec.mutate(rule, [*map(tuple, columns), *numbers], targets)


def _alike(
    variants: list[Any], params: list[Any], grads: list[Any], states: list[Any]
) -> list[tuple[Any, list[Any], list[Any], list[Any]]]:
    """Each variant of the formula with its parameters, of one device, and theirs."""
    devices = [p._tmeta.device for p in params]
    n = len(params)
    if n and variants.count(variants[0]) == devices.count(devices[0]) == n:
        return [(variants[0], params, grads, states)]
    found: dict[Any, tuple[Any, list[Any], list[Any], list[Any]]] = {}
    for *kind, param, grad, state in zip(
        variants, devices, params, grads, states, strict=True
    ):
        _, *lists = found.setdefault(tuple(kind), (kind[0], [], [], []))
        for each, value in zip(lists, (param, grad, state), strict=True):
            each.append(value)
    return list(found.values())


def check_states(names: Sequence[str | None], states: Sequence[dict[str, Any]]) -> None:
    """Raises for a state that is missing, or no tensor."""
    for name in names:
        if name is None:
            continue
        for state in states:
            value = state[name]
            if not isinstance(value, Tensor):
                kind = type(value).__name__
                raise AttributeError(f"'{kind}' object has no attribute 'mul_'")


def densified(grad: Any) -> Any:
    """A gradient with all its elements; they are fewer in a sparse one."""
    return grad.to_dense() if grad._composed else grad


def number(value: Any) -> Any:
    """A hyperparameter as a rule takes it: a float, or a 0-dim tensor."""
    if isinstance(value, Tensor):
        return value if not value._tmeta.shape else value.squeeze()
    return float(value)


def decay(value: Any) -> Any:
    """A weight decay: None where there is none, which leaves it out of the program."""
    if isinstance(value, Tensor):
        return number(value)
    return float(value) if value != 0 else None


def zeros_like(p: Any, arranged: Any = None) -> Tensor:
    """The initial state tensor of a parameter, made at once.

    As an array rather than an event, so that the first step has the program of all
    later ones. `arranged` is the tensor whose strides it has, if not the parameter.
    """
    return full_like(p, 0, arranged)


def full_like(p: Any, value: float, arranged: Any = None) -> Tensor:
    """As `zeros_like`, filled with a number; of complex parameters in both parts."""
    meta = p._tmeta
    if arranged is not None and not arranged._composed:
        meta = meta.replace(strides=arranged._tmeta.strides)
    if torchshim.is_complex(p):  # (A function, which an uninitialized one refuses.)
        value = complex(value, value)  # type: ignore[assignment]
    if meta.device.type == "meta":
        array: Any = NoData(meta.shape, meta.dtype.np)
    else:
        with jax.enable_x64(True):
            filled = np.full(meta.shape, value, meta.dtype.np)
            array = put(filled, meta.device)
    tensor = from_array(array, device=meta.device)
    if 0 not in meta.strides:
        tensor._tmeta = meta.replace(requires_grad=False, leaf=True, offset=0)
    return tensor


def number_tensor(group: dict[str, Any], p: Any, value: float) -> Tensor:
    """A 0-dim state tensor, which is on the host unless the step is to be captured."""
    on_device = group.get("capturable") or group.get("fused")
    return torchshim.tensor(
        float(value),
        dtype=_get_scalar_dtype(group.get("fused")),
        device=p.device if on_device else "cpu",
    )


def check_lr(lr: Any, allow_nan: bool = False) -> None:
    """Raises for a learning rate that is negative, or a tensor of several numbers."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if lr < 0.0 if allow_nan else not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_positive(**values: float) -> None:
    """Raises for hyperparameters below zero."""
    for name, value in values.items():
        if not 0.0 <= value:
            name = "epsilon" if name == "eps" else name
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Raises for decay rates outside [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(fused: Any, differentiable: bool, foreach: Any) -> None:
    """Raises for flags that exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
