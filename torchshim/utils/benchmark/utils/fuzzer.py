"""Tensors of random shapes and layouts to time (``torch.utils.benchmark.Fuzzer``).

https://github.com/pytorch/pytorch/tree/v2.13.0/torch/utils/benchmark
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import torchshim as torch

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_ATTEMPTS = 1000


class FuzzedParameter:
    """A number, or another choice, drawn for each example.

    `distribution` is "uniform" or "loguniform" between `minval` and `maxval`, both
    included, or a dict from choices to probabilities. A `strict` parameter is not
    drawn again when an example is refused.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name = name
        self._minval, self._maxval = minval, maxval
        self._distribution = distribution
        self.strict = strict
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            # PyTorch 2.13 asks for the opposite here.
            if not abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            for which, bound in (("minval", minval), ("maxval", maxval)):
                if bound is not None:
                    raise AssertionError(
                        f"When passing a custom distribution, '{which}' must be None"
                    )
        elif distribution not in ("loguniform", "uniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")

    @property
    def name(self) -> str:
        """What tensors call it."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """A value."""
        low: Any = self._minval
        high: Any = self._maxval
        if isinstance(self._distribution, dict):
            choices = list(self._distribution)
            chances = tuple(self._distribution.values())
            return choices[state.choice(np.arange(len(choices)), p=chances)]
        if self._distribution == "loguniform":
            drawn = int(2 ** state.uniform(low=np.log2(low), high=np.log2(high)))
            return min(max(drawn, low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class ParameterAlias:
    """The value of another parameter, as a choice of a `FuzzedParameter`."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


def _product(values: Iterable[int], start: int = 1) -> int:
    return functools.reduce(operator.mul, map(int, values), start)


class FuzzedTensor:
    """A tensor made for each example: `size` and `steps` name parameters.

    With steps it is every so-many-th element of a larger tensor, and with
    `probability_contiguous` below one its dimensions may lie in another order.
    Examples with too few or too many elements or bytes are refused.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Any = torch.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Any] | None = None,
    ) -> None:
        self._name = name
        self._size, self._steps = size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = dtype
        self._cuda = cuda
        self._tensor_constructor = tensor_constructor

    @property
    def name(self) -> str:
        """The name under which examples have it."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **kwargs: Any) -> Any:
        """Random numbers: floating below one, or integers below 127."""
        if dtype.is_floating_point or dtype.is_complex:
            return torch.rand(size=size, dtype=dtype, device="cpu")
        return torch.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, Any]:
        size, steps, allocated = self._get_size_and_steps(params)
        make = self._tensor_constructor or self.default_tensor_constructor
        tensor = make(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            tensor = tensor.cuda()
        order = unchanged = np.arange(len(size))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and np.all(order == unchanged):
                order = state.permutation(tensor.dim())
            tensor = tensor.permute(tuple(order)).contiguous()
            tensor = tensor.permute(tuple(np.argsort(order)))
        pairs = zip(size, steps, strict=True)
        tensor = tensor[tuple(slice(0, n * step, step) for n, step in pairs)]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(self, params: dict[str, Any]) -> tuple[Any, Any, Any]:
        dim = len(self._size)
        if self._dim_parameter is not None:
            dim = params[self._dim_parameter]

        def resolved(values: Any) -> tuple[int, ...]:
            found = tuple(params.get(v, v) for v in values)[:dim]
            return found + (1,) * (dim - len(found))

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple(map(operator.mul, size, steps))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the parameters give a tensor that is not too small or too large."""
        size, _, allocated = self._get_size_and_steps(params)
        elements = _product(size)
        if elements < 0:
            raise AssertionError("Computed number of elements is negative")
        taken = _product(allocated, self._dtype.itemsize)
        least, most = self._min_elements, self._max_elements
        bound = self._max_allocation_bytes
        return not (
            (most is not None and elements > most)
            or (least is not None and elements < least)
            or (bound is not None and taken > bound)
        )


class Fuzzer:
    """Draws examples: tensors, what is known of them, and the parameters.

    An example that `constraints` or tensors refuse is drawn again. Raises ValueError
    for a name given twice, and by `take` when a thousand draws are refused.

    >>> sizes = FuzzedParameter("n", 2, 2, distribution="uniform")
    >>> fuzzer = Fuzzer([sizes], [FuzzedTensor("x", size=("n", 3))], seed=0)
    >>> [(tensors["x"].shape, params) for tensors, _, params in fuzzer.take(1)]
    [(torch.Size([2, 3]), {'n': 2})]
    """

    def __init__(
        self,
        parameters: list[Any],
        tensors: list[Any],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        if seed is None:
            fresh = np.random.RandomState()
            seed = int(fresh.randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters = self._unpack(parameters, FuzzedParameter)
        self._tensors = self._unpack(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        names = {p.name for p in self._parameters}
        twice = names.intersection(t.name for t in self._tensors)
        if twice:
            raise ValueError(f"Duplicate names in parameters and tensors: {twice}")
        self._rejections = self._total_generated = 0

    @staticmethod
    def _unpack(values: Iterable[Any], cls: type) -> tuple[Any, ...]:
        lists = ([v] if isinstance(v, cls) else v for v in values)
        return tuple(itertools.chain.from_iterable(lists))

    def take(self, n: int) -> Iterator[tuple[Any, Any, Any]]:
        """The first `n` examples; the same each time."""
        state = np.random.RandomState(self._seed)
        torch.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: known for name, (_, known) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The part of the draws that was refused."""
        drawn = self._total_generated
        return self._rejections / drawn if drawn else 0.0

    def _generate(self, state: np.random.RandomState) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for _ in range(_ATTEMPTS):
            params: dict[str, Any] = {}
            for each in self._parameters:
                if each.strict:
                    if each.name not in kept:
                        kept[each.name] = each.sample(state)
                    params[each.name] = kept[each.name]
                else:
                    params[each.name] = each.sample(state)
            params = self._resolve_aliases(params)
            self._total_generated += 1
            if all(allows(params) for allows in self._constraints) and all(
                t.satisfies_constraints(params) for t in self._tensors
            ):
                return params
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(params: dict[str, Any]) -> dict[str, Any]:
        params = dict(params)
        left = sum(isinstance(v, ParameterAlias) for v in params.values())
        while left:
            for name, value in params.items():
                if isinstance(value, ParameterAlias):
                    params[name] = params[value.alias_to]
            before = left
            left = sum(isinstance(v, ParameterAlias) for v in params.values())
            if left == before:
                raise ValueError(f"ParameterAlias cycle detected\n{params}")
        return params
