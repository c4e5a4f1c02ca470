"""States of optimizers that do not fit their parameters: refused and left alone."""

from __future__ import annotations

from typing import Any

import pytest

import torchshim
from tests.oracle import attempt, case

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "Rprop": {},
    "Adafactor": {},
    "Muon": {},
}


def stepped(torch: Any, name: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    p = torch.nn.Parameter(torch.ones(shape))
    p.grad = torch.ones(shape)
    optimizer = getattr(torch.optim, name)([p], lr=0.1, **OPTIMIZERS[name])
    optimizer.step()
    return p, optimizer


@case.over(*OPTIMIZERS)
def shapes(torch, name):
    for key in stepped(torch, name)[1].state_dict()["state"][0]:
        for shape in ((), (1,), (3, 2), (1, 3), (2, 3, 1)):
            p, optimizer = stepped(torch, name)
            given = optimizer.state[p][key] = torch.full(shape, 2.0)
            found = attempt(optimizer.step)
            if name == "Rprop" and isinstance(found, Exception):
                found, p = type(found), None  # PyTorch has done half of the step
            yield key, shape, found, given.shape, given.dtype, p


@case.over(*OPTIMIZERS)
def missing(torch, name):
    for key in stepped(torch, name)[1].state_dict()["state"][0]:
        if name in ("SGD", "Adafactor"):  # may be missing, or say what is there
            continue
        p, optimizer = stepped(torch, name)
        del optimizer.state[p][key]
        yield attempt(optimizer.step)


@case.over(*OPTIMIZERS)
def dtypes(torch, name):
    for key in stepped(torch, name)[1].state_dict()["state"][0]:
        if key in ("exp_avg", "grad_avg", "row_var", "col_var") or name == "Muon":
            continue  # averages made by lerp_ want the dtype of the gradient
        if key in ("prev", "mu_product"):  # written by copy_; multiplied on the host
            continue
        for dtype in (torch.float64, torch.int64):
            p, optimizer = stepped(torch, name)
            old = optimizer.state[p][key]
            given = optimizer.state[p][key] = torch.ones_like(old, dtype=dtype)
            found = attempt(optimizer.step)
            yield key, found, given.dtype


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("given", [3, None, "x", [1.0]])
def test_what_is_no_tensor(name, given):
    for key in stepped(torchshim, name)[1].state_dict()["state"][0]:
        p, optimizer = stepped(torchshim, name)
        if given is None and (name == "SGD" or key in ("row_var", "col_var")):
            continue
        optimizer.state[p][key] = given
        with pytest.raises((AttributeError, RuntimeError)) as raised:
            optimizer.step()
        assert "_slot" not in str(raised.value)
        assert "_array" not in str(raised.value)
        assert "racer" not in str(raised.value)


@case
def parameters_of_other_shapes(torch):
    _, optimizer = stepped(torch, "Adam")
    state = optimizer.state_dict()
    other = torch.nn.Parameter(torch.ones(3, 3))
    other.grad = torch.ones(3, 3)
    optimizer = torch.optim.Adam([other], lr=0.1, amsgrad=True)
    optimizer.load_state_dict(state)
    yield attempt(optimizer.step)
    yield other, optimizer.state[other]["exp_avg"]
    optimizer.state[other]["exp_avg"] = torch.zeros(3, 3)
    yield attempt(optimizer.step)


@case.over(*OPTIMIZERS, "AdamW", "RAdam", "ASGD")
def strides(torch, name):
    """States lie in memory as the parameter does, or the gradient, and stay so."""
    if name == "Muon":  # takes matrices
        return
    for p_last in (True, False):
        for grad_last in (True, False):
            p = torch.ones(4, 3, 2, 2)
            grad = torch.full((4, 3, 2, 2), 0.1)
            if p_last:
                p = p.to(memory_format=torch.channels_last)
            if grad_last:
                grad = grad.to(memory_format=torch.channels_last)
            p = torch.nn.Parameter(p)
            options = OPTIMIZERS.get(name, {})
            optimizer = getattr(torch.optim, name)([p], lr=0.1, **options)
            for _ in range(2):
                p.grad = grad.clone()
                torch.nn.utils.clip_grad_norm_([p], 0.5)
                optimizer.step()
                yield p, p.stride(), p.grad.stride()
                for key, value in optimizer.state[p].items():
                    yield key, value.shape, value.stride()
