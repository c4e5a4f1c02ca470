"""Random numbers put into tensors: `uniform_`, `normal_`, `random_`, …

https://docs.pytorch.org/docs/2.13/torch.html#in-place-random-sampling
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchshim._core import dtypes, host_integers, host_random
from torchshim._core.layout import is_dense
from torchshim._core.no_data import NoData
from torchshim._core.random import engine_of
from torchshim._core.record import local
from torchshim._derived import fns, public
from torchshim._functions._arguments import missing, number_of
from torchshim._functions.creation import place
from torchshim._functions.random import _flat, _in_memory_order
from torchshim._functions.random_examples import check_target, examples
from torchshim._tensor import Tensor, from_array


def fill_drawn(
    function: str,
    self: Tensor,
    draw: Callable[..., np.ndarray],
    op: Any,
    generator: Any,
) -> Tensor:
    """Replaces a tensor's values by drawn ones, in the order of its memory.

    `draw(engine, count, dtype, contiguous)` gives the values.
    """
    rec = local.rec
    rec.check_writable(self)
    meta = self._meta
    shape, strides = tuple(meta.shape), meta.strides
    engine = engine_of(generator, function, meta.device)
    kind = dtypes.array_dtype(meta.dtype)
    batch = examples()
    if batch:
        check_target(self, batch)
        full = (*(size for _, size in batch), *shape)
        flat = draw(engine, math.prod(full), kind, True)
        array = place(flat.reshape(full), meta.device)
        op(self, from_array(array, device=meta.device, batch=batch))
        return self
    array: Any
    if meta.device.type == "meta":
        array = NoData(shape, kind)
    else:
        contiguous = meta.contiguous
        flat = draw(engine, math.prod(shape), kind, contiguous)
        dense = None if contiguous else strides
        if dense is not None and not is_dense(shape, strides):
            dense = tuple(strides)
        array = place(_in_memory_order(flat, shape, dense), meta.device)
    if not overwrite(self, array):
        values = from_array(array, device=meta.device, strides=strides)
        op(self, values)
    return self


def overwrite(tensor: Tensor, array: Any) -> bool:
    """Gives a tensor outside of any recording new values; False where that won't do."""
    meta, storage = tensor._meta, tensor._storage
    if tensor._slot >= 0 or tensor._raw >= 0 or not meta.leaf or meta.batch:
        return False
    if storage is None:
        tensor._array = array
        tensor._versions += 1
        return True
    if tensor._path or storage.slot >= 0 or storage.shared is not None:
        return False
    for alias in storage.tensors():
        if alias._slot >= 0 or not alias._meta.leaf:
            return False
    storage.array = array
    storage.count_write(tensor)
    return True


@public(namespaces=(), method=True)
def uniform_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """Uniform numbers in [from, to)."""
    given = dict(zip(("from", "to"), args, strict=False)) | named
    low = float(number_of("uniform_", "from", 1, given.pop("from", 0)))
    high = float(number_of("uniform_", "to", 2, given.pop("to", 1)))
    _no_more("uniform_", args, 2, given)

    def draw(engine: Any, count: int, kind: Any, contiguous: bool) -> np.ndarray:
        return host_random.uniform(engine, count, kind, low, high)

    return fill_drawn("uniform_", self, draw, fns._draw_uniform_, generator)


def _no_more(
    function: str, args: tuple[Any, ...], count: int, rest: dict[str, Any]
) -> None:
    if len(args) > count:
        raise TypeError(
            f"{function}() takes from 0 to {count} positional arguments but "
            f"{len(args)} were given"
        )
    for name in rest:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


@public(namespaces=(), method=True)
def normal_(
    self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None
) -> Tensor:
    """Normal numbers."""
    middle = float(number_of("normal_", "mean", 1, mean))
    scale = float(number_of("normal_", "std", 2, std))

    def draw(engine: Any, count: int, kind: Any, contiguous: bool) -> np.ndarray:
        return host_random.normal(
            engine, count, kind, middle, scale, contiguous=contiguous
        )

    return fill_drawn("normal_", self, draw, fns._draw_normal_, generator)


@public(namespaces=(), method=True)
def random_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """Whole numbers: of the dtype's whole range, up to `to`, or from `from` on."""
    names = ("to",) if len(args) == 1 else ("from", "to")
    given = dict(zip(names, args, strict=False)) | named
    _no_more("random_", args, 2, {n: 0 for n in given if n not in ("from", "to")})
    op = fns._draw_random2_ if not given else fns._draw_random0_
    low, high = given.get("from"), given.get("to")
    if low is None and high is not None:
        low, op = 0, fns._draw_random1_

    def draw(engine: Any, count: int, kind: Any, contiguous: bool) -> np.ndarray:
        return host_integers.random_integers(engine, count, kind, low, high)

    return fill_drawn("random_", self, draw, op, generator)


@public(namespaces=(), method=True)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Ones with probability `p`, a number or a tensor, zeros otherwise."""
    op = fns._draw_bernoulli2_
    if isinstance(p, Tensor):
        op = fns._draw_bernoulli1_
        shape = tuple(self._meta.shape)
        chance: Any = _flat(np.broadcast_to(p._host(), shape), self._meta.strides)
    else:
        chance = float(number_of("bernoulli_", "p", 1, p))

    def draw(engine: Any, count: int, kind: Any, contiguous: bool) -> np.ndarray:
        return host_random.bernoulli(engine, count, kind, chance)

    return fill_drawn("bernoulli_", self, draw, op, generator)


def _one_parameter(name: str, parameters: tuple[tuple[str, Any], ...]) -> None:
    """Declares `Tensor.<name>_` with numbers as parameters (None: required)."""
    function = getattr(host_random, name)

    def method(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
        given = dict(zip((n for n, _ in parameters), args, strict=False)) | named
        values = []
        for at, (key, default) in enumerate(parameters, 1):
            value = given.pop(key, default)
            if value is None:
                raise missing(f"{name}_", key)
            values.append(float(number_of(f"{name}_", key, at, value)))
        _no_more(f"{name}_", args, len(parameters), given)

        def draw(engine: Any, count: int, kind: Any, contiguous: bool) -> np.ndarray:
            return function(engine, count, kind, *values)

        op = getattr(fns, f"_draw_{name}_")
        return fill_drawn(f"{name}_", self, draw, op, generator)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Numbers drawn from the {name} distribution."
    public(namespaces=(), method=True)(method)


_one_parameter("exponential", (("lambd", 1.0),))
_one_parameter("geometric", (("p", None),))
_one_parameter("log_normal", (("mean", 1.0), ("std", 2.0)))
_one_parameter("cauchy", (("median", 0.0), ("sigma", 1.0)))
