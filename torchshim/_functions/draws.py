"""Tensors of random numbers, by the host or by the program.

Which of the two the kind of generator decides (`_core/random.py`): the CPU's draws on
the host, PyTorch's numbers, which enter a recording as an input; those of accelerators
only count, and what a draw records makes the numbers from seed and count. Neither way
does a draw make a new program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchshim._core import dtypes, host_integers, host_random
from torchshim._core.meta import is_contiguous
from torchshim._core.mt19937 import MT19937
from torchshim._core.no_data import NoData
from torchshim._core.threefry import Threefry
from torchshim._derived import fns
from torchshim._functions.creation import empty_strided, place
from torchshim._functions.random_examples import Batch, examples
from torchshim._tensor import Tensor, from_array


class Draw(NamedTuple):
    """A distribution and its parameters, all of them numbers."""

    name: str
    parameters: tuple[Any, ...] = ()

    def on_host(
        self, engine: MT19937, count: int, kind: Any, contiguous: bool = True
    ) -> np.ndarray:
        """So many numbers; raises what PyTorch raises for parameters and dtypes."""
        if self.name == "normal":
            mean, std = self.parameters
            return host_random.normal(
                engine, count, kind, mean, std, contiguous=contiguous
            )
        return _ON_HOST[self.name](engine, count, kind, *self.parameters)

    def in_program(self, count: int, kind: np.dtype) -> tuple[Any, Any]:
        """The two numbers that `fns._counter_draw` takes; raises as `on_host`."""
        self.on_host(_UNUSED, min(count, 1), kind)
        if self.name == "integers":
            return host_integers.bounds(kind, *(self.parameters or (None, None)))
        first, second, *_ = *self.parameters, 0.0, 0.0
        return first, second


_ON_HOST: dict[str, Callable[..., np.ndarray]] = {
    "uniform": host_random.uniform,
    "log_normal": host_random.log_normal,
    "exponential": host_random.exponential,
    "geometric": host_random.geometric,
    "cauchy": host_random.cauchy,
    "bernoulli": host_random.bernoulli,
    "integers": host_integers.random_integers,
    "permutation": host_integers.randperm,
}

# Draws numbers that nobody sees: who draws says which parameters are wrong.
_UNUSED = MT19937()

UNIFORM = Draw("uniform", (0.0, 1.0))
NORMAL = Draw("normal", (0.0, 1.0))


def drawn(
    draw: Draw,
    shape: tuple[int, ...],
    dtype: dtypes.dtype,
    device: Any,
    engine: Any,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    """A new tensor of numbers, drawn in the order of its memory.

    Under `vmap`, each example gets numbers of its own, or all the same ones.
    """
    kind, batch = dtypes.array_dtype(dtype), examples()
    if strides is not None and is_contiguous(shape, strides):
        strides = None
    if isinstance(engine, Threefry):
        return _in_program(draw, shape, dtype, device, engine, strides, batch)
    if batch:
        sizes = [size for _, size in batch]
        flat = _of_examples(draw, engine, math.prod(sizes), math.prod(shape), kind)
        made = place(flat.reshape(*sizes, *shape), device)
        return from_array(made, device=device, batch=batch)
    if device.type == "meta":
        return from_array(NoData(shape, kind), device=device, strides=strides)
    flat = draw.on_host(engine, math.prod(shape), kind, strides is None)
    array = in_memory_order(flat, shape, strides)
    return from_array(place(array, device), device=device, strides=strides)


def _of_examples(
    draw: Draw, engine: MT19937, examples: int, count: int, kind: Any
) -> np.ndarray:
    if draw.name != "permutation":
        return draw.on_host(engine, examples * count, kind)
    rows = [draw.on_host(engine, count, kind) for _ in range(examples)]
    return np.concatenate([np.empty(0, kind), *rows])


def in_memory_order(
    flat: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> np.ndarray:
    """Values in the order of falling strides, as an array in logical order."""
    if strides is None or len(shape) < 2 or is_contiguous(shape, strides):
        return flat.reshape(shape)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    outer = flat.reshape([shape[d] for d in order])
    return np.ascontiguousarray(outer.transpose(np.argsort(order)))


def _in_program(
    draw: Draw,
    shape: tuple[int, ...],
    dtype: dtypes.dtype,
    device: Any,
    engine: Threefry,
    strides: tuple[int, ...] | None,
    batch: Batch,
) -> Tensor:
    full = (*(size for _, size in batch), *shape)
    parameters = draw.in_program(math.prod(full), dtypes.array_dtype(dtype))
    state = counter(engine, device)
    made = fns._counter_draw(*state, draw.name, full, dtype, *parameters)
    made = entered(made, batch)
    if strides is None or batch:
        return made
    ordered = empty_strided(shape, strides, dtype=dtype, device=device)
    return ordered.copy_(made)


def counter(engine: Threefry, device: Any) -> tuple[Tensor, float]:
    """The seed, a tensor on the device, and the number of the next draw.

    A float, as those are arguments of programs from the first time on.
    """
    if engine.key is None:
        engine.key = from_array(place(engine.words(), device), device=device)
    return engine.key, float(engine.advance())


def entered(made: Tensor, batch: Batch) -> Tensor:
    """A tensor whose first dimensions are made the levels of a batch."""
    for number, _ in batch:
        made = fns._vmap_enter(made, 0, number)
    return made
