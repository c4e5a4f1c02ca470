"""What divides modules among devices, where there is none but the CPU."""

from __future__ import annotations

import collections
import importlib
from typing import Any

from tests.oracle import attempt, case

Pair = collections.namedtuple("Pair", "a b")


def space(torch: Any, name: str = "") -> Any:
    return importlib.import_module(f"{torch.__name__}.nn.parallel{name}")


@case
def names(torch):
    yield sorted(space(torch).__all__)
    for name in (".scatter_gather", ".replicate", ".parallel_apply"):
        yield sorted(space(torch, name).__all__)
    yield space(torch, ".scatter_gather").is_namedtuple(Pair(1, 2))


@case
def arguments(torch):
    module = space(torch, ".scatter_gather")
    for value in (3, (1, "a"), [1, {}], {"a": 1}, (), Pair(1, [2]), None):
        yield module.scatter(value, [0]), module.scatter(value, [0, 1])
    yield module.scatter_kwargs((1,), {"a": 2}, [0])
    yield module.scatter_kwargs((), None, [0])
    yield module.scatter_kwargs((1,), None, [0, 1])
    yield module.scatter_kwargs((), {"a": 2}, [0])


@case
def results(torch):
    gather, x = space(torch).gather, torch.ones(2)
    yield gather([None, None], 0)
    yield attempt(gather, [x, x], 0)
    yield attempt(gather, [{"a": x}, {}], 0)
    yield attempt(gather, [(x,), (x,)], "cpu")


@case
def replicas(torch):
    layer = torch.nn.Linear(2, 2)
    yield space(torch).replicate(layer, [])
    yield attempt(space(torch).replicate, layer, [0])
    yield attempt(space(torch).replicate, layer, ["cpu"])


@case
def calls(torch):
    layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    apply = space(torch).parallel_apply
    yield attempt(apply, [layer], [x])
    yield attempt(apply, [layer], [x, x])
    yield attempt(apply, [layer], [x], [{}, {}])
    yield attempt(apply, [layer], [x], devices=[0, 1])
    yield attempt(apply, [layer], [x], devices=["cpu"])
    yield attempt(apply, [], [])
    first = space(torch, ".parallel_apply").get_a_var
    yield first([1, {"a": x}]) is x, first(3), first({})
