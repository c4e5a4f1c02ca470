"""Random numbers put into tensors: `uniform_`, `normal_`, `random_`, …

https://docs.pytorch.org/docs/2.13/torch.html#in-place-random-sampling
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.batching import UNBATCHED_TARGET
from torchshim._core.naming import tensor_type
from torchshim._core.random import engine_of
from torchshim._core.record import local
from torchshim._derived import fns, public
from torchshim._functions._arguments import missing, number_of
from torchshim._functions._family import described
from torchshim._functions.draws import Draw, drawn
from torchshim._functions.random_examples import (
    check_parameters,
    check_target,
    examples,
)
from torchshim._functions.random_parameters import below, by_host
from torchshim._ops.view_geometry import expanded_shape
from torchshim._tensor import Tensor


def fill_drawn(
    function: str,
    self: Tensor,
    draw: Draw | Tensor,
    op: Any,
    generator: Any,
    overload: str = "",
) -> Tensor:
    """Replaces a tensor's values by drawn ones, in the order of its memory.

    A tensor in the place of the distribution has the chances of ones. `overload`: which
    of PyTorch's functions of the name this is.
    """
    rec = local.rec
    if rec.levels:
        rec.check_captured(self, function + overload)
    rec.check_writable(self)
    meta = self._tmeta
    shape, strides = tuple(meta.shape), meta.strides
    engine = engine_of(generator, function, meta.device)
    batch = examples()
    if batch:
        check_target(self, batch)
    if isinstance(draw, Tensor):
        made = below(draw, shape, meta, engine, strides)
    else:
        made = drawn(draw, shape, meta.dtype, meta.device, engine, strides)
    if made._array is None or not overwrite(self, made._array):
        op(self, made)
    return self


def overwrite(tensor: Tensor, array: Any) -> bool:
    """Gives a tensor outside of any recording new values; False where that won't do."""
    meta, storage = tensor._tmeta, tensor._storage
    if tensor._slot >= 0 or tensor._raw >= 0 or not meta.leaf or meta.batch:
        return False
    if storage is None:
        tensor._array = array
        tensor._versions += 1
        return True
    if tensor._path or storage.slot >= 0 or storage.shared is not None:
        return False
    for alias in storage.tensors():
        if alias._slot >= 0 or not alias._tmeta.leaf or alias._inherits:
            return False
    storage.array = array
    storage.count_write(tensor)
    return True


@public(namespaces=(), method=True)
def uniform_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """Uniform numbers in [from, to).

    `uniform_(from=0, to=1)`. RuntimeError if `from` is above `to`.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.uniform_.html

    >>> import torchshim as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.empty(2).uniform_(5, 10, generator=generator)
    tensor([7.4813, 8.8411])
    """
    given = dict(zip(("from", "to"), args, strict=False)) | named
    low = float(number_of("uniform_", "from", 1, given.pop("from", 0)))
    high = float(number_of("uniform_", "to", 2, given.pop("to", 1)))
    _no_more("uniform_", args, 2, given)

    draw = Draw("uniform", (low, high))
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
    """Normal numbers.

    RuntimeError for a negative standard deviation.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.normal_.html

    >>> import torchshim as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.empty(2).normal_(10, 0.1, generator=generator)
    tensor([10.1541,  9.9707])
    """
    middle = float(number_of("normal_", "mean", 1, mean))
    scale = float(number_of("normal_", "std", 2, std))

    draw = Draw("normal", (middle, scale))
    return fill_drawn("normal_", self, draw, fns._draw_normal_, generator)


