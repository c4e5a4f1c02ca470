"""The line search of LBFGS.

Losses are Python's floats; slopes are NumPy scalars of the parameters' dtype, in which
PyTorch, whose are 0-dim tensors, rounds as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchshim._tensor import Tensor


def cubic_minimum(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None
) -> Any:
    """Where the cubic through two points with these slopes is least, within bounds."""
    low, high = bounds or ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else np.sqrt(square)
    with np.errstate(divide="ignore", invalid="ignore"):
        if x1 <= x2:
            least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
        else:
            least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


class Point:
    """A step length, with the loss, the gradient and the slope there."""

    __slots__ = ("f", "g", "slope", "t")

    def __init__(self, t: Any, f: Any, g: Any, slope: Any) -> None:
        self.t, self.f, self.g, self.slope = t, f, g, slope


def strong_wolfe(
    evaluate: Callable[[Any], Point],
    t: Any,
    start: Point,
    size: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Point, int]:
    """A point that fulfils the strong Wolfe conditions, and how often it evaluated.

    `evaluate(t)` gives the point at a step length; `size` is the largest element of
    the direction.
    """
    f, slope = start.f, start.slope
    new = evaluate(t)
    evaluations, iterations = 1, 0
    before = start
    bracket: list[Point] = []
    done = False
    # Forward, until an interval holds a point that will do.
    while iterations < max_ls:
        if new.f > f + c1 * new.t * slope or (iterations > 1 and new.f >= before.f):
            bracket = [before, new]
            break
        if abs(new.slope) <= -c2 * slope:
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [before, new]
            break
        bounds = new.t + 0.01 * (new.t - before.t), new.t * 10
        t = cubic_minimum(
            before.t, before.f, before.slope, new.t, new.f, new.slope, bounds
        )
        before, new = new, evaluate(t)
        evaluations += 1
        iterations += 1
    if iterations == max_ls:
        bracket = [start, new]

    # Inwards, until the interval is small or the point is found.
    stuck = False
    low, high = (0, 1) if bracket[0].f <= bracket[-1].f else (1, 0)
    while not done and iterations < max_ls:
        a, b = bracket
        if abs(b.t - a.t) * size < tolerance_change:
            break
        t = cubic_minimum(a.t, a.f, a.slope, b.t, b.f, b.slope)
        first, last = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) < margin:
            # At an end, or near one for the second time: away from it.
            if stuck or t >= last or t <= first:
                t = last - margin if abs(t - last) < abs(t - first) else first + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(t)
        evaluations += 1
        iterations += 1
        if new.f > f + c1 * new.t * slope or new.f >= bracket[low].f:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        else:
            if abs(new.slope) <= -c2 * slope:
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    return bracket[low], evaluations


def with_tensors(
    obj_func: Callable[..., tuple[float, Any]],
    x: Any,
    t: Any,
    d: Any,
    f: Any,
    g: Any,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Any, Any, Any, int]:
    """The search as optimizers written after PyTorch's LBFGS call it.

    `obj_func(x, t, d)` gives the loss, a number, and the flat gradient, a tensor, where
    a step of length `t` along `d` leads to; `f` and `g` are these at `x`, `gtd` is
    `g @ d`. Returns loss, gradient and length of the step found, and the number of
    evaluations. Follows ``torch.optim.lbfgs._strong_wolfe``.
    """

    def evaluate(t: Any) -> Point:
        f, g = obj_func(x, t, d)
        return Point(t, f, g, g.dot(d))

    start, size = Point(0, f, g, gtd), d.abs().max()
    found, evaluations = strong_wolfe(
        evaluate, t, start, size, c1, c2, tolerance_change, max_ls
    )
    return found.f, found.g, found.t, evaluations
