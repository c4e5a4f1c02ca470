"""`torch.nn.utils.prune`, compared with PyTorch."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case


def prune_of(torch):
    return importlib.import_module(f"{torch.__name__}.nn.utils.prune")


def layer(torch):
    m = torch.nn.Linear(4, 3)
    with torch.no_grad():
        values = torch.tensor([3.0, -1, 4, -1.5, 5, -9, 2, 6, -5.5, 3.5, 8, -7])
        m.weight.copy_(values.reshape(3, 4))
        m.bias.copy_(torch.tensor([1.0, -2, 3]))
    return m


METHODS = {
    "identity": lambda p, m: p.identity(m, "weight"),
    "random": lambda p, m: p.random_unstructured(m, "weight", 0.5),
    "l1": lambda p, m: p.l1_unstructured(m, "weight", amount=5),
    "random channels": lambda p, m: p.random_structured(m, "weight", 0.5, dim=1),
    "channels": lambda p, m: p.ln_structured(m, "weight", amount=1, n=2, dim=0),
    "none": lambda p, m: p.ln_structured(m, "weight", 0.0, float("inf"), -1),
}


@case.over(*METHODS)
def methods(torch, name):
    prune, m = prune_of(torch), layer(torch)
    yield METHODS[name](prune, m) is m
    yield m.weight.detach(), m.weight_mask, [n for n, _ in m.named_parameters()]
    m(torch.ones(1, 4)).sum().backward()
    yield m.weight_orig.grad, prune.is_pruned(m), m.weight_orig.is_leaf
    yield METHODS[name](prune, m).weight_mask
    yield [type(h).__name__ for h in m._forward_pre_hooks.values()]
    yield prune.remove(m, "weight").weight, list(m.state_dict()), prune.is_pruned(m)


@case
def one_after_the_other(torch):
    prune, m = prune_of(torch), layer(torch)
    scores = torch.arange(12.0).reshape(3, 4)
    prune.l1_unstructured(m, "weight", 4, importance_scores=scores)
    yield m.weight_mask
    prune.ln_structured(m, "weight", 1, 1, 0)
    prune.custom_from_mask(m, "weight", torch.eye(3, 4))
    yield m.weight_mask, m.weight.detach()
    (container,) = m._forward_pre_hooks.values()
    yield len(container), [type(x).__name__ for x in container], container[-1].mask
    with torch.no_grad():
        m.weight_orig.fill_(1)
    yield m(torch.ones(1, 4)).detach()
    method = prune.L1Unstructured(0.5)
    yield method.prune(scores), method.prune(scores, importance_scores=-scores + 20)


@case
def over_all(torch):
    prune, m, other = prune_of(torch), layer(torch), layer(torch)
    pairs = [(m, "weight"), (other, "bias"), (m, "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    yield [p.detach() for p in (m.weight, other.bias, m.bias)]
    scores = {(m, "weight"): torch.arange(12.0).reshape(3, 4) + 0.25}
    prune.global_unstructured(tuple(pairs), prune.L1Unstructured, scores, amount=3)
    yield [p.detach() for p in (m.weight, other.bias, m.bias)]
    yield attempt(prune.global_unstructured, 3, prune.L1Unstructured)
    yield attempt(prune.global_unstructured, pairs, prune.L1Unstructured, [])


@case
def a_method_of_ones_own(torch):
    prune, m = prune_of(torch), layer(torch)

    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    EveryOther.apply(m, "weight")
    yield m.weight.detach()
    EveryOther.apply(m, "weight")
    yield m.weight_mask


@case
def errors(torch):
    prune, m = prune_of(torch), layer(torch)
    l1 = prune.l1_unstructured
    for amount in (-1, 1.5, -0.5, "a", 13):
        yield attempt(l1, m, "weight", amount)
    yield list(m.state_dict())
    yield attempt(prune.ln_structured, m, "bias", 1, 2, 0)
    yield attempt(prune.ln_structured, m, "weight", 1, 2, 2)
    yield attempt(prune.random_structured, m, "weight", 4, 0)
    yield attempt(prune.custom_from_mask, m, "weight", torch.ones(2))
    yield attempt(l1, m, "weight", 1, importance_scores=torch.ones(2))
    yield attempt(prune.remove, m, "weight")
    yield attempt(prune.BasePruningMethod)
    container = prune.PruningContainer()
    container._tensor_name = "weight"
    yield attempt(container.add_pruning_method, 3)
    again = layer(torch)
    l1(again, "weight", 2)
    yield attempt(prune.ln_structured, again, "weight", 1, 2, 2)


@case
def amounts_and_norms(torch):
    prune = torch.nn.utils.prune
    for amount, size in ((0.0, 10), (3, 10), (0.56, 100), (1.0, 5), (0.05, 3)):
        yield prune._compute_nparams_toprune(amount, size)
    for amount, size in ((20, 19), (0.3, 0), (3, 4), (1.0, 1)):
        yield attempt(prune._validate_pruning_amount, amount, size)
    yield attempt(prune._validate_structured_pruning, torch.ones(3))
    yield attempt(prune._validate_pruning_dim, torch.ones(3), 2)
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    for n, dim in ((1, 0), (2, 1), ("fro", 0), ("nuc", 0), (float("inf"), -1)):
        yield attempt(prune._compute_norm, x, n, dim)
