"""Random numbers: `rand`, `randn`, `randint`, `randperm`, `normal_`, `manual_seed`, …

https://docs.pytorch.org/docs/2.13/torch.html#random-sampling. On the CPU these are
PyTorch's own numbers, bit for bit; see `draws` for who draws them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import format_strides, preserve_format
from torchshim._core.meta import elementwise_strides
from torchshim._core.random import (
    Generator,
    default_generator,
    engine_of,
    seed_all,
)
from torchshim._core.record import untracked
from torchshim._derived import NEVER, fns, public
from torchshim._functions._arguments import (
    as_index,
    check_gradient,
    check_options,
    check_room,
    check_size,
    device_of,
    dtype_of,
    missing,
    number_of,
    size_of,
    tensor_argument,
    unfit,
    wrong,
)
from torchshim._functions.creation import finish, flagged, into, out_dtype
from torchshim._functions.draws import NORMAL, UNIFORM, Draw, drawn
from torchshim._functions.random_examples import check_no_out
from torchshim._functions.random_fill import fill_drawn
from torchshim._functions.random_parameters import normal_into, normal_of
from torchshim._functions.resizing import take_size
from torchshim._tensor import Tensor, on_cpu

Generator.wrap = staticmethod(on_cpu)


# Seeds --------------------------------------------------------------------------------


@public(overridden=NEVER)
def manual_seed(seed: int) -> Generator:
    """Restarts all default generators from a seed; returns the CPU's.

    >>> import torchshim as torch
    >>> torch.manual_seed(0).initial_seed()
    0
    """
    # As int() takes it: numbers of other types, 0-dim tensors, strings of digits.
    seed_all(int(seed))
    return default_generator


@public(overridden=NEVER)
def seed() -> int:
    """Restarts all default generators from a random seed, which it returns.

    https://docs.pytorch.org/docs/2.13/generated/torch.seed.html

    >>> import torchshim as torch
    >>> chosen = torch.seed()
    >>> chosen == torch.initial_seed()
    True
    """
    chosen = default_generator.seed()
    seed_all(chosen)
    return chosen


@public(overridden=NEVER)
def initial_seed() -> int:
    """The seed that the CPU's default generator started from.

    https://docs.pytorch.org/docs/2.13/generated/torch.initial_seed.html

    >>> import torchshim as torch
    >>> generator = torch.manual_seed(7)
    >>> number = torch.rand(1)
    >>> torch.initial_seed()
    7
    """
    return default_generator.initial_seed()


@public(overridden=NEVER)
def get_rng_state() -> Tensor:
    """The state of the CPU's default generator, a tensor of bytes.

    https://docs.pytorch.org/docs/2.13/generated/torch.get_rng_state.html

    >>> import torchshim as torch
    >>> state = torch.get_rng_state()
    >>> state.dtype, state.shape
    (torch.uint8, torch.Size([5056]))
    """
    return default_generator.get_state()


@public(overridden=NEVER)
def set_rng_state(new_state: Tensor) -> None:
    """Puts the CPU's default generator into a state that `get_rng_state` gave.

    https://docs.pytorch.org/docs/2.13/generated/torch.set_rng_state.html

    >>> import torchshim as torch
    >>> state = torch.get_rng_state()
    >>> first = torch.rand(3)
    >>> torch.set_rng_state(state)
    >>> torch.equal(first, torch.rand(3))
    True
    """
    default_generator.set_state(new_state)


# New tensors --------------------------------------------------------------------------


def _drawn(
    function: str,
    shape: tuple[int, ...],
    draw: Draw,
    dtype: dtypes.dtype,
    device: Any,
    generator: Any,
    requires_grad: bool,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    check_size(function, shape)
    check_room(shape, dtype, device)
    check_gradient(dtype, requires_grad)
    engine = engine_of(generator, function, device)
    made = drawn(draw, shape, dtype, device, engine, strides)
    return finish(made, requires_grad)


def _of_size(
    function: str,
    draw: Draw,
    given: tuple[Any, ...],
    size: Any,
    generator: Any,
    out: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    pin_memory: Any,
) -> Tensor:
    shape = size_of(function, given, size)
    check_options(function, layout, pin_memory, requires_grad)
    if generator is not None and not isinstance(generator, Generator):
        raise unfit(function)
    chosen = out_dtype(function, out, dtype, dtypes.get_default_dtype())
    device = device_of(function, device)
    if out is not None:
        made = _redrawn(function, out, shape, draw, generator)
        return flagged(made, requires_grad)
    return _drawn(function, shape, draw, chosen, device, generator, bool(requires_grad))


def _redrawn(
    function: str, out: Tensor, shape: tuple[int, ...], draw: Draw, generator: Any
) -> Tensor:
    """`out=` takes the size without a warning, and numbers in its memory's order."""
    check_no_out()
    check_size(function, shape)
    if function == "randn":  # which PyTorch composes
        out.resize_(shape)
    else:
        take_size(out, shape)
    with untracked():
        return fill_drawn(function, out, draw, fns.copy_, generator)


