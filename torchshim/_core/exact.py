"""Short recordings of which NumPy computes what XLA does, to the bit.

Choosing, comparing, counting, rounding: what scripts read (`(pred == y).sum()`, `x[i]`,
`torch.equal`) is mostly such. NumPy has computed it before XLA's thread would be awake,
and nothing is compiled. The equations of all events are one list here, without those
that are the same in each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core import checks
from torchshim._core.call import PythonCall
from torchshim._core.host_kernels import HostKernel
from torchshim._core.interim import Interim
from torchshim._core.lower import HostScalar, Lowered, called, filled
from torchshim._core.placement import put_default
from torchshim._core.program import Program
from torchshim._core.waiting import Waiter

# Primitives that give what they are given.
_SAME = frozenset("copy copy_p device_put name optimization_barrier real".split()) | {
    "stop_gradient"
}
# Those whose results have the bits of XLA's, and those that do of whole numbers: sums
# of floats have another order.
_EXACT = _SAME | frozenset(
    "abs add add_any and argmax argmin bitcast_convert_type broadcast_in_dim ceil "
    "clamp concatenate convert_element_type cummax cummin dim_as_value div "
    "dynamic_slice dynamic_update_slice eq expand_dims floor gather ge gt integer_pow "
    "iota is_finite le lt max min mul ne neg not or pad platform_index reduce_and "
    "reduce_max reduce_min reduce_or reduce_xor rem reshape rev round scatter "
    "select_n shift_left shift_right_arithmetic shift_right_logical sign slice sort "
    "split sqrt square squeeze stack sub tile transpose unstack xor".split()
)
_EXACT_INTEGERS = frozenset(
    "cumprod cumsum reduce_prod reduce_sum scatter-add scatter_add".split()
)
# Seconds, as measured: an equation, and each element of its result; what a program
# takes from its call to its results on XLA's thread, and on this one, as programs of so
# few operations run.
_EQUATION, _ELEMENT, _THREAD, _INLINE, _FEW = 1.2e-6, 1e-9, 30e-6, 5e-6, 1000
# Bytes up to which results stay NumPy's; what it takes to hand a larger one to JAX.
_SMALL, _HANDED = 1 << 14, 4e-6


def is_exact(kernel: HostKernel) -> bool:
    """Whether what NumPy computes for an event has the bits of what XLA does."""
    return all(
        kind in "biu" if name in _EXACT_INTEGERS else name in _EXACT
        for name, kind, _ in kernel.plan.facts
    )


class _Steps:
    """The equations of several kernels as one list, with a place for each value."""

    def __init__(self) -> None:
        # Values that are the same in each run; None at the places of the others.
        self.start: list[Any] = []
        self.known: list[bool] = []
        self.list: list[tuple[Callable[..., Any], tuple[int, ...], Any]] = []
        self.seconds = 0.0

    def place(self, value: Any = None) -> int:
        self.start.append(value)
        self.known.append(value is not None)
        return len(self.start) - 1

    def add(self, kernel: HostKernel, operands: Sequence[int]) -> list[int]:
        """Adds a kernel's equations; the places of its results."""
        plan = kernel.plan
        if kernel.direct is not None:
            made = self.place()
            self.list.append((kernel.direct, tuple(operands), made))
            elements = max(elements for _, _, elements in plan.facts)
            self.seconds += _EQUATION + elements * _ELEMENT
            return [made]
        places: list[int] = [-1] * len(plan.start)
        for mine, place in zip(plan.inputs, operands, strict=True):
            places[mine] = place
        for mine, value in enumerate(plan.start):
            if value is not None:
                places[mine] = self.place(value)
        for (name, _, elements), (function, taken, made, several, _) in zip(
            plan.facts, plan.steps, strict=True
        ):
            given = tuple([places[t] for t in taken])
            if name in _SAME:
                for mine, place in zip(made, given, strict=True):
                    places[mine] = place
                continue
            if all(self.known[g] for g in given):
                with np.errstate(all="ignore"):
                    found = function(*[self.start[g] for g in given])
                found = found if several else (found,)
                for mine, value in zip(made, found, strict=True):
                    places[mine] = self.place(np.asarray(value))
                continue
            for mine in made:
                places[mine] = self.place()
            results = tuple([places[m] for m in made])
            self.list.append((function, given, results if several else results[0]))
            self.seconds += _EQUATION + elements * _ELEMENT
        return [places[out] for out in plan.outputs]


