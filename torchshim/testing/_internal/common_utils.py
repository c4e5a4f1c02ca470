"""`torch.testing._internal.common_utils`: what PyTorch's test files import from it.

Test cases and parametrized tests, conditions and skips, random matrices, guards of
global state, gradient checks. What concerns the build or the continuous integration of
PyTorch itself is not here.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import io
import itertools
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim.testing import make_tensor as make_tensor
from torchshim.testing._internal._conditions import *  # noqa: F403
from torchshim.testing._internal._conditions import TEST_WITH_SLOW_GRADCHECK
from torchshim.testing._internal._equality import *  # noqa: F403
from torchshim.testing._internal._equality import has_torch_dtype
from torchshim.testing._internal._guards import *  # noqa: F403
from torchshim.testing._internal._matrices import *  # noqa: F403
from torchshim.testing._internal._nested_test_case import *  # noqa: F403
from torchshim.testing._internal._parametrization import *  # noqa: F403
from torchshim.testing._internal._parametrization import (
    _TestParametrizer as _TestParametrizer,
)
from torchshim.testing._internal._test_case import *  # noqa: F403
from torchshim.testing._internal._test_case import TestCase
from torchshim.testing._internal._test_gradients import (
    TestGradients as TestGradients,
)
from torchshim.testing._internal._values import *  # noqa: F403

# Running ----------------------------------------------------------------------------


def run_tests(argv: list[str] | None = None) -> None:
    """Runs the tests of the main module, as `unittest.main`."""
    unittest.main(argv=sys.argv if argv is None else argv)


def raise_on_run_directly(file_to_call: str) -> None:
    """Raises the error of a file whose tests another file runs."""
    raise RuntimeError(
        "This test file is not meant to be run directly, use:\n\n"
        f"\tpython {file_to_call} TESTNAME\n\ninstead."
    )


def load_tests(loader: Any, tests: Any, pattern: Any) -> unittest.TestSuite:
    """All tests, for `unittest`'s protocol."""
    suite = unittest.TestSuite()
    for group in tests:
        suite.addTests(group)
    return suite


class NoTest:
    """A base for what stands in the place of a missing test case."""

    __test__ = False


class TestCaseBase(TestCase):
    """A base of test classes."""


# Dtypes and NumPy -------------------------------------------------------------------

numpy_to_torch_dtype_dict = {
    np.bool_: torch.bool,
    np.uint8: torch.uint8,
    np.uint16: torch.uint16,
    np.uint32: torch.uint32,
    np.uint64: torch.uint64,
    np.int8: torch.int8,
    np.int16: torch.int16,
    np.int32: torch.int32,
    np.int64: torch.int64,
    np.float16: torch.float16,
    np.float32: torch.float32,
    np.float64: torch.float64,
    np.complex64: torch.complex64,
    np.complex128: torch.complex128,
}
torch_to_numpy_dtype_dict = {v: k for k, v in numpy_to_torch_dtype_dict.items()} | {
    torch.bfloat16: np.float32
}
has_corresponding_torch_dtype = has_torch_dtype
# Absolute tolerances of the older tests of layers.
dtype2prec_DONTUSE = {
    torch.float: 1e-5,
    torch.double: 1e-5,
    torch.half: 1e-2,
    torch.bfloat16: 1e-1,
}


def numpy_to_torch_dtype(np_dtype: Any) -> Any:
    """The dtype of torch for one of NumPy."""
    return numpy_to_torch_dtype_dict[np.dtype(np_dtype).type]


