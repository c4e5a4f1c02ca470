"""Arguments by position that the functions' usual forms take by keyword, or as one."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

CALLS = ("x, 2, 3", "x, 0.5, 3", "x, x, 3", "x, 2, 3, 4", "x, 2, 3, out=x", "x, 2, x")


@case.over(name=("subtract", "sub", "rsub", "add"), call=CALLS[:4])
def factors(torch, name, call):
    def given(torch):
        return {"x": torch.arange(1.0, 4.0)}

    yield attempt(evaluate, torch, f"torch.{name}({call})", **given(torch))
    if name != "rsub":
        call = call.removeprefix("x, ")
        yield attempt(evaluate, torch, f"x.{name}({call})", **given(torch))
        yield attempt(evaluate, torch, f"x.{name}_({call})", **given(torch))


@case.over("subtract", "sub", "add")
def factors_and_out(torch, name):
    for call in CALLS[4:]:
        x = torch.arange(1.0, 4.0)
        yield attempt(evaluate, torch, f"torch.{name}({call})", x=x)


@case
def factors_with_gradients(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for made in (torch.subtract(x, 2, 3), torch.rsub(x, 0.5, 3), x.subtract(1, 2)):
        made.sum().backward()
        yield made.detach(), x.grad
    yield attempt(torch.tensor([1, 2]).subtract, 1, True)


@case.over(
    name=("hsplit", "vsplit", "dsplit"),
    call=("1, 1", "0, 1", "0, 1, 1", "i, i", "", "True", "1, (1,)", "sections=2"),
)
def places(torch, name, call):
    names = {"x": torch.arange(8.0).view(2, 2, 2), "i": torch.tensor(1)}
    yield attempt(evaluate, torch, f"x.{name}({call})", **names)
    if call:
        yield attempt(evaluate, torch, f"torch.{name}(x, {call})", **names)


@case
def sections_by_truth(torch):
    yield attempt(torch.ones(2).tensor_split, True)
