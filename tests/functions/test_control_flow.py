"""Functions chosen and repeated by values: `cond`, `while_loop`, `scan`, `map`."""

from __future__ import annotations

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
