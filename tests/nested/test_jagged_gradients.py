"""Gradients that PyTorch refuses or gets wrong: as those of padded tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchshim as torch

PARTS = [torch.arange(6.0).view(2, 3) - 2, torch.arange(9.0).view(3, 3) / 2]
MASK = torch.tensor([[[True], [True], [False]], [[True]] * 3])


def padded_of(values: Any) -> Any:
    """The values of `PARTS` as rows of a padded tensor."""
    return torch.stack([torch.cat([values[:2], torch.zeros(1, 3)]), values[2:]])


def in_rows(padded: Any) -> Any:
    """What a padded tensor has where `PARTS` have elements."""
    mask = MASK if padded.ndim == 3 else MASK[..., 0]
    return padded.masked_select(mask).view(5, *padded.shape[2:])


LENGTHS = torch.tensor([[2.0], [3.0]])
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum of the ragged": (lambda x: x.sum(1), lambda p: p.sum(1)),
    "mean of the ragged": (lambda x: x.mean(1), lambda p: p.sum(1) / LENGTHS),
    "sum of the last": (lambda x: x.sum(-1).values(), lambda p: in_rows(p.sum(-1))),
    "spread": (
        lambda x: (x * x.sum(-1, keepdim=True)).values(),
        lambda p: in_rows(p * p.sum(-1, keepdim=True)),
    ),
    "a column": (lambda x: x[..., 1].values(), lambda p: in_rows(p[..., 1])),
    "greatest": (lambda x: x.amax(1), lambda p: p.masked_fill(~MASK, -9).amax(1)),
    "softmax of the ragged": (
        lambda x: x.softmax(1).values(),
        lambda p: in_rows(p.masked_fill(~MASK, float("-inf")).softmax(1)),
    ),
    "turned": (
        lambda x: x.transpose(1, 2).clone().values().t(),
        lambda p: in_rows(p),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    nested, dense = CASES[name]
    x = torch.nested.nested_tensor(PARTS, layout=torch.jagged, requires_grad=True)
    made = nested(x)
    weights = torch.arange(1.0, made.numel() + 1).view(made.shape)
    (made * weights).sum().backward()
    values = torch.cat(PARTS).requires_grad_()
    (dense(padded_of(values)) * weights).sum().backward()
    torch.testing.assert_close(x.grad.values(), values.grad)


def heads() -> list[Any]:
    torch.manual_seed(0)
    return [[torch.randn(n, 2, 4) for n in (3, 1, 4)] for _ in range(3)]


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_each(is_causal: bool) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    leaves = [
        torch.nested.nested_tensor(given, layout=torch.jagged, requires_grad=True)
        for given in heads()
    ]
    made = attend(*(x.transpose(1, 2) for x in leaves), is_causal=is_causal)
    made.transpose(1, 2).values().square().sum().backward()
    alone = [[part.requires_grad_() for part in given] for given in heads()]
    for i, found in enumerate(made.unbind()):
        q, k, v = (given[i].transpose(0, 1) for given in alone)
        expected = attend(q, k, v, is_causal=is_causal)
        torch.testing.assert_close(found, expected)
        expected.square().sum().backward()
    for leaf, given in zip(leaves, alone, strict=True):
        grads = torch.cat([part.grad for part in given])
        torch.testing.assert_close(leaf.grad.values(), grads)


def test_attention_with_dropout_keeps_the_structure() -> None:
    q, k, v = (
        torch.nested.nested_tensor(given, layout=torch.jagged).transpose(1, 2)
        for given in heads()
    )
    attend = torch.nn.functional.scaled_dot_product_attention
    made = attend(q, k, v, dropout_p=0.5)
    assert made.shape == q.shape
    assert (made.values() != attend(q, k, v).values()).any()


def test_gradient_of_what_was_written() -> None:
    part = torch.ones(2, 3, requires_grad=True)
    x = torch.nested.nested_tensor(PARTS, layout=torch.jagged, requires_grad=True)
    y = x * 2
    y[0] = part * 3
    assert y.requires_grad
    z = x.detach() * 1
    z[..., 0].mul_(part.sum())
    assert z.requires_grad and not z.is_leaf and z.grad_fn is not None
    assert "grad_fn" in str(z)
    y.values().square().sum().backward()
    torch.testing.assert_close(part.grad, torch.full((2, 3), 18.0))
    expected = torch.cat([torch.zeros(2, 3), PARTS[1] * 8])
    torch.testing.assert_close(x.grad.values(), expected)


def test_a_table_learns() -> None:
    index = torch.nested.nested_tensor([[1, 2], [3, 1, 5]], layout=torch.jagged)
    table = torch.nn.Embedding(6, 2)
    opt = torch.optim.SGD(table.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        opt.zero_grad()
        loss = table(index).mean(1).square().sum()
        loss.backward()
        opt.step()
        losses.append(float(loss.detach()))
    assert losses == sorted(losses, reverse=True)
    assert table.weight.grad[0].abs().sum() == 0


def test_steady_steps_record_nothing_new() -> None:
    from torchshim._core.program import LOG

    layer = torch.nn.Linear(3, 3)
    opt = torch.optim.SGD(layer.parameters(), lr=0.01)
    x = torch.nested.nested_tensor(PARTS, layout=torch.jagged)
    counts = []
    for _ in range(6):
        opt.zero_grad()
        layer(x).softmax(1).to_padded_tensor(0.0).square().sum().backward()
        opt.step()
        float(layer.weight.detach().sum())
        counts.append(len(LOG))
    assert counts[3] == counts[-1]
