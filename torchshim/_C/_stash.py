"""Objects that programs keep by thread, also for the Python code of its backwards."""

from __future__ import annotations

import threading
from typing import Any

from torchshim._core.threads import keep

_stashed = keep(threading.local())


def _check(function: str, takes: str, key: Any, *others: Any) -> None:
    if not isinstance(key, str):
        given = ", ".join(map(repr, (key, *others)))
        raise TypeError(
            f"{function}(): incompatible function arguments. The following argument "
            f"types are supported:\n    1. {takes}\n\nInvoked with: {given}"
        )


def _stash_obj_in_tls(arg0: str, arg1: Any) -> None:
    """Keeps an object under a name, for this thread."""
    _check("_stash_obj_in_tls", "(arg0: str, arg1: object) -> None", arg0, arg1)
    vars(_stashed)[arg0] = arg1


def _is_key_in_tls(arg0: str) -> bool:
    """Whether this thread keeps something under a name."""
    _check("_is_key_in_tls", "(arg0: str) -> bool", arg0)
    return arg0 in vars(_stashed)


def _get_obj_in_tls(arg0: str) -> Any:
    """What this thread keeps under a name; RuntimeError if that is nothing."""
    _check("_get_obj_in_tls", "(arg0: str) -> object", arg0)
    if arg0 not in vars(_stashed):
        raise RuntimeError(
            "Expected py_objects.obj_dict_.count(key) to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        )
    return vars(_stashed)[arg0]
