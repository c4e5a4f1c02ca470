"""Tensors of nested lists of which some are empty."""

from __future__ import annotations

from tests.oracle import attempt, case

LISTS = [
    *(
        [],
        [[]],
        [[], []],
        [[], [1]],
        [[], [True]],
        [[], [1.5]],
        [[], [1j]],
        [[], [1, 2]],
    ),
    *([[1], []], [[], [], [1]], [(), (1,)], [[], 1], [[1], 2], [1, []], [[[]], [[1]]]),
]


@case.over({str(number): values for number, values in enumerate(LISTS)})
def lists(torch, values):
    yield attempt(torch.tensor, values), attempt(torch.as_tensor, values)
    yield attempt(torch.tensor, values, dtype=torch.int32)


@case
def sizes_as_text(torch):
    yield f"{torch.Size([1, 2])}", format(torch.Size([1])), str(torch.Size([]))
    error = attempt(format, torch.Size([1]), ">5")
    yield type(error).__name__, str(error)
