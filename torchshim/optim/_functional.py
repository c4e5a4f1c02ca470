"""Optimizers as functions, by the names of their modules: `torch.optim._functional`."""

from __future__ import annotations

from typing import Any

from torchshim.optim._lists import Tensors
from torchshim.optim.adadelta import adadelta as adadelta
from torchshim.optim.adagrad import adagrad as adagrad
from torchshim.optim.adam import adam as adam
from torchshim.optim.adamax import adamax as adamax
from torchshim.optim.adamw import adamw as adamw
from torchshim.optim.asgd import asgd as asgd
from torchshim.optim.nadam import nadam as nadam
from torchshim.optim.radam import radam as radam
from torchshim.optim.rmsprop import rmsprop as rmsprop
from torchshim.optim.rprop import rprop as rprop
from torchshim.optim.sgd import sgd as sgd
from torchshim.optim.sparse_adam import update


def sparse_adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    maximize: bool,
) -> None:
    """One step of `SparseAdam` by sparse gradients, which changes its lists in place.

    `state_steps`: the number of the step for each parameter, beginning with 1.
    Follows ``torch.optim._functional.sparse_adam``.
    """
    options = {"lr": lr, "betas": (beta1, beta2), "eps": eps, "maximize": maximize}
    for p, grad, exp_avg, exp_avg_sq, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True
    ):
        update(p, grad, exp_avg, exp_avg_sq, step, options)