@public(namespaces=(), method=True)
def random_(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
    """Whole numbers: of the dtype's whole range, up to `to`, or from `from` on.

    `random_(from, to)`: up to, not including, `to`. A floating-point dtype's range is
    that of the integers that it holds exactly.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.random_.html

    >>> import torchshim as torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.empty(4).random_(-1, 2, generator=generator)
    tensor([ 1., -1.,  1., -1.])
    """
    names = ("to",) if len(args) == 1 else ("from", "to")
    given = dict(zip(names, args, strict=False)) | named
    _no_more("random_", args, 2, {n: 0 for n in given if n not in ("from", "to")})
    op = fns._draw_random2_ if not given else fns._draw_random0_
    low, high = given.get("from"), given.get("to")
    for value in (low, high):
        if value is None:
            continue
        if isinstance(value, (bool, np.ndarray)) or not hasattr(value, "__index__"):
            raise TypeError("random_() takes whole numbers")
        if not -(2**63) <= int(value) < 2**63:
            raise ValueError("Overflow when unpacking long long")
    low, high = (None if v is None else int(v) for v in (low, high))
    overload = ".from" if given else ""
    if low is None and high is not None:
        low, op, overload = 0, fns._draw_random1_, ".to"

    draw = Draw("integers", (low, high))
    return fill_drawn("random_", self, draw, op, generator, overload)


@public(namespaces=(), method=True)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Ones with probability `p`, a number or a tensor, zeros otherwise.

    RuntimeError for a probability outside [0, 1].

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.bernoulli_.html

    >>> import torchshim as torch
    >>> torch.empty(3).bernoulli_(torch.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """
    shape = tuple(self._tmeta.shape)
    if isinstance(p, Tensor) and 0 in shape:
        p = 0.5  # PyTorch does not look at the tensor where there is nothing to draw
    if not isinstance(p, Tensor):
        draw = Draw("bernoulli", (float(number_of("bernoulli_", "p", 1, p)),))
        op = fns._draw_bernoulli2_
        return fill_drawn("bernoulli_", self, draw, op, generator, ".float")
    engine = engine_of(generator, "bernoulli_", self._tmeta.device)
    expanded_shape(p._tmeta.shape, shape, tensor_type(p._tmeta.dtype))
    check_parameters(p)
    if set(p._tmeta.batch) - set(self._tmeta.batch):
        name = "inplace bernoulli"
        raise RuntimeError(UNBATCHED_TARGET.format(name=name, where="in a vmap"))
    given: Draw | Tensor = p
    if by_host(engine, p) and not examples():
        chances = _flat(np.broadcast_to(p._host(), shape), self._tmeta.strides)
        given = Draw("bernoulli", (chances,))
    op = fns._draw_bernoulli1_
    return fill_drawn("bernoulli_", self, given, op, generator, ".Tensor")


def _flat(array: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The elements of an array in the order of falling strides."""
    order = sorted(range(array.ndim), key=lambda d: -strides[d])
    return np.ascontiguousarray(array.transpose(order)).reshape(-1)


def _one_parameter(name: str, parameters: tuple[tuple[str, Any], ...]) -> None:
    """Declares `Tensor.<name>_` with numbers as parameters (None: required)."""

    def method(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
        """RuntimeError for parameters that the distribution does not have.

        >>> import torchshim as torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.empty(2).exponential_(0.01, generator=generator)
        tensor([350.8326, 123.0385])
        >>> torch.empty(4, dtype=torch.int64).geometric_(0.5, generator=generator)
        tensor([2, 1, 1, 1])
        """
        given = dict(zip((n for n, _ in parameters), args, strict=False)) | named
        values = []
        for at, (key, default) in enumerate(parameters, 1):
            value = given.pop(key, default)
            if value is None:
                raise missing(f"{name}_", key)
            values.append(float(number_of(f"{name}_", key, at, value)))
        _no_more(f"{name}_", args, len(parameters), given)

        op = getattr(fns, f"_draw_{name}_")
        draw = Draw(name, tuple(values))
        return fill_drawn(f"{name}_", self, draw, op, generator)

    line = f"Numbers drawn from the {name.replace('_', '-')} distribution."
    described(method, f"{name}_", line, f"torch.Tensor.{name}_")
    public(namespaces=(), method=True)(method)


_one_parameter("exponential", (("lambd", 1.0),))
_one_parameter("geometric", (("p", None),))
_one_parameter("log_normal", (("mean", 1.0), ("std", 2.0)))
_one_parameter("cauchy", (("median", 0.0), ("sigma", 1.0)))
