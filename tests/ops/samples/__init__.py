"""Samples: arguments that every operator is compared with PyTorch on.

One file an area, named as the area's file in `torchshim/_ops`. Samples are data, made
without torch: a NumPy array stands for a tensor (of its dtype and memory order), the
driver makes tensors of them, with `requires_grad` or without. In `samples/<area>.py`::

    from tests.ops.samples import attr, bf16, floats, ints, sample, samples

    @samples("add", "sub")                # names in REGISTRY
    def add_sub():
        yield sample(floats(2, 3), floats(3))
        yield sample(floats(2, 3), 2.0, alpha=3)
        yield sample(ints(3), floats(3).astype("float64"))
        yield sample(bf16([1, 2.5]), 1)             # bfloat16
        yield sample(floats(3, 2).T, floats(2, 3))  # strides are compared as well
        yield sample(floats(2, 3), floats(2)).raises()      # an error, at the call
        yield sample(floats(2), dtype=attr("float64"))      # torch.float64
        yield sample(floats(2), 2).twice()          # second derivatives too

Of each sample are compared: the results of the function (structure, dtype, shape,
values, requires_grad, grad_fn's name) with floating-point tensors requiring grad, their
gradients for fixed cotangents, and the in-place form; of the first sample also the
method, the call with every argument by keyword, and `out=`. Some of that is left out
by `sample(...).without("grad", "inplace", "out", "keywords", "method")`. `.raises()`
samples are only called and read. Keep samples few and small: all those of one operator
make one XLA program. Tolerances: `@samples("name", rtol=1e-5, why="...")`, see
`tests.oracle`.

The area's test module is three lines, see `tests/ops/test_arithmetic.py`. Then::

    /path/to/python-with-torch-and-jax -m tests.record ops.test_arithmetic
    pytest tests/ops/test_arithmetic.py -k 'add or sub'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

#: What a sample is compared in, beside the function's results.
FORMS = ("grad", "inplace", "keywords", "method", "out")


@dataclass(frozen=True)
class Sample:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    forms: tuple[str, ...] = FORMS
    second: bool = False
    fails: bool = False

    def without(self, *forms: str) -> Sample:
        """Not compared in these forms."""
        unknown = set(forms) - set(FORMS)
        if unknown:
            raise ValueError(f"no such forms: {sorted(unknown)}")
        return replace(self, forms=tuple(f for f in self.forms if f not in forms))

    def twice(self) -> Sample:
        """Second derivatives are compared too."""
        return replace(self, second=True)

    def raises(self) -> Sample:
        """The call, or reading its result, raises."""
        return replace(self, fails=True)


def sample(*args: Any, **kwargs: Any) -> Sample:
    """The sample of a call with these arguments."""
    return Sample(args, kwargs)


@dataclass(frozen=True)
class Attr:
    """Something in the module `torch`, by its dotted name."""

    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


def attr(name: str) -> Attr:
    """`torch.<name>`: a dtype, for example."""
    return Attr(name)


@dataclass(frozen=True)
class Tensor:
    """A tensor where an array does not say enough."""

    array: np.ndarray
    dtype: str | None = None
    grad: bool = True

    def __repr__(self) -> str:
        return f"{self.dtype or self.array.dtype}{list(self.array.shape)}"


def bf16(values: Any) -> Tensor:
    """A bfloat16 tensor with the values of a list or an array."""
    return Tensor(np.asarray(values, np.float32), "bfloat16")


def constant(values: Any) -> Tensor:
    """A tensor that never requires grad."""
    return Tensor(np.asarray(values), grad=False)


def f32(values: Any) -> np.ndarray:
    """A float32 array of these values."""
    return np.asarray(values, np.float32)


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """float32 values between `low` and `high`: distinct, in no order, none special."""
    n = int(np.prod(shape))
    # Multiples of the golden ratio, modulo 1, fill the interval evenly.
    unit = (0.5 + np.arange(1, n + 1) * 0.6180339887498949) % 1.0
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def doubles(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """As `floats`, in float64."""
    return floats(*shape, low=low, high=high).astype(np.float64)


def complexes(*shape: int, dtype: str = "complex64") -> np.ndarray:
    """Complex values in the square from -2-2j to 2+2j."""
    parts = floats(*shape, 2)
    return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)


def ints(*shape: int, low: int = -4, high: int = 5, dtype: str = "int64") -> np.ndarray:
    """Integers from `low` to `high - 1`."""
    n = int(np.prod(shape))
    return (low + (np.arange(n) * 7 + 3) % (high - low)).astype(dtype).reshape(shape)


def bools(*shape: int) -> np.ndarray:
    """Alternating truth values, in no plain order."""
    return ints(*shape) % 3 > 0


@dataclass
class Declared:
    """The samples of one operator, and how its results are compared."""

    make: Callable[[], Iterator[Sample]]
    options: dict[str, Any] = field(default_factory=dict)


SAMPLES: dict[str, Declared] = {}


def samples(*names: str, **options: Any) -> Callable[[Any], Any]:
    """Declares a generator of samples for the operators of these names."""

    def declare(make: Callable[[], Iterator[Sample]]) -> Any:
        for name in names:
            if name in SAMPLES:
                raise ValueError(f"samples of {name} are declared twice")
            SAMPLES[name] = Declared(make, options)
        return make

    return declare
