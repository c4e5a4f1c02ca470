"""What it costs to read the loss before backward() instead of after the step."""

from ._case import Case, Goal, torch_api
from ._measure import timed_ratio
from ._mlp import LARGE, MEDIUM, SMALL, torch_parts


def torch_program(torch, shape):
    model, optimizer, inputs, labels, loss_function = torch_parts(torch, shape)

    def read_before():
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        value = loss.item()
        loss.backward()
        optimizer.step()
        return value

    def read_after():
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed_ratio(read_before, read_after)


CASES = [
    Case(
        name=str(shape),
        unit="before/after",
        engines=torch_api(torch_program, shape),
        goals=(Goal(1.15),),
    )
    for shape in (SMALL, MEDIUM, LARGE)
]
