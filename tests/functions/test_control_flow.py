"""Functions chosen and repeated by values: `cond`, `while_loop`, `scan`, `map`."""

from __future__ import annotations

import pytest

from tests.oracle import attempt, case, evaluate

NAMES = "cond while_loop scan map associative_scan".split()


def shown(torch, line):
    from importlib import import_module

    hops = import_module(f"{torch.__name__}._higher_order_ops")
    names = {f"_{name}": getattr(hops, name) for name in NAMES}
    return evaluate(torch, line, x=torch.arange(6.0).view(3, 2), **names)


@case(stride=True).lines("""
torch.while_loop(lambda i, y: i.sum() < 5, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x))
torch.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 2), (0, x))
torch.while_loop(lambda i: i < 0, lambda i: (i + 1,), (torch.tensor(0),))
torch.while_loop(lambda d: d["a"] < 5, lambda d: ({"a": d["a"] + 1},), ({"a": torch.tensor(0)},))
_while_loop(lambda i: i < 5, lambda i: (i + 1,), [torch.tensor(0)])
torch.while_loop(lambda i: i < 5, lambda i: i + 1, (torch.tensor(0),))
torch.while_loop(3, lambda i: (i + 1, i), (torch.tensor(0),))
y = x.clone().requires_grad_(); torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), (torch.tensor(0), y))[1].sum().backward(); y.grad
torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (x,))
_cond(torch.tensor(False), lambda x: x + 1, lambda x: x - 1, [x])
torch.cond(torch.tensor(True), lambda: torch.ones(2), lambda: torch.zeros(2))
torch.cond(torch.tensor([True, False]), lambda x: x + 1, lambda x: x - 1, (x,))
torch.cond(torch.tensor(True), 3, lambda x: x - 1, (x,))
torch.cond(torch.tensor(True), lambda x: x, lambda x: x - 1, (3,))
torch.cond(torch.tensor(True), lambda x: x, lambda x: x - 1, 3)
_scan(lambda c, x: (c + x, c * x), torch.zeros(2), x)
_scan(lambda c, x: (c + x, c + x), torch.zeros(2), x, dim=0, reverse=True)
_scan(lambda c, x: (c + x, c + x), torch.zeros(3), x, dim=1)
_scan(lambda c, x: (c + x, c + x), torch.zeros(3), x, dim=-1)
_scan(lambda c, x: (c + x, {"a": c + x}), torch.zeros(2), x)
_scan(lambda c, x: ([c[0] + x["a"]], c[0] * x["b"]), [torch.zeros(2)], {"a": x, "b": x + 1})
_scan(3, torch.zeros(2), x)
_scan(lambda c, x: (c, x), torch.zeros(2), x, dim=5)
_scan(lambda c, x: (c, x), [], x, dim=0)
_scan(lambda c, x: (c, x), 3, x, dim=0)
_scan(lambda c, x: (c, x), torch.zeros(2), torch.zeros(0, 2))
_scan(lambda c, x: (c, x), torch.zeros(2), x, reverse=3)
_map(lambda x: x + 1, x)
_map(lambda x, y: x + y, x, torch.ones(2))
_map(lambda x: {"a": x + x}, x)
_map(lambda x: x["a"] + x["b"], {"a": x, "b": x + 1})
_map(lambda x: x, 3)
_map(lambda x: x, torch.ones(0, 2))
_map(lambda x: x["a"], {"a": x, "b": x[:1]})
_associative_scan(torch.maximum, x, 0, combine_mode="generic")
""")  # noqa: E501
def control_flow(torch, line):
    return shown(torch, line)


@case(message=False, warnings=False)
def refused(torch):
    """PyTorch's compiler tells these; its errors are of classes of its own."""
    i = torch.tensor(0)
    for cond, body in (
        (lambda i: i < 5, lambda i: (i + 1.5,)),
        (lambda i: i < 5, lambda i: (i + 1, i + 1)),
        (lambda i: torch.tensor([True, False]), lambda i: (i + 1,)),
        (lambda i: "a", lambda i: (i + 1,)),
    ):
        found = attempt(torch.while_loop, cond, body, (i,))
        yield isinstance(found, RuntimeError)


@case
def cond_of_each_example(torch):
    """Under `vmap` each example has its own; PyTorch takes one result alone there."""

    def chosen(a):
        return torch.cond(a.sum() > 0, torch.sin, torch.cos, (a,))

    x = torch.arange(6.0).view(3, 2) - 2
    yield torch.vmap(chosen)(x), torch.vmap(chosen, 1, 1)(x)


def test_cond_of_each_example_by_other_predicates():
    import torchshim as torch

    def chosen(a, pred):
        return torch.cond(pred, torch.sin, torch.cos, (a,))

    x = torch.arange(6.0).view(3, 2) - 2
    nested = torch.vmap(torch.vmap(chosen))(x, x > 0)
    torch.testing.assert_close(nested, torch.where(x > 0, x.sin(), x.cos()))
    numbers = torch.vmap(chosen, (None, 0))(x, torch.tensor([2, 0]))
    torch.testing.assert_close(numbers, torch.stack([x.sin(), x.cos()]))
    shared = torch.vmap(chosen, (0, None))(x, torch.tensor(False))
    torch.testing.assert_close(shared, x.cos())


def test_cond_of_each_example_gives_trees_and_gradients():
    import torchshim as torch

    def pair(a):
        def yes(a):
            return {"a": a.sin(), "b": [a * 2]}

        def no(a):
            return {"a": a.cos(), "b": [a * 3]}

        return torch.cond(a.sum() > 0, yes, no, (a,))

    x = torch.arange(6.0).view(3, 2) - 2
    found = torch.vmap(pair)(x)
    expected = [pair(each) for each in x]
    assert torch.equal(found["a"], torch.stack([each["a"] for each in expected]))
    assert torch.equal(found["b"][0], torch.stack([each["b"][0] for each in expected]))
    gradients = torch.vmap(torch.func.grad(lambda a: pair(a)["a"].sum()))(x)
    signs = x.sum(1, keepdim=True) > 0
    torch.testing.assert_close(gradients, torch.where(signs, x.cos(), -x.sin()))
    with pytest.raises(RuntimeError, match="same tree of tensors"):
        torch.vmap(lambda a: torch.cond(a.sum() > 0, torch.sin, lambda a: (a,), (a,)))(
            x
        )
