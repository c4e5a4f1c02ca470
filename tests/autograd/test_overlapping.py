"""Writes to views that show an element of memory several times."""

from __future__ import annotations

from tests.oracle import attempt, case


@case(warnings=False)
def expanded_are_written_to(torch):
    """Only by operators that PyTorch lets: several elements are one in memory."""
    base = torch.tensor([1.0, 2.0, 3.0])
    wide = base.expand(2, 3)
    mask = torch.tensor([[True, False, False], [False, False, True]])
    for name, args in {
        "zero_": (),
        "fill_": (4.0,),
        "masked_fill_": (mask, 7.0),
        "index_fill_": (1, torch.tensor([1]), 8.0),
        "index_put_": ((torch.tensor([0]),), torch.tensor(9.0)),
        "tril_": (),
        "triu_": (1,),
        "fill_diagonal_": (3.0,),
        "add_": (1,),
        "mul_": (2.0,),
        "copy_": (torch.ones(2, 3),),
        "put_": (torch.tensor([0]), torch.tensor([1.0])),
        "masked_scatter_": (mask, torch.ones(6)),
        "scatter_": (0, torch.zeros(2, 3, dtype=torch.long), 1.0),
        "clamp_": (0.5,),
        "normal_": (),
    }.items():
        yield name, attempt(getattr(wide, name), *args), base
    yield attempt(wide.__setitem__, ..., 5.0), attempt(wide.__setitem__, 0, 5.0), base
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    wide = y.expand(3)
    yield wide.zero_(), y, type(wide.grad_fn).__name__
    # NumPy shares their memory.
    base = torch.tensor([1.0, 2.0, 3.0])
    wide = base.expand(2, 3)
    array = wide.numpy()
    for fill in 4.0, 5.0:
        wide.fill_(fill).masked_fill_(mask, 7.0)
        yield array.tolist(), base, wide
    array = base.numpy()
    wide.index_fill_(1, torch.tensor([1]), 8.0)
    yield array.tolist(), base, wide


@case.over(shared=[False, True])
def pieces_of_overlapping_views_are_written_to(torch, shared):
    for view in (
        lambda x: x.as_strided((2,), (0,), 0),
        lambda x: x.as_strided((2, 2), (1, 1), 0),
        lambda x: x.unfold(0, 2, 1),
        lambda x: x.view(2, 2).unfold(1, 1, 1),
        lambda x: x.as_strided((2, 3), (0, 1), 1),
        lambda x: x.expand(3, 4),
    ):
        for write in (
            lambda w: w.__setitem__(0, 5),
            lambda w: w.__setitem__(1, 5),
            lambda w: w[0].add_(5),
            lambda w: w[..., 0].add_(5),
            lambda w: w.unbind(0)[0].fill_(6),
            lambda w: torch.add(w.clone()[0], 1, out=w[0]),
            lambda w: w.masked_fill_(torch.arange(w.numel()).view(w.shape) == 1, 9),
            lambda w: w.__setitem__(torch.tensor([0]), 9),
        ):
            x = torch.tensor([0.0, 1.0, float("nan"), 3.0])
            array = x.numpy() if shared else None
            wide = view(x)
            yield attempt(lambda w=wide, write=write: write(w) and None)
            yield x, wide, array if array is None else array.tolist()


@case
def copied_onto_themselves(torch):
    """That is nothing to do, whatever the memory; a copy of other values is refused."""
    for make in (lambda: torch.ones(3), lambda: torch.ones(3, 2).mean(1)):
        for shared in (False, True):
            rows = make().expand(2, 3)
            rows.numpy() if shared else rows.tolist()  # nothing is pending
            yield attempt(rows.copy_, rows), rows._version
            yield attempt(rows.copy_, rows[:]), rows._version
            yield attempt(rows.data.copy_, rows), attempt(rows.detach().copy_, rows)
            yield attempt(rows.copy_, rows + 1), rows._version
