"""Where PyTorch's C++ says that it warns: the text of warnings, to the end.

And the modules that warnings are found by.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

from tests.oracle import case

PLACE = re.compile(r"\(Triggered internally at /__w/pytorch/pytorch/([^ )]*)\)$")


def old_calls(torch: Any) -> list[Any]:
    """Calls that warn, each for a reason of its own."""
    x = torch.arange(12.0).view(3, 4) + 0.5
    square, scalar = torch.eye(2), torch.tensor(1.0)
    leaf = torch.ones(1, requires_grad=True)
    bytes_, at = torch.tensor([0, 1, 1, 0], dtype=torch.uint8), torch.tensor([[0]])
    wide = torch.zeros(1)
    F = torch.nn.functional

    class Marks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            made = value.detach() * 2
            ctx.mark_dirty(made)
            return made

        @staticmethod
        def backward(ctx, grad):
            return grad

    return [
        lambda: torch.empty(3).random_(0, 2**40),
        lambda: wide.expand(3).index_put_((at[0],), torch.ones(1)),
        lambda: wide.expand(3).index_fill_(0, at[0], 1.0),
        lambda: wide.expand(3).masked_fill_(at.expand(1, 3)[0] == 1, 1.0),
        lambda: (leaf * 2).grad,
        lambda: (leaf * 2).backward(create_graph=True),
        lambda: x[[slice(0, 1), slice(0, 2)]],
        lambda: x[bytes_[:3]],
        lambda: torch.nn.LSTM(3, 4, proj_size=2)(torch.ones(2, 3, 3)),
        lambda: torch.chain_matmul(x, x.mT),
        lambda: torch.zeros(3, 4).index_reduce_(0, at[0], x[:1], "prod"),
        lambda: torch.zeros(3, 4).scatter(0, at, x, reduce="add"),
        lambda: scalar.T,
        lambda: scalar.mT,
        lambda: scalar.H,
        lambda: scalar.mH,
        lambda: torch.adjoint(scalar),
        lambda: torch.ones(2, 3, 4).T,
        lambda: torch.meshgrid(torch.arange(2), torch.arange(3)),
        lambda: torch._aminmax(x),
        lambda: torch.where(bytes_, x, x),
        lambda: F.conv2d(x[None], torch.ones(1, 1, 2, 2), padding="same"),
        lambda: x.clone().masked_scatter_(bytes_, x),
        lambda: torch.ones(1).std(),
        lambda: torch.var_mean(torch.ones(1, 3), 0),
        lambda: torch.add(x, x, out=torch.ones(2)),
        lambda: torch.addmm(1, square, 1, square, square),
        lambda: Marks.apply(leaf),
        lambda: torch.bucketize(x.mT, torch.tensor([0.0, 1.0])),
        lambda: torch.searchsorted(x.mT.contiguous().mT, x, sorter=x.mT.long().mT * 0),
        lambda: setattr(x, "volatile", True),
        lambda: x.volatile,
    ]


def told(torch: Any, call: Any) -> list[Any]:
    """The category of each warning, and where it says that it comes from."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with contextlib.suppress(RuntimeError):
                call()
    finally:
        torch.set_warn_always(always)
    return [
        (warning.category.__name__, PLACE.findall(str(warning.message)))
        for warning in found
    ]


@case(warnings=False)
def places(torch):
    for call in old_calls(torch):
        yield told(torch, call)


@case(warnings=False)
def places_of_anomalies(torch):
    """An error in a gradient: its line, that of what induced it, or neither known."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clone()

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("no")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clone()

        @staticmethod
        def backward(ctx, grad):
            return Inner.apply(grad)

    def fail(first: bool, second: bool) -> None:
        detect = torch.autograd.set_detect_anomaly
        x, start = (torch.ones(1, requires_grad=True) for _ in range(2))
        with detect(first):
            y = Outer.apply(x)
        with detect(second):
            (grad,) = torch.autograd.grad(y, x, start, create_graph=True)
        with detect(True):
            grad.sum().backward()

    for first in (False, True):
        for second in (False, True):
            yield told(torch, lambda given=(first, second): fail(*given))


# -- modules ---------------------------------------------------------------------------


def left(module, run):
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
            yield run.__name__, module, left(module, run)


@case(warnings=False)
def lines_of_writes_to_expanded_tensors(torch):
    x, at = torch.ones(1, 3).expand(2, 3), torch.tensor([0])
    for call in (
        lambda: x.masked_fill_(x > 0, 1.0),
        lambda: x.index_fill_(0, at, 1.0),
        lambda: x.index_put_((at,), torch.ones(3)),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        yield [w.filename == __file__ for w in told]