# State ------------------------------------------------------------------------------


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Puts the random generators back afterwards."""
    state = torch.get_rng_state()
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if on_gpus is not None:
            torch.cuda.set_rng_state_all(on_gpus)


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """Another default dtype."""
    saved = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(saved)


@contextlib.contextmanager
def set_default_tensor_type(tensor_type: Any) -> Iterator[None]:
    """Another default type of tensors."""
    saved = torch.tensor([]).type()
    torch.set_default_tensor_type(tensor_type)
    try:
        yield
    finally:
        torch.set_default_tensor_type(saved)


class DeterministicGuard:
    """Another deterministic mode."""

    def __init__(
        self,
        deterministic: bool,
        *,
        warn_only: bool = False,
        fill_uninitialized_memory: bool = True,
    ) -> None:
        self.deterministic = deterministic
        self.warn_only = warn_only
        self.fill = fill_uninitialized_memory

    @classmethod
    def _current_state(cls) -> DeterministicGuard:
        return cls(
            torch.are_deterministic_algorithms_enabled(),
            warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
            fill_uninitialized_memory=torch.utils.deterministic.fill_uninitialized_memory,
        )

    def _update(self) -> None:
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = self.fill

    def __enter__(self) -> None:
        self._restore = self._current_state()
        self._update()

    def __exit__(self, *error: Any) -> None:
        self._restore._update()


def wrapDeterministicFlagAPITest(fn: Any) -> Any:
    """Puts the deterministic mode back after a test."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> None:
        with DeterministicGuard._current_state():
            fn(*args, **kwargs)

    return run


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    """Without collection of cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def find_free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def find_library_location(lib_name: str) -> Path:
    """Where a library of PyTorch's tests would be: it is loaded as an empty one."""
    path = Path(torch.__file__).resolve().parent / "lib" / lib_name
    torch.ops.test_libraries.add(str(path))
    return path


@contextlib.contextmanager
def set_cwd(path: str) -> Iterator[None]:
    """In another directory."""
    with contextlib.chdir(path):
        yield


def suppress_warnings(fn: Any) -> Any:
    """A test whose warnings are not shown."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fn(*args, **kwargs)

    return run


@contextlib.contextmanager
def skip_exception_type(exc_type: Any) -> Iterator[None]:
    """Skips a test that raises such an exception."""
    try:
        yield
    except exc_type as error:
        raise unittest.SkipTest(f"not implemented: {error}") from error


def retry(
    ExceptionToCheck: Any,
    tries: int = 3,
    delay: float = 3,
    skip_after_retries: bool = False,
) -> Callable[[Any], Any]:
    """Calls again what raises such an exception."""

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            for _ in range(tries - 1):
                try:
                    return fn(*args, **kwargs)
                except ExceptionToCheck as error:
                    print(f"{error}, Retrying in {delay:d} seconds...")
                    time.sleep(delay)
            try:
                return fn(*args, **kwargs)
            except ExceptionToCheck as error:
                if skip_after_retries:
                    message = f"Skipping after {tries} consecutive {error}"
                    raise unittest.SkipTest(message) from error
                raise

        return run

    return decorate


# Files and processes ----------------------------------------------------------------


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **kwargs: Any) -> Iterator[str]:
    """The name of a file that others may open, too."""
    if "delete" in kwargs and kwargs["delete"] is not False:
        raise UserWarning(
            "only TemporaryFileName with delete=False is supported on Windows."
        )
    file = tempfile.NamedTemporaryFile(*args, **kwargs | {"delete": False})
    try:
        file.close()
        yield file.name
    finally:
        os.unlink(file.name)


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """The name of a directory that goes afterwards."""
    with tempfile.TemporaryDirectory(suffix=suffix) as name:
        yield name


class BytesIOContext(io.BytesIO):
    """Bytes that stay open after a `with`."""

    def __enter__(self) -> BytesIOContext:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def shell(
    command: list[str],
    cwd: str | None = None,
    env: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    timeout: float | None = None,
) -> int:
    """The exit status of a command."""
    sys.stdout.flush()
    sys.stderr.flush()
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=stdout, stderr=stderr, timeout=timeout
    )
    return done.returncode


# Values -----------------------------------------------------------------------------


def noncontiguous_like(t: Any) -> Any:
    """The same values in a tensor that is not contiguous, NaN between them."""
    if not t.is_contiguous():
        return t
    value: Any = 12
    if t.dtype.is_floating_point or t.dtype.is_complex:
        value = math.nan
    elif t.dtype == torch.bool:
        value = True
    result = t.new_empty((*t.shape, 2))
    result[..., 0] = value
    result[..., 1] = t.detach()
    return result[..., 1].detach().requires_grad_(t.requires_grad)


def iter_indices(tensor: Any) -> Iterable[Any]:
    """The indices of all elements: numbers for vectors, else tuples."""
    if tensor.dim() < 2:
        return range(tensor.size(0) if tensor.dim() else 0)
    return itertools.product(*(range(s) for s in tensor.size()))


def is_iterable(obj: Any) -> bool:
    """Whether `iter` takes it."""
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def is_iterable_of_tensors(iterable: Any, include_empty: bool = False) -> bool:
    """Whether it holds tensors alone; what is empty counts as `include_empty`."""
    if isinstance(iterable, torch.Tensor):
        return False
    try:
        if len(iterable) == 0:
            return include_empty
        return all(isinstance(t, torch.Tensor) for t in iterable)
    except TypeError:
        return False


def clone_input_helper(input: Any) -> Any:
    """Copies of the tensors of a sequence."""
    if isinstance(input, torch.Tensor):
        return torch.clone(input)
    if isinstance(input, (list, tuple)):
        return tuple(map(clone_input_helper, input))
    return input


def first_sample(self: unittest.TestCase, samples: Iterable[Any]) -> Any:
    """The first of the samples; skips a test without any."""
    try:
        return next(iter(samples))
    except StopIteration as error:
        raise unittest.SkipTest("Skipped! Need at least 1 sample input") from error


def get_function_arglist(func: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    return inspect.getfullargspec(func).args


def get_tensors_from(args: Any, kwargs: Any) -> set[Any]:
    """The tensors among arguments."""
    values = [*args, *kwargs.values()]
    return {a for a in values if isinstance(a, torch.Tensor)}


# Gradients --------------------------------------------------------------------------


def gradcheck(fn: Any, inputs: Any, **kwargs: Any) -> bool:
    """`torch.autograd.gradcheck`, by default fast and with batched gradients."""
    return torch.autograd.gradcheck(fn, inputs, **_checked(kwargs))


def gradgradcheck(
    fn: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any
) -> bool:
    """`torch.autograd.gradgradcheck`, as `gradcheck` here."""
    return torch.autograd.gradgradcheck(fn, inputs, grad_outputs, **_checked(kwargs))


def _checked(kwargs: dict[str, Any]) -> dict[str, Any]:
    given = {k: v for k, v in kwargs.items() if v is not None}
    default = {"check_batched_grad": True, "fast_mode": not TEST_WITH_SLOW_GRADCHECK}
    return default | given


def _assertGradAndGradgradChecks(
    test_case: Any, apply_fn: Any, inputs: Any, **kwargs: Any
) -> None:
    test_case.assertTrue(gradcheck(apply_fn, inputs, **kwargs))
    test_case.assertTrue(gradgradcheck(apply_fn, inputs, **kwargs))


class CudaNonDefaultStream:
    """On streams of its own: there is one stream only."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def is_coalesced_indices(s: Any) -> bool:
    """Whether the indices of a sparse tensor are in order and none is twice there."""
    found = s._indices().numpy()
    if s.layout is not torch.sparse_coo or found.shape[1] < 2:
        return True
    at = np.ravel_multi_index(found, s.shape[: s.sparse_dim()]) if len(found) else 0
    return bool((np.diff(at) > 0).all()) if len(found) else found.shape[1] <= 1


