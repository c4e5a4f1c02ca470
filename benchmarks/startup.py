"""The time of an import, each in a new process that has imported nothing before.

Packages have their bytecode, as installed ones do, even where Python is told to
write none.
"""

import os
import sys
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from ._case import ENGINES, JAX, Case, Goal


def importing(name):
    found = find_spec(name)
    if found is not None:
        # (In a process of its own: what it imports would be missing from the figure.)
        folder = os.path.dirname(found.origin)
        os.spawnv(
            os.P_WAIT, sys.executable, [sys.executable, "-mcompileall", "-q", folder]
        )

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
