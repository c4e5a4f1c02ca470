"""What a program asks of the library as a whole: threads, determinism, precision.

https://docs.pytorch.org/docs/2.13/torch.html#parallelism and the like.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchshim._core import record
from torchshim._core.determinism import determinism
from torchshim._core.device import device_count
from torchshim._core.precision import precision
from torchshim._functions._arguments import kind_of, warn, wrong

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "init_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "use_deterministic_algorithms",
]


def check_bool(setter: str, value: Any) -> None:
    """PyTorch's error for a switch that is no bool."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {kind_of(value)}")


# Threads ----------------------------------------------------------------------


def _cores() -> int:
    named = os.environ.get("OMP_NUM_THREADS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else (os.cpu_count() or 1)
    )


class _Threads:
    within = _cores()
    between = _cores()
    between_chosen = False


def _check_threads(function: str, value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise RuntimeError(f"{function} expects an int, but got {kind_of(value)}")
    if not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if not -(2**31) <= value < 2**31:
        raise ValueError("Overflow when unpacking long")
    if value <= 0:
        raise RuntimeError(f"{function} expects a positive integer")


def get_num_threads() -> int:
    """How many threads an operator may use on the CPU.

    https://docs.pytorch.org/docs/2.13/generated/torch.get_num_threads.html
    """
    return _Threads.within


def set_num_threads(number: int, /) -> None:
    """Sets what `get_num_threads` answers.

    XLA divides its work among the cores that the process may use when JAX starts
    (`taskset`, `os.sched_setaffinity`), which cannot be changed afterwards.
    """
    _check_threads("set_num_threads", number)
    _Threads.within = int(number)


def get_num_interop_threads() -> int:
    """How many operators may run at the same time on the CPU."""
    return _Threads.between


def set_num_interop_threads(number: int, /) -> None:
    """Sets what `get_num_interop_threads` answers; once a program, as in PyTorch."""
    _check_threads("set_num_interop_threads", number)
    if _Threads.between_chosen:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has "
            "started or set_num_interop_threads called"
        )
    _Threads.between, _Threads.between_chosen = number, True


def init_num_threads() -> None:
    """Does nothing: JAX starts its threads by itself."""


# Determinism ------------------------------------------------------------------


_XLA_FLAG = "--xla_gpu_deterministic_ops=true"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for the same results in every run.

    https://docs.pytorch.org/docs/2.13/generated/torch.use_deterministic_algorithms.html

    All programs are deterministic on CPU and TPU. On a GPU XLA decides that before it
    starts, by ``XLA_FLAGS=--xla_gpu_deterministic_ops=true``; without it this warns.
    """
    for position, (name, value) in enumerate(
        (("mode", mode), ("warn_only", warn_only))
    ):
        if not isinstance(value, bool):
            raise TypeError(
                wrong(
                    "_set_deterministic_algorithms",
                    name,
                    0 if position else 1,
                    "bool",
                    value,
                )
            )
    determinism.on, determinism.warn_only = mode, warn_only
    record.refresh_modes()
    if mode:
        _warn_of_gpus()


def _warn_of_gpus() -> None:
    if _XLA_FLAG not in os.environ.get("XLA_FLAGS", "") and device_count("cuda"):
        warn(
            "XLA runs deterministic algorithms on GPUs only if the environment says "
            f"so before it starts: XLA_FLAGS={_XLA_FLAG}"
        )


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on.

    >>> are_deterministic_algorithms_enabled()
    False
    """
    return determinism.on


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether what is not deterministic is to warn rather than to raise."""
    return determinism.warn_only


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a number or word: default, warn or error."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode: int
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, "
                f"`error`, but got {debug_mode}"
            )
        mode = _DEBUG_MODES[debug_mode]
    else:
        mode = debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0 (off), 1 (warn) or 2 (raise).

    >>> get_deterministic_debug_mode()
    0
    """
    if not determinism.on:
        return 0
    return 1 if determinism.warn_only else 2


# Precision --------------------------------------------------------------------


def set_float32_matmul_precision(precision: str, /) -> None:
    """How exactly products of float32 are computed: "highest", "high" or "medium".

    On GPUs anything below "highest" is TF32; on TPUs "high" is three products of
    bfloat16 and "medium" one. The CPU computes in float32 always. See
    https://docs.pytorch.org/docs/2.13/generated/torch.set_float32_matmul_precision.html
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            f"set_float32_matmul_precision expects a str, but got {kind_of(precision)}"
        )
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect. (Triggered internally at "
            "/__w/pytorch/pytorch/aten/src/ATen/Context.cpp:458.)"
        )
        return
    with changing_precision() as chosen:
        chosen.set_legacy_matmul(precision)


class changing_precision:
    """A change of precision: what was recorded before runs as it was asked for."""

    def __enter__(self) -> Any:
        record.local.rec.flush()
        return precision

    def __exit__(self, *exc_info: object) -> None:
        record.refresh_modes()


def get_float32_matmul_precision() -> str:
    """How exactly products of float32 are computed.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return precision.legacy_matmul()


def set_flush_denormal(mode: bool, /) -> bool:
    """Whether denormal numbers become zero; False where that cannot be had.

    XLA flushes them on every platform, and nothing turns that off.
    """
    check_bool("flush_denormal", mode)
    return mode
