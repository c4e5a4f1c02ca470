"""An explicit `gc.collect()` ends the recording, which holds what it has to compute.

PyTorch frees a graph, and the leaves under it, with the last reference to it. Here the
running recording refers to them until something is read. A program that collects
garbage by hand wants its memory back, or looks whether something is gone.
"""

from __future__ import annotations

import gc
import sys
from opcode import opmap
from typing import Any

from torchshim._core.callers import is_own
from torchshim._core.record import local

# The instructions that call a function; what allocates is mostly another one.
_CALLS = frozenset(
    opmap[name]
    for name in ("PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX")
    if name in opmap
)


def _before_collecting(phase: str, info: dict[str, Any]) -> None:
    if phase != "start" or info["generation"] < 2:
        return
    # Python collects at any allocation, too: within a call here the recording may not
    # end, and elsewhere it would be cut at another place each time.
    frame = sys._getframe().f_back
    if frame is None or is_own(frame):
        return
    code = frame.f_code
    if "collect" in code.co_names and code.co_code[frame.f_lasti] in _CALLS:
        try:
            local.rec.flush()
        except Exception:
            pass  # the next read meets it again


gc.callbacks.append(_before_collecting)
