"""`torch.futures`: results set once, callbacks, errors."""

from __future__ import annotations

import pickle

import numpy as np

from tests.oracle import attempt, case


def fail(future):
    raise ValueError("expected")


@case
def set_once(torch):
    f = torch.futures.Future()
    yield attempt(f.value), str(type(f)), str(f).split(" at ")[0]
    yield f.done(), attempt(pickle.dumps, f)
    f.set_result(torch.ones(2))
    yield f.done(), f.wait(), f.value(), attempt(f.set_result, 1)
    yield (
        attempt(f.set_exception, ValueError("late")),
        type(attempt(f.then, 3)).__name__,
    )
    g = torch.futures.Future()
    g.set_exception(ValueError("meant"))
    yield attempt(g.wait), attempt(g.value), g.done(), attempt(g.set_exception, 3)


@case
def callbacks(torch):
    f, seen = torch.futures.Future(), []
    f.add_done_callback(lambda x: seen.append(x.value()))
    then = f.then(lambda x: x.wait() + 1)
    f.add_done_callback(lambda x: seen.append("last"))
    f.set_result(5)
    yield seen, then.wait(), then.then(lambda x: x.wait() * 2).wait()
    bad = f.then(fail)
    yield str(attempt(bad.wait)).partition("\n")[0]
    yield str(attempt(bad.then(lambda x: x.wait()).wait)).partition("\n")[0]
    yield attempt(f.then(lambda: 1).wait)


@case
def several(torch):
    a, b = torch.futures.Future(), torch.futures.Future()
    both = torch.futures.collect_all([a, b])
    a.set_result(1)
    yield both.done()
    b.set_exception(ValueError("second"))
    yield attempt(both.wait), attempt(torch.futures.wait_all, [a, b])
    yield torch.futures.wait_all([a, a]), torch.futures.collect_all([]).wait()
    for wrong in ([None], (a, None), [3], [None, 3]):
        yield attempt(torch.futures.collect_all, wrong)
    yield attempt(torch.futures.wait_all, (None,)), attempt(torch.jit.wait, None)


@case
def devices(torch):
    future = torch.futures.Future
    for given in (["cpu"], ["cpu:0"], [torch.device("cpu")], ["foo"], ["mps"], [], 3):
        made = attempt(lambda g=given: future(devices=g))
        yield made if isinstance(made, Exception) else made.done()
    try:
        future().add_done_callback(3)
    except TypeError as error:
        yield str(error).partition("Invoked")[0]


@case
def arguments_of_other_types(torch):
    one = torch.ones(1)
    yield attempt(torch.atleast_2d, 3), attempt(torch.atleast_1d, one, 3)
    yield attempt(torch.atleast_3d, [one, "a"]), attempt(torch.atleast_1d, None)
    for index in (torch.ones(2, 2, dtype=torch.int64), torch.tensor([[1]])):
        yield attempt(torch.tensor_split, one, index)
    yield torch.full((2,), np.bool_(True)), torch.full((1,), np.bool_(False), dtype=int)
    yield torch.full((1,), np.float32(2)), torch.full((1,), np.int8(2)), one.dtype
