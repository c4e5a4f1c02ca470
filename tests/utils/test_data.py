"""`torch.utils.data`, compared with PyTorch: batches, errors and random order."""

from __future__ import annotations

import collections
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, case
from torchshim._core import stepwise
from torchshim._core.program import CACHE


def scope(torch: Any) -> dict[str, Any]:
    """Names for the lines below."""
    data = torch.utils.data

    class Squares(data.Dataset):
        def __init__(self, n: int = 5) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

        def __getitem__(self, index: int) -> int:
            return index**2

    class Batched(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [-i for i in indices]

    class Broken(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [0]

    class Stream(data.IterableDataset):
        def __init__(self, n: int = 5) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

        def __len__(self) -> int:
            return self.n

        def __repr__(self) -> str:
            return "Stream"

    return {
        "torch": torch,
        "np": np,
        "Squares": Squares,
        "Batched": Batched,
        "Broken": Broken,
        "Stream": Stream,
        "x": torch.arange(10.0).reshape(5, 2),
        "y": torch.arange(5),
        **{name: getattr(data, name) for name in data.__all__ if name[0] != "_"},
    }


def run(torch: Any, line: str) -> Any:
    return attempt(eval, line, scope(torch))


# Data sets


@case.lines("""
    Dataset()[0]
    Squares()[3], len(Squares())
    list(Squares() + Squares())[:6]
    (Squares() + Squares() + [7])[10]
    Stream() + Stream(2)
    list(Stream() + Stream(2))
    len(Stream() + Stream(2))
    list(ChainDataset([Stream(), Squares()]))
    len(ChainDataset([Squares()]))
    ConcatDataset([])
    ConcatDataset([Stream()])
    ConcatDataset([Squares(), [1, 2]]).cumulative_sizes
    ConcatDataset([Squares(), [1, 2]]).cummulative_sizes
    [ConcatDataset([Squares(), [1, 2]])[i] for i in (0, 4, 5, 6, -1, -2, -7)]
    ConcatDataset([Squares(), [1, 2]])[7]
    ConcatDataset([Squares(), [1, 2]])[-8]
    ConcatDataset([[], [1], [], [2]])[1]
    ConcatDataset.cumsum([[1], [2, 3]])
    len(ConcatDataset(Squares(n) for n in (1, 2)))
    TensorDataset(x, y)[3]
    TensorDataset(x, y)[-1]
    TensorDataset(x, y)[1:3]
    TensorDataset(x, y)[[0, 2]]
    TensorDataset(x, y)[torch.tensor([True, False, True, False, False])]
    TensorDataset(x, y)[5]
    len(TensorDataset(x))
    TensorDataset(x, y[:2])
    TensorDataset()[0]
    len(TensorDataset())
    TensorDataset(torch.tensor(1))
    TensorDataset([1, 2])
    StackDataset(Squares(), "abcde")[2]
    StackDataset(a=Squares(), b="abcde")[2]
    len(StackDataset(Squares()))
    StackDataset(Squares(), "ab")
    StackDataset()
    StackDataset(Squares(), b="abcde")
    StackDataset(Squares(), Batched()).__getitems__([1, 2])
    StackDataset(a=Squares(), b=Batched()).__getitems__([1, 2])
    StackDataset(Squares(), Broken()).__getitems__([1, 2])
    StackDataset(a=Squares(), b=Broken()).__getitems__([1, 2])
    StackDataset(Squares()).__getitems__([])
    Subset(Squares(), [3, 1])[0]
    Subset(Squares(), [3, 1])[2]
    Subset(TensorDataset(y), [3, 1])[[1, 0]]
    Subset(Batched(), [3, 1]).__getitems__([1, 0])
    Subset(Squares(), [3, 1]).__getitems__([1, 0])
    len(Subset(Squares(), [3, 1]))
    Subset(Subset(Squares(), [3, 1, 2]), [2])[0]
    type("Mine", (Subset,), {"__getitem__": lambda s, i: 0})(Squares(), [0])
""")
def datasets(torch, line):
    result = run(torch, line)
    return "a data set" if isinstance(result, torch.utils.data.Dataset) else result


@case.lines("""
    random_split(Squares(10), [7, 3])
    random_split(Squares(10), [7, 3], torch.Generator().manual_seed(5))
    random_split(Squares(10), [7, 3], generator=None)
    random_split(Squares(10), [0.5, 0.25, 0.25])
    random_split(Squares(11), [0.3, 0.3, 0.4])
    random_split(Squares(3), [0.1] * 10)
    random_split(Squares(2), [0.9, 0.1])
    random_split(Squares(10), [1])
    random_split(Squares(10), [1.0])
    random_split(Squares(10), [0, 10])
    random_split(Squares(10), [7, 4])
    random_split(Squares(10), [0.5, 0.6])
    random_split(Squares(10), [1.5, -0.5])
    random_split(Squares(0), [])
""")
def random_splits(torch, line):
    result = run(torch, line)
    if isinstance(result, Exception):
        return result
    return [part.indices for part in result], torch.rand(1)


# Samplers


@case.lines("""
    Sampler()
    SequentialSampler(range(4))
    RandomSampler(range(20))
    RandomSampler(range(20), generator=torch.Generator().manual_seed(3))
    RandomSampler(range(5), num_samples=12)
    RandomSampler(range(5), num_samples=10)
    RandomSampler(range(5), num_samples=3)
    RandomSampler(range(5), replacement=True)
    RandomSampler(range(50), replacement=True, num_samples=70)
    RandomSampler(range(50), True, 64, torch.Generator().manual_seed(1))
    SubsetRandomSampler([5, 6, 7, 8, 9])
    SubsetRandomSampler("abc", torch.Generator().manual_seed(3))
    WeightedRandomSampler([0.1, 0.9, 0.5], 8)
    WeightedRandomSampler([0.1, 0.9, 0.5], 3, replacement=False)
    WeightedRandomSampler([0.1, 0.9], 4, generator=torch.Generator().manual_seed(3))
    BatchSampler(range(7), 3, False)
    BatchSampler(range(7), 3, True)
    BatchSampler(range(6), 3, True)
    BatchSampler(range(0), 3, False)
    BatchSampler(SequentialSampler(range(5)), 2, False)
    DistributedSampler(range(10), 3, 0)
    DistributedSampler(range(10), 3, 2, seed=4)
    DistributedSampler(range(10), 3, 2, shuffle=False)
    DistributedSampler(range(10), 3, 1, drop_last=True)
    DistributedSampler(range(2), 5, 4, shuffle=False)
    DistributedSampler(range(9), 3, 1, shuffle=False, drop_last=True)
    DistributedSampler(range(0), 2, 1)
    RandomSampler([])
    RandomSampler(range(3), replacement=1)
    RandomSampler(range(3), num_samples=0)
    RandomSampler(range(3), num_samples=1.5)
    RandomSampler(range(3), num_samples=-1)
    WeightedRandomSampler([1.0], 0)
    WeightedRandomSampler([1.0], True)
    WeightedRandomSampler([1.0], 1, 1)
    WeightedRandomSampler([[1.0]], 1)
    BatchSampler(range(3), 0, False)
    BatchSampler(range(3), True, False)
    BatchSampler(range(3), 1.5, False)
    BatchSampler(range(3), 1, 0)
    DistributedSampler(range(3), 2, 2)
    DistributedSampler(range(3), 2, -1)
""")
def samplers(torch, line):
    sampler = run(torch, line)
    if isinstance(sampler, Exception):
        return sampler
    yield attempt(list, sampler)
    yield attempt(list, sampler)  # another pass draws anew
    yield len(sampler) if hasattr(sampler, "__len__") else None
    yield torch.rand(1)  # as many random numbers were drawn


@case
def distributed_epochs(torch):
    sampler = torch.utils.data.DistributedSampler(range(6), 2, 0)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        yield list(sampler)


# Collating

Point = collections.namedtuple("Point", "a b")


class Plain:
    """A type that the loader knows nothing about."""


@case.lines("""
    default_collate([x, x + 1])
    default_collate([y[0], y[1]])
    default_collate([1, 2])
    default_collate([1.5, 2])
    default_collate([True, False])
    default_collate(["a", "b"])
    default_collate([b"a", b"b"])
    default_collate([np.zeros(2, "float32"), np.ones(2, "float32")])
    default_collate([np.float32(1), np.float32(2)])
    default_collate([np.int16(1), np.int16(2)])
    default_collate([np.bool_(True), np.bool_(False)])
    default_collate([(1, "a"), (2, "b")])
    default_collate([[1, 2.0], [3, 4.0]])
    default_collate([{"a": 1, "b": [x[0]]}, {"a": 2, "b": [x[1]]}])
    default_collate([Point(1, 2.0), Point(3, 4.0)])
    default_collate([OrderedDict(a=1), OrderedDict(a=2)])
    default_collate([defaultdict(int, a=1), defaultdict(int, a=2)])
    default_collate([range(2), range(2, 4)])
    default_collate([(), ()])
    default_collate([None, None])
    default_collate([{1}, {2}])
    default_collate([])
    default_collate([(1,), (1, 2)])
    default_collate([[1], [1, 2]])
    default_collate([x[:2], x[:3]])
    default_collate([np.array(["a"])])
    default_collate([np.array([None])])
    default_collate([Plain()])
    default_collate([{"a": Plain()}])
    default_collate([{"a": 1}, {"b": 1}])
    default_collate([1, "a"])
    default_collate([torch.nn.Parameter(x), torch.nn.Parameter(x)])
    default_convert(x)
    default_convert(np.zeros(2))
    default_convert(np.float64(1))
    default_convert(np.str_("a"))
    default_convert(np.array(["a"]))
    default_convert(3)
    default_convert("text")
    default_convert([np.zeros(1), 1])
    default_convert((np.zeros(1), 1))
    default_convert({"a": np.zeros(1), "b": (1,)})
    default_convert(Point(np.zeros(1), 2))
    default_convert(range(3))
    default_convert(defaultdict(int, a=np.ones(1)))
    default_convert(None)
""")
def collating(torch, line):
    names = {
        "Point": Point,
        "Plain": Plain,
        "OrderedDict": collections.OrderedDict,
        "defaultdict": collections.defaultdict,
    }
    return attempt(eval, line, {**scope(torch), **names})


@case
def own_types(torch):
    collate = torch.utils.data._utils.collate

    def join(batch: Any, *, collate_fn_map: Any = None) -> Any:
        return f"{len(batch)} plain"

    table = collate.default_collate_fn_map
    own = {Plain: join, **table}
    yield collate.collate([(Plain(), 1), (Plain(), 2)], collate_fn_map=own)
    yield attempt(collate.collate, [1, 2])
    table[Plain] = join
    try:
        loader = torch.utils.data.DataLoader([Plain()] * 3, batch_size=2)
        yield list(loader)
    finally:
        del table[Plain]
    # Tensors can be given a function of their own, for tensor data sets too.
    old = table[torch.Tensor]
    table[torch.Tensor] = join
    try:
        data = torch.utils.data.TensorDataset(torch.arange(3))
        yield list(torch.utils.data.DataLoader(data, batch_size=2))
    finally:
        table[torch.Tensor] = old


# The loader


@case.lines("""
    DataLoader(Squares())
    DataLoader(Squares(), 2)
    DataLoader(Squares(), 2, drop_last=True)
    DataLoader(Squares(), 2, shuffle=True)
    DataLoader(Squares(), 2, True, generator=torch.Generator().manual_seed(3))
    DataLoader(Squares(), batch_size=None)
    DataLoader(Squares(), batch_size=None, shuffle=True)
    DataLoader(Squares(), 2, sampler=[4, 2, 0])
    DataLoader(Squares(), 2, sampler=RandomSampler(range(5), num_samples=3))
    DataLoader(Squares(), batch_sampler=[[0, 1], [4], []])
    DataLoader(Squares(), batch_sampler=[[0, 1], [4]])
    DataLoader(Squares(), 2, collate_fn=tuple)
    DataLoader(Squares(), 2, num_workers=0, timeout=0, pin_memory=False)
    DataLoader(Squares(), 2, in_order=False)
    DataLoader(Squares(), sampler=WeightedRandomSampler([1.0, 2, 3], 5))
    DataLoader(Batched(), 2)
    DataLoader(Broken(), 2)
    DataLoader([1.5, 2.5, 3.5], 2)
    DataLoader("abc", 2)
    DataLoader({0: "a", 1: "b"}, 2)
    DataLoader({"a": 1, "b": 2}, 2)
    DataLoader(StackDataset(a=x, b=y), 2)
    DataLoader(Subset(Squares(), [4, 3, 2]), 2)
    DataLoader(ConcatDataset([Squares(2), Squares(3)]), 4)
    DataLoader(Stream())
    DataLoader(Stream(), 2)
    DataLoader(Stream(), 2, drop_last=True)
    DataLoader(Stream(), batch_size=None)
    DataLoader(Stream(), 2, shuffle=False)
    DataLoader(Stream() + Stream(2), 3)
    DataLoader(x, 2)
    DataLoader(TensorDataset(x, y), 2)
    DataLoader(TensorDataset(x, y), 2, shuffle=True)
    DataLoader(TensorDataset(x, y), 2, drop_last=True)
    DataLoader(TensorDataset(x, y), 10)
    DataLoader(TensorDataset(x, y), None)
    DataLoader(TensorDataset(y.to(torch.uint8), y > 2, y.to(torch.bfloat16)), 3)
    DataLoader(TensorDataset(x.T, x.T), 2)
    DataLoader(TensorDataset(x[::2]), 2)
    DataLoader(TensorDataset(x[:0]), 2)
    DataLoader(TensorDataset(x[:, :0]), 2)
    DataLoader(TensorDataset(x.clone().requires_grad_(), y), 2)
    DataLoader(TensorDataset(torch.nn.Parameter(x)), 2)
    DataLoader(TensorDataset(x, y), 2, sampler=[-1, 0, -5])
    DataLoader(TensorDataset(x, y), 2, sampler=[0, 5])
    DataLoader(TensorDataset(x, y), 2, sampler=[-6])
    DataLoader(TensorDataset(x, y), 2, sampler=[True, 0])
    DataLoader(TensorDataset(x, y), 2, sampler=np.array([3, 1]))
    DataLoader(TensorDataset(x, y), 2, sampler=torch.tensor([3, 1]))
    DataLoader(TensorDataset(x, y), 2, sampler=[1.5])
    DataLoader(TensorDataset(x, y), batch_sampler=[(0, 1)])
    DataLoader(TensorDataset(x, y), batch_sampler=[[0, 1], []])
    DataLoader(TensorDataset(x, y), sampler=[[0, 1], [2]], batch_size=None)
    DataLoader(TensorDataset(), 2, sampler=[0])
    DataLoader(Subset(TensorDataset(x, y), [4, 3, 2]), 2)
    DataLoader(Subset(TensorDataset(x, y), np.array([4, 3, 2])), 2)
    DataLoader(Subset(TensorDataset(x, y), torch.tensor([4, 3, 2])), 2)
    DataLoader(Subset(TensorDataset(x, y), [4, 9]), 2)
    DataLoader(Subset(Subset(TensorDataset(x), [4, 3, 2]), [2, 0]), 2)
    DataLoader(Subset(TensorDataset(x), [4, 3]), 2, sampler=[5])
    DataLoader(random_split(TensorDataset(x, y), [3, 2])[0], 2, shuffle=True)
    DataLoader(TensorDataset(x, y), 2, collate_fn=default_convert)
    DataLoader(TensorDataset(x, y), 2, collate_fn=default_collate)
    DataLoader(TensorDataset(x, y), 2, collate_fn=lambda b: len(b))
    DataLoader(Squares(), num_workers=-1)
    DataLoader(Squares(), timeout=-1)
    DataLoader(Squares(), timeout=5)
    DataLoader(Squares(), prefetch_factor=2)
    DataLoader(Squares(), num_workers=1, prefetch_factor=-2)
    DataLoader(Squares(), persistent_workers=True)
    DataLoader(Squares(), multiprocessing_context="spawn")
    DataLoader(Squares(), num_workers=1, multiprocessing_context="sprawn")
    DataLoader(Squares(), num_workers=1, multiprocessing_context=3)
    DataLoader(Squares(), batch_size=0)
    DataLoader(Squares(), batch_size=1.5)
    DataLoader(Squares(), drop_last=1)
    DataLoader(Squares(), batch_size=None, drop_last=True)
    DataLoader(Squares(), shuffle=True, sampler=[1])
    DataLoader(Squares(), 2, batch_sampler=[[1]])
    DataLoader(Squares(), shuffle=True, batch_sampler=[[1]])
    DataLoader(Squares(), sampler=[1], batch_sampler=[[1]])
    DataLoader(Squares(), drop_last=True, batch_sampler=[[1]])
    DataLoader(Squares(0), shuffle=True)
    DataLoader(Squares(0))
    DataLoader(Stream(), shuffle=True)
    DataLoader(Stream(), sampler=[1])
    DataLoader(Stream(), batch_sampler=[[1]])
    DataLoader(Squares(), 2, pin_memory=True)
    DataLoader()
    DataLoader(Squares(), 1, None, None, None, 0, None, 0, 0, 0, None, None, None, 2)
""")
def loaders(torch, line):
    loader = run(torch, line)
    if isinstance(loader, Exception):
        yield type(loader), str(loader)
        return
    yield attempt(list, loader)
    yield attempt(list, loader)
    yield attempt(len, loader), torch.rand(1)


@case
def order_of_random_numbers(torch):
    data = torch.utils.data
    g = torch.Generator().manual_seed(7)
    loader = data.DataLoader(range(8), 3, shuffle=True, generator=g)
    for _ in range(2):
        yield [b.tolist() for b in loader], torch.rand(1), g.initial_seed()
    torch.manual_seed(1)
    batches = iter(data.DataLoader(range(8), 3, shuffle=True))
    yield torch.rand(1)
    yield next(batches), torch.rand(1), next(batches), torch.rand(1)
    torch.manual_seed(1)
    yield batches._base_seed
    for _ in data.DataLoader(range(2)):
        yield torch.rand(1)


@case
def loader_attributes(torch):
    data = torch.utils.data
    loader = data.DataLoader(range(5), 2)
    yield loader.batch_size, loader.drop_last, loader.num_workers, loader.timeout
    yield type(loader.sampler), type(loader.batch_sampler), loader.generator
    yield loader.collate_fn is data.default_collate, loader.prefetch_factor
    yield loader.multiprocessing_context, loader.persistent_workers
    for name in (
        "batch_size batch_sampler sampler drop_last dataset persistent_workers".split()
    ):
        yield attempt(setattr, loader, name, 3)
    loader.num_workers = 0
    loader.collate_fn = len
    yield list(loader)
    one = data.DataLoader(range(5), batch_size=None)
    yield one.collate_fn is data.default_convert, one.batch_sampler
    it = iter(loader)
    yield iter(it) is it, len(it), next(it), attempt(pickle.dumps, it)


@case
def streams_that_are_too_long(torch):
    names = scope(torch)

    class Long(names["Stream"]):
        def __len__(self) -> int:
            return 2

    loader = torch.utils.data.DataLoader(Long(), batch_size=None)
    yield len(loader)
    yield list(loader)


@case
def batches_are_copies(torch):
    x = torch.zeros(4, 2)
    data = torch.utils.data.TensorDataset(x)
    (batch,) = next(iter(torch.utils.data.DataLoader(data, 2)))
    batch += 1
    yield x, batch.is_contiguous(), batch._base
    x.fill_(5)
    yield batch
    loader = torch.utils.data.DataLoader(data, None)
    next(iter(loader))[0].add_(1)
    yield x


@case
def samples_that_raise(torch):
    class Fails(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> int:
            raise KeyError(f"sample {index}")

    return attempt(list, torch.utils.data.DataLoader(Fails()))


@case
def no_worker_here(torch):
    return torch.utils.data.get_worker_info()


def test_tensor_data_sets_are_gathered_at_once(monkeypatch: Any) -> None:
    import torchshim

    data = torchshim.utils.data
    x = torchshim.arange(10)
    loader = data.DataLoader(data.Subset(data.TensorDataset(x, x), range(8)), 4)
    asked = []
    monkeypatch.setattr(data.TensorDataset, "__getitem__", asked.append)
    assert [len(batch[0]) for batch in loader] == [4, 4]
    assert asked == []


@case
def endless_sampler(torch):
    """As programs ask for one that count their own steps."""
    for replacement in True, False:
        torch.manual_seed(0)
        order = torch.utils.data.RandomSampler(range(5), replacement, 10**15)
        yield list(itertools.islice(order, 70)), len(order)


@pytest.mark.parametrize("reads", ["step", "sample"])
@pytest.mark.parametrize("at_once", [False, True])
def test_random_choices_in_samples_settle(at_once, reads, monkeypatch) -> None:
    """A batch of samples made along random paths needs no program of its own.

    Nor does it stay with its step, where that is run event by event.
    """
    import random

    import torchshim as torch

    if at_once:
        monkeypatch.setattr(stepwise, "_LEAST_EVENTS", 0)
        monkeypatch.setattr(stepwise, "_wasted", lambda line: (1e9, 1))
    choices = random.Random(0)

    class Augmented(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> torch.Tensor:
            x = torch.ones(3) * index
            for change in (torch.exp, torch.sin, torch.cos, torch.tanh):
                if choices.random() < 0.5:
                    x = change(x)
            if reads == "sample":
                x.tolist()
                x = x * 2
            return x

    weight = torch.ones(3, requires_grad=True)
    loader = torch.utils.data.DataLoader(Augmented(), 8)
    added = 0
    for _ in range(3):
        before = torch.explain()
        added = CACHE.added
        for batch in loader:
            assert batch.shape == (8, 3)
            loss = (batch * weight).sum()
            loss.backward()
            if reads == "step":
                loss.tolist()
        weight.grad = None
    assert len(torch.explain(before)) <= 4
    assert CACHE.added - added <= 4


def test_samples_that_differ_are_apart_from_the_first_batch_on() -> None:
    """Also through a `Subset`, and in a pass of another loader."""
    import torchshim as torch

    class Augmented(torch.utils.data.Dataset):
        def __getitem__(self, index: int) -> torch.Tensor:
            x = torch.ones(3) * index
            return x.exp() if index % 3 == 0 else x

    data = torch.utils.data.Subset(Augmented(), range(1, 17))
    weight = torch.ones(3, requires_grad=True)
    steps = []
    for _ in range(2):
        for batch in torch.utils.data.DataLoader(data, 4):
            before = CACHE.added
            (batch * weight).sum().tolist()
            steps.append(CACHE.added - before)
    assert steps == [1] + 7 * [0]


def test_samples_apart_are_no_part_of_the_step_before() -> None:
    import torchshim as torch
    from torchshim.utils.data._utils.fetch import Pace

    pace = Pace()
    weight = torch.ones(2) + 1
    pace.begin()
    assert weight._array is None
    pace.apart = True
    pace.begin()
    assert weight._array is not None
