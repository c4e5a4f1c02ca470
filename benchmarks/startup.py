"""The time of an import, each in a new process that has imported nothing before."""

import time
from functools import partial
from importlib import import_module

from ._case import ENGINES, JAX, Case, Goal


def importing(name):
    # The import is the measurement, so an engine that is missing shows up in it.
    def sample():
        start = time.perf_counter()
        import_module(name)
        return time.perf_counter() - start

    return sample


CASES = [
    Case(
        name="import",
        unit="s",
        engines={name: partial(importing, name) for name in ENGINES},
        goals=(Goal(0.3, JAX, "difference"),),
        fresh=True,
    ),
]
