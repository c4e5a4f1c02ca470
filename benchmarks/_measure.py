"""Timing and its summary: warm-up, rounds, median and interquartile range."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# A sample shorter than this would measure the clock and the scheduler.
SAMPLE_SECONDS = 0.1
# So that torchshim has compiled light programs again, which it does fast at first: the
# small step's after 3,776 runs (`torchshim/_core/program.py`).
WARM_UP_SECONDS = 1.6


@contextmanager
def no_gc() -> Iterator[None]:
    """Collect now, and not again before the block ends."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def seconds(function: Callable[[], object], number: int = 1) -> float:
    """Seconds a call, averaged over `number` calls."""
    calls = range(number)
    with no_gc():
        start = time.perf_counter()
        for _ in calls:
            function()
        return (time.perf_counter() - start) / number


def warm_up(function: Callable[[], object], least: int = 5) -> int:
    """Call until hot; returns how many calls fill one sample."""
    function()  # compiles, if anything does
    calls, start = 0, time.perf_counter()
    while calls < least or time.perf_counter() - start < WARM_UP_SECONDS:
        function()
        calls += 1
    # The second half of the warm-up is the better guide to the hot speed.
    start = time.perf_counter()
    for _ in range(max(calls // 2, 1)):
        function()
    a_call = (time.perf_counter() - start) / max(calls // 2, 1)
    return max(int(SAMPLE_SECONDS / a_call), 1)


def timed(function: Callable[[], object], scale: float = 1.0) -> Callable[[], float]:
    """Warm `function` up; the result takes one sample, in seconds times `scale`."""
    number = warm_up(function)
    return lambda: seconds(function, number) * scale


def timed_ratio(
    above: Callable[[], object], below: Callable[[], object], pairs: int = 5
) -> Callable[[], float]:
    """Like `timed`, for the time of `above` over that of `below`, taken in turns."""
    number = max(min(warm_up(above), warm_up(below)) // 2, 1)

    def sample() -> float:
        ratios = [seconds(above, number) / seconds(below, number) for _ in range(pairs)]
        return statistics.median(ratios)

    return sample


def timed_on_best_threads(
    torch: Any, function: Callable[[], object], scale: float = 1.0
) -> Callable[[], float]:
    """Like `timed`; PyTorch runs on one thread and on all, and the faster counts.

    Small operations are often faster on one, and on a busy machine those on several
    threads wait for each other up to a hundred times longer than they compute.
    """
    if torch.__name__ != "torch":
        return timed(function, scale)  # XLA chooses for itself
    samples = {}
    for threads in {1, torch.get_num_threads()}:
        torch.set_num_threads(threads)
        samples[threads] = timed(function, scale)

    def sample() -> float:
        values = []
        for threads, take in samples.items():
            torch.set_num_threads(threads)
            function()
            values.append(take())
        return min(values)

    return sample


@dataclass(frozen=True)
class Summary:
    """The median of some samples, and the quartiles around it."""

    median: float
    q1: float
    q3: float
    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        if len(samples) == 1:
            q1 = median = q3 = samples[0]
        else:
            q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, q1, q3, tuple(samples))

    def as_json(self) -> dict[str, object]:
        return {
            "median": self.median,
            "q1": self.q1,
            "q3": self.q3,
            "samples": list(self.samples),
        }


def paired(
    above: Sequence[float],
    below: Sequence[float],
    combine: Callable[[float, float], float],
) -> Summary:
    """Combine the samples of each round, so that what slows a round down cancels."""
    return Summary.of([combine(a, b) for a, b in zip(above, below, strict=True)])