def to_gpu(obj: Any, type_map: dict[Any, Any] | None = None) -> Any:
    """A copy on the GPU of tensors, storages and containers; dtypes by `type_map`."""
    types = type_map or {}
    if isinstance(obj, torch.Tensor):
        if not obj.is_leaf:
            raise AssertionError("obj should be a leaf tensor")
        kind = types.get(obj.dtype, obj.dtype)
        moved = obj.detach().clone().to(dtype=kind, device="cuda")
        return moved.requires_grad_(obj.requires_grad)
    if torch.is_storage(obj):
        return obj.new().resize_(obj.size()).copy_(obj)
    if isinstance(obj, (list, tuple)):
        return type(obj)(to_gpu(each, types) for each in obj)
    return copy.deepcopy(obj)


def device_sleep(device: str, cycles: int) -> None:
    """Has a GPU wait: nothing on the CPU."""
    if torch.device(device).type == "cuda":
        torch.cuda._sleep(cycles)


ADDRESS_IN_USE, CONNECT_TIMEOUT = "Address already in use", "connect() timed out."
FILE_SCHEMA = "file://"


def retry_on_connect_failures(
    func: Any = None, connect_errors: Any = ADDRESS_IN_USE
) -> Any:
    """Runs a test again, up to ten times, where it fails with such an error."""
    if func is None:
        return functools.partial(
            retry_on_connect_failures, connect_errors=connect_errors
        )
    texts = [connect_errors] if isinstance(connect_errors, str) else connect_errors

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        for left in reversed(range(10)):
            try:
                return func(*args, **kwargs)
            except RuntimeError as error:
                if not left or str(error) not in texts:
                    raise
                time.sleep(random.random())
        return None

    return run
