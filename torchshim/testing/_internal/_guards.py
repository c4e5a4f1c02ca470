"""Guards of global state, and decorators made of them."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim.testing._internal._parametrization import Made, Test, _TestParametrizer


class AlwaysWarnTypedStorageRemoval:
    """Whether the warning about typed storages is given every time."""

    def __init__(self, always_warn: bool) -> None:
        if not isinstance(always_warn, bool):
            raise AssertionError(
                f"expected always_warn to be bool, got {type(always_warn)}"
            )
        self.always_warn = always_warn

    def __enter__(self) -> None:
        self._before = torch.storage._get_always_warn_typed_storage_removal()
        torch.storage._set_always_warn_typed_storage_removal(self.always_warn)

    def __exit__(self, *error: Any) -> None:
        torch.storage._set_always_warn_typed_storage_removal(self._before)


class CudaSyncGuard:
    """Whether waiting for a GPU warns or is an error."""

    def __init__(self, sync_debug_mode: Any) -> None:
        self.mode = sync_debug_mode

    def __enter__(self) -> None:
        self._before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode(self.mode)

    def __exit__(self, *error: Any) -> None:
        torch.cuda.set_sync_debug_mode(self._before)


class SwapTensorsGuard:
    """Whether modules swap their parameters when they are converted."""

    def __init__(self, use_swap_tensors: bool | None) -> None:
        self.use_swap_tensors = use_swap_tensors

    def __enter__(self) -> None:
        settings = torch.__future__
        self._before = settings.get_swap_module_params_on_conversion()
        if self.use_swap_tensors is not None:
            settings.set_swap_module_params_on_conversion(self.use_swap_tensors)

    def __exit__(self, *error: Any) -> None:
        torch.__future__.set_swap_module_params_on_conversion(self._before)


def wrapSwapTensorsTest(swap: bool | None = None) -> Callable[[Any], Any]:
    """A test within a `SwapTensorsGuard`."""

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> None:
            with SwapTensorsGuard(swap):
                fn(*args, **kwargs)

        return run

    return decorate


class swap(_TestParametrizer):
    """A test for each of these values of `SwapTensorsGuard`."""

    def __init__(self, swap_values: Iterable[bool]) -> None:
        self.swap_values = swap_values

    def _parametrize_test(
        self, test: Test, generic_cls: Any, device_cls: Any
    ) -> Iterator[Made]:
        for value in self.swap_values:
            yield wrapSwapTensorsTest(value)(test), f"swap_{value}", {}, lambda _: []


def _restoring(read: Callable[[], Any], write: Callable[[Any], Any]) -> Any:
    """A decorator that puts a setting back after a test."""

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            before = read()
            try:
                return fn(*args, **kwargs)
            finally:
                write(before)

        return run

    return decorate


def _precisions() -> list[Any]:
    b = torch.backends
    return [
        *(b.mkldnn.conv, b.mkldnn.rnn, b.mkldnn.matmul),
        *(b.cudnn.conv, b.cudnn.rnn, b.cuda.matmul),
    ]


def _read_precisions() -> list[Any]:
    return [setting.fp32_precision for setting in _precisions()]


def _write_precisions(values: Iterable[Any]) -> None:
    for setting, value in zip(_precisions(), values, strict=True):
        setting.fp32_precision = value


recover_orig_fp32_precision = _restoring(_read_precisions, _write_precisions)
setBlasBackendsToDefaultFinally = _restoring(
    lambda: torch.backends.cuda.preferred_blas_library(),
    lambda value: torch.backends.cuda.preferred_blas_library(value),
)
setLinalgBackendsToDefaultFinally = _restoring(
    lambda: torch.backends.cuda.preferred_linalg_library(),
    lambda value: torch.backends.cuda.preferred_linalg_library(value),
)

setSdpaBackendsToDefaultFinally = _restoring(
    lambda: torch.backends.cuda.preferred_rocm_fa_library(),
    lambda value: torch.backends.cuda.preferred_rocm_fa_library(value),
)


def with_ieee_matmul_precision(fn: Any) -> Any:
    """A test with products in full float32."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        torch.backends.mkldnn.matmul.fp32_precision = "ieee"
        return fn(*args, **kwargs)

    return recover_orig_fp32_precision(run)


def patch_test_members(updates: dict[str, Any]) -> Callable[[Any], Any]:
    """A test with other attributes of its test case."""

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = {name: getattr(self, name) for name in updates}
            for name, value in updates.items():
                setattr(self, name, value)
            try:
                return fn(self, *args, **kwargs)
            finally:
                for name, value in before.items():
                    setattr(self, name, value)

        return run

    return decorate


@contextlib.contextmanager
def check_leaked_tensors(
    limit: int = 1, matched_type: Any = torch.Tensor
) -> Iterator[list[Any]]:
    """Warns if the block leaves cycles of references that hold tensors."""
    found: list[Any] = []
    try:
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        yield found
        gc.collect()
        found.extend(each for each in gc.garbage if isinstance(each, matched_type))
        if found:
            warnings.warn(
                f"{len(found)} tensors were found in the garbage. Did you introduce a "
                "reference cycle?",
                stacklevel=2,
            )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def run_concurrently(
    worker_func: Any,
    num_threads: int | None = None,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> list[Any]:
    """The results of functions that begin together, each in a thread of its own."""
    if isinstance(worker_func, Iterable):
        functions = list(worker_func)
    else:
        functions = [worker_func] * (num_threads or 0)
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)
    errors: list[Exception] = []

    def work(i: int) -> None:
        try:
            barrier.wait()
            results[i] = functions[i](*args, **(kwargs or {}))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[-1]
    return results