_waiter = Waiter()


class Exact(Interim):
    """A recording that NumPy computes, until a program would pay.

    What is written to is copied.
    """

    __slots__ = ("_inputs", "_outputs", "_report", "_scalars", "_start")

    def __init__(
        self,
        lowered: Lowered,
        kernels: Sequence[HostKernel],
        calls: Sequence[Any],
        compiling: tuple[float, float],
        make: Callable[[], Program],
    ) -> None:
        super().__init__(lowered, make)
        steps = _Steps()
        slots = {slot: steps.place() for slot in lowered.slots}
        self._inputs = [
            (position, slots[slot])
            for position, slot in zip(lowered.inputs, lowered.slots, strict=True)
        ]
        # (place, where it stands in the host vector, whether it is an integer)
        self._scalars: list[tuple[int, int, bool]] = []
        reports: list[int] = []
        for event, operands, kernel, call in zip(
            lowered.calls, lowered.operands, kernels, calls, strict=True
        ):
            given = [slots[slot] for slot in operands]
            for value in filled(event, call):
                if isinstance(value, HostScalar):
                    place = steps.place()
                    self._scalars.append((place, value.at, value.integer))
                else:
                    place = steps.place(np.int64(value))
                given.append(place)
            made = steps.add(kernel, given)
            if kernel.found:
                reports.append(made.pop())
                lowered.sites += [
                    checks.CheckSite(c.error, c.text, called(event.call), event.line)
                    for c in kernel.found
                ]
            for k, place in enumerate(made):
                slots[event.slot + k] = place
        self._start, self._steps = steps.start, steps.list
        self._outputs = [slots[slot] for slot in lowered.outputs]
        self._report = reports
        self._enough = self._worth(steps.seconds, compiling)

    def _worth(self, running: float, compiling: tuple[float, float]) -> float:
        """The run after which a program is compiled.

        `compiling`: seconds that takes for each operator, and besides these.
        """
        metas = {
            event.slot + k: meta
            for event in self.lowered.calls
            for k, meta in enumerate(event.metas)
        }
        for slot in self.lowered.outputs:
            meta = metas.get(slot)
            if meta is not None and not _is_small(meta):
                running += _HANDED
        few = self.lowered.elements < _FEW
        lost = running - (_INLINE if few else _THREAD)
        if lost <= 0:
            return math.inf
        operator, others = compiling
        # A quarter of the time that compiling takes, as others lose (`stepwise`).
        worth = (operator * self.lowered.size + others) / (4 * lost)
        return max(_LEAST_RUNS, worth)

    def _run(self, scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        env = self._start.copy()
        for position, place in self._inputs:
            array = inputs[position]
            if array.__class__ is not np.ndarray:
                _waiter.wait(array)
                array = np.asarray(array)
            env[place] = array
        for place, at, integer in self._scalars:
            value = scalars[at]
            env[place] = np.int64(value) if integer else value
        with np.errstate(all="ignore"):
            for function, operands, results in self._steps:
                made = function(*[env[place] for place in operands])
                if results.__class__ is int:
                    env[results] = made
                else:
                    for place, value in zip(results, made, strict=True):
                        env[place] = value
        reports = [env[place] for place in self._report]
        return [own(env[place]) for place in self._outputs], (
            np.concatenate(reports) if reports else None
        )


# How often NumPy computes at least what it does not compute for good.
_LEAST_RUNS = 3


def _is_small(meta: Any) -> bool:
    return math.prod(meta.array_shape) * meta.dtype.itemsize <= _SMALL


def own(value: Any) -> Any:
    """An array that is no view of another, which may be overwritten."""
    if value.__class__ is not np.ndarray:
        return np.asarray(value)
    if value.base is not None or not value.flags.c_contiguous:
        value = np.array(value, order="C")
    return value if value.nbytes <= _SMALL else put_default(value)


def can_be_exact(lowered: Lowered) -> bool:
    """Whether a recording may be one of this kind: what is known without a trace."""
    return lowered.place is None and not any(
        isinstance(event.call, PythonCall) for event in lowered.calls
    )
