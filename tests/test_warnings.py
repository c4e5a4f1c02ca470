"""Warnings are found by the names of PyTorch's modules."""

from __future__ import annotations

import warnings

from tests.oracle import case


def told(module, run):
    """How many warnings there are, with those of a module left out."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=module)
        run()
    return len(found)


@case
def filters_by_module(torch):
    nn = torch.nn
    x = torch.ones(2, 3)

    def with_dropout():
        nn.LSTM(3, 3, dropout=0.5)

    def many_workers():
        torch.utils.data.DataLoader([1], num_workers=999)

    def other_shapes():
        nn.MSELoss()(x, x[:1])

    def old_arguments():
        nn.MSELoss(size_average=True)

    def nothing_to_do():
        nn.init.zeros_(torch.ones(0))
        nn.init.kaiming_normal_(torch.ones(0, 3))

    def clipped():
        nn.utils.clip_grad_norm_(iter([]), 1.0)

    def of_the_user():
        warnings.warn("mine", stacklevel=1)

    for run in (
        with_dropout,
        many_workers,
        other_shapes,
        old_arguments,
        nothing_to_do,
        clipped,
        of_the_user,
    ):
        for module in (
            r"torch\.",
            "torch.nn",
            "torch.nn.modules.rnn",
            "tests",
            "nothing",
        ):
            yield run.__name__, module, told(module, run)
