"""`nn.utils`: gradients clipped, parameters as vectors."""

from __future__ import annotations

import math
from typing import Any

from tests.oracle import attempt, case


def parameters(torch: Any, dtype: Any = None) -> list[Any]:
    made = []
    for values in ([3.0, -4.0], [[1.0], [2.0]], [5.0]):
        p = torch.nn.Parameter(torch.zeros_like(torch.tensor(values, dtype=dtype)))
        p.grad = torch.tensor(values, dtype=dtype)
        made.append(p)
    made[2].grad = None
    return made


@case.over(2, 1, 3.5, 0, math.inf, -math.inf)
def norms(torch, order):
    utils = torch.nn.utils
    params = parameters(torch)
    grad = params[0].grad
    yield utils.clip_grad_norm_(params, 2.0, norm_type=order)
    yield [p.grad for p in params], grad is params[0].grad
    yield utils.clip_grad_norm_(params, 1000.0, order), [p.grad for p in params]
    yield utils.get_total_norm([p.grad for p in params[:2]], order)


@case
def clipping(torch):
    utils = torch.nn.utils
    params = parameters(torch)
    yield utils.clip_grad_norm_(params[0], 1), params[0].grad
    yield utils.clip_grad_norm_([], 1.0), utils.clip_grad_norm_(iter(params), 1.0)
    yield utils.clip_grad_norm_((p for p in []), 1.0)
    yield utils.clip_grad_norm(params, 0.5), params[0].grad
    utils.clip_grad_norm_([params[0], params[1], params[0]], 0.5)
    yield params[0].grad, params[1].grad
    utils.clip_grads_with_norm_(params, 1.0, torch.tensor(4.0))
    yield params[1].grad
    params[0].grad = torch.tensor([math.inf, 1.0])
    yield attempt(utils.clip_grad_norm_, params, 1.0, error_if_nonfinite=True)
    yield utils.clip_grad_norm_(params, 1.0), [p.grad for p in params]
    params = parameters(torch, torch.float64)
    yield utils.clip_grad_norm_(params, 1.0), params[0].grad
    params = parameters(torch, torch.bfloat16)
    yield utils.clip_grad_norm_(params, 1.0), params[0].grad
    params = parameters(torch, torch.complex64)
    yield utils.clip_grad_norm_(params, 1.0), params[0].grad
    params = parameters(torch)
    utils.clip_grad_value_(params, 2)
    yield [p.grad for p in params]
    utils.clip_grad_value_(params[0], 1.5)
    yield params[0].grad
    for none in ([], params[2], params[2:]):
        yield attempt(utils.clip_grad_value_, none, 1.0)
        yield attempt(utils.clip_grad_value_, none, 1.0, foreach=False)
        yield attempt(utils.clip_grad_norm_, none, 1.0)


@case
def vectors(torch):
    utils = torch.nn.utils
    params = parameters(torch)
    utils.vector_to_parameters(torch.arange(5.0), params)
    yield [p.detach() for p in params], [p.requires_grad for p in params]
    vector = utils.parameters_to_vector(params)
    yield vector.detach(), vector.requires_grad
    yield attempt(utils.vector_to_parameters, [1.0], params)
