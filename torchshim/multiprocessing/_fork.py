"""Forks of a process that uses JAX's runtime: the child leaves that alone.

A `Process` of any context, a `Pool` and `os.fork` come here all the same.
"""

from __future__ import annotations

import os

try:
    from jax._src import xla_bridge
except ImportError:  # pragma: no cover - another JAX
    xla_bridge = None

from torchshim.utils.data._utils.forked import leave_runtime, prepare

_in_use = [False]


def _before() -> None:
    # A child of a process that has computed nothing yet starts a runtime of its own.
    started = getattr(xla_bridge, "backends_are_initialized", None)
    _in_use[0] = started is None or started()
    if _in_use[0]:
        prepare()


def _in_child() -> None:
    if _in_use[0]:
        leave_runtime()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
    if xla_bridge is not None and hasattr(xla_bridge, "_at_fork_handler_installed"):
        # JAX's handler only warns of what these two see to.
        xla_bridge._at_fork_handler_installed = True