@public
def rand(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1).

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    rest = generator, out, dtype, layout, device, requires_grad, pin_memory
    return _of_size("rand", UNIFORM, args, size, *rest)


@public
def randn(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers with mean 0 and standard deviation 1.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    rest = generator, out, dtype, layout, device, requires_grad, pin_memory
    return _of_size("randn", NORMAL, args, size, *rest)


def _check_bounds(low: int, high: int) -> None:
    if not -(2**63) <= low <= high < 2**63 and low <= high:
        raise ValueError("Overflow when unpacking long long")
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= "
            f"to={high}"
        )


@public
def randint(
    *args: Any,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """Whole numbers from `low` (0) up to, not including, `high`.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([4, 9, 3])
    """
    names = ("low", "high", "size")
    sized = [i for i, a in enumerate(args) if isinstance(a, (tuple, list))]
    first = 1 if "low" not in named and (sized[:1] == [1] or len(args) == 1) else 0
    if "size" in named and len(args) == 2:
        first = 0
    given: dict[str, Any] = dict(zip(names[first:], args, strict=False))
    bad = len(args) > 3 - first or any(n in given or n not in names for n in named)
    given.update(named)
    low = as_index(given.get("low", 0), single=True)
    high = as_index(given.get("high"), single=True)
    size = given.get("size")
    if not bad and high is None and len(args) == 2 and len(given) == 2:
        raise TypeError(wrong("randint", "high", 1, "int", given.get("high")))
    if bad or low is None or high is None or not isinstance(size, (tuple, list)):
        raise unfit("randint")
    shape = size_of("randint", (size,))
    check_options("randint", layout, pin_memory, requires_grad)
    chosen = out_dtype("randint", out, dtype, dtypes.int64)
    device = device_of("randint", device)
    check_size("randint", shape)
    _check_bounds(low, high)
    draw = Draw("integers", (low, high))
    if out is not None:
        made = _redrawn("randint", out, shape, draw, generator)
        return flagged(made, requires_grad)
    flag = bool(requires_grad)
    return _drawn("randint", shape, draw, chosen, device, generator, flag)


@public
def randperm(
    n: Any = None,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The numbers from 0 to n - 1 in random order.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randperm(4)
    tensor([0, 1, 3, 2])
    """
    if n is None:
        raise missing("randperm", "n")
    count = as_index(n, single=True)
    if count is None:
        raise TypeError(wrong("randperm", "n", 1, "int", n))
    check_size("randperm", (count,))
    check_options("randperm", layout, pin_memory, requires_grad)
    chosen = out_dtype("randperm", out, dtype, dtypes.int64)
    device = device_of("randperm", device)
    _check_order(count, chosen)

    draw = Draw("permutation")
    flag = bool(requires_grad)
    if out is not None:
        check_no_out()
    result = _drawn("randperm", (count,), draw, chosen, device, generator, flag)
    return result if out is None else into(out, result)


def _check_order(count: int, dtype: dtypes.dtype) -> None:
    """Raises where a dtype cannot tell the numbers up to `count` apart."""
    if dtype.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise NotImplementedError(
            f"\"randperm\" not implemented for '{dtype.scalar_name}'"
        )
    if dtype.category == dtypes.INTEGER:
        limit = int(np.iinfo(dtypes.array_dtype(dtype)).max)
    else:
        # PyTorch does not ask whether bfloat16 tells them apart.
        digits = {"float16": 11, "bfloat16": 63, "float32": 24, "float64": 53}
        limit = 2 ** digits.get(dtype.name, 0)
    if count > limit + 1 and dtype.category == dtypes.INTEGER:
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name}_t without overflow"
        )
    if count > limit + 1:
        most = "2049" if dtype is dtypes.float16 else f"2^{digits[dtype.name]}+1"
        raise RuntimeError(
            f"n cannot be greater than {most} for {dtype.scalar_name} type."
        )


def _like(
    function: str,
    input: Any,
    draw: Draw,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
    wanted: Any,
    generator: Any,
) -> Tensor:
    tensor_argument(function, "input", 1, input)
    check_options(function, layout, pin_memory, requires_grad)
    meta = input._tmeta
    shape = tuple(meta.shape)
    if wanted in (None, preserve_format):
        strides = elementwise_strides(shape, [(shape, meta.strides)])
    else:
        strides = format_strides(shape, wanted)
    chosen = dtype_of(function, dtype) or meta.dtype
    where = meta.device if device is None else device_of(function, device)
    flag = bool(requires_grad)
    return _drawn(function, shape, draw, chosen, where, generator, flag, strides)


@public
def rand_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """Uniform numbers in [0, 1), as many as `input` has elements.

    In its shape, dtype and memory order, unless others are asked for. Raises
    NotImplementedError for dtypes that are not floating-point.

    >>> import torchshim as torch
    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    rest = dtype, layout, device, pin_memory, requires_grad, memory_format, generator
    return _like("rand_like", input, UNIFORM, *rest)


@public
def randn_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """Normal numbers, as many as `input` has elements; see `rand_like`.

    >>> import torchshim as torch
    >>> torch.randn_like(torch.zeros(2), dtype=torch.float64).dtype
    torch.float64
    """
    rest = dtype, layout, device, pin_memory, requires_grad, memory_format, generator
    return _like("randn_like", input, NORMAL, *rest)


@public
def randint_like(
    input: Any,
    low: Any = None,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """Whole numbers from `low` (0) up to `high`, as many as `input` has elements.

    `high` itself is not among them. RuntimeError where there is none between the two.

    >>> import torchshim as torch
    >>> torch.randint_like(torch.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    if high is None or low is None:
        low, high = 0, low if high is None else high
    least, limit = as_index(low), as_index(high)
    if least is None:
        raise TypeError(wrong("randint_like", "low", 2, "int", low))
    if limit is None:
        raise TypeError(wrong("randint_like", "high", 3, "int", high))
    _check_bounds(least, limit)
    rest = dtype, layout, device, pin_memory, requires_grad, memory_format, generator
    return _like("randint_like", input, Draw("integers", (least, limit)), *rest)


@public
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers; `mean` and `std` are tensors, or numbers with a `size`.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.normal(0.0, 1.0, (2,))
    tensor([ 1.5410, -0.2934])
    """
    if size is not None:
        number_of("normal", "mean", 1, mean)
        scale = float(number_of("normal", "std", 2, std))
        if not isinstance(size, (tuple, list)):
            raise TypeError(wrong("normal", "size", 3, "tuple of ints", size))
        draw = Draw("normal", (float(mean), scale))
        rest = generator, out, dtype, layout, device, requires_grad, pin_memory
        return _of_size("normal", draw, (size,), None, *rest)
    if out is None:
        return normal_of(mean, std, generator)
    check_no_out()
    return normal_into(out, mean, std, generator)
