"""`torch.testing._internal.common_distributed`: tests of several processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import torchshim as torch
import torchshim.distributed as dist
from torchshim.testing._internal._conditions import never_skipped, skip_when
from torchshim.testing._internal.common_utils import (
    FILE_SCHEMA as FILE_SCHEMA,
)
from torchshim.testing._internal.common_utils import (
    TestCase,
    find_free_port,
)

DEFAULT_WORLD_SIZE = 4
TIMEOUT_DEFAULT = int(os.environ.get("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "300"))


class TestSkip(NamedTuple):
    """How a process says that its test cannot run here."""

    __test__ = False

    exit_code: int
    message: str


TEST_SKIPS = {
    "backend_unavailable": TestSkip(
        72, "Skipped because distributed backend is not available."
    ),
    "small_worldsize": TestSkip(73, "Skipped due to small world size."),
    "no_cuda": TestSkip(74, "CUDA is not available."),
    "generic": TestSkip(
        86, "Test skipped at subprocess level, look at subprocess log for skip reason"
    ),
}

skip_if_win32 = never_skipped
requires_gloo = never_skipped


def skip_if_lt_x_gpu(x: int) -> Callable[[Any], Any]:
    """Skips a test unless there are so many GPUs."""
    return skip_when(
        lambda: not torch.cuda.is_available() or torch.cuda.device_count() < x,
        f"Need at least {x} CUDA device{'' if x == 1 else 's'}",
    )


def skip_if_no_gpu(func: Any) -> Any:
    """Skips a test where there is no GPU."""
    reason = TEST_SKIPS["no_cuda"].message
    return skip_when(lambda: not torch.cuda.is_available(), reason)(func)


def _never(reason: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: skip_when(lambda: True, reason)


requires_nccl = _never("c10d was not compiled with the NCCL backend")
requires_ucc = _never("c10d was not compiled with the UCC backend")
requires_mpi = _never("c10d was not compiled with the MPI backend")
nccl_skip_if_lt_x_gpu = _never("Test requires backend nccl to be one of {'gloo'}")
requires_nccl_version = requires_nccl


def skip_if_small_worldsize(func: Any) -> Any:
    """Skips a test of two processes and fewer."""
    few = int(os.environ.get("WORLD_SIZE", "0")) <= 2
    return unittest.skipIf(few, TEST_SKIPS["small_worldsize"].message)(func)


def create_tcp_store(
    addr: str = "localhost",
    world_size: int = 1,
    is_master: bool = True,
    timeout: timedelta = timedelta(minutes=5),
    wait_for_workers: bool = True,
    jit_class: bool = False,
    use_libuv: bool = True,
) -> Any:
    """A TCP store on a port that is free."""
    return dist.TCPStore(
        addr,
        find_free_port(),
        world_size,
        is_master,
        timeout=timeout,
        wait_for_workers=wait_for_workers,
        use_libuv=use_libuv,
    )


def tp_transports() -> None:
    """The transports of TensorPipe: whatever it takes."""


def simple_sparse_reduce_tests(
    rank: int, world_size: int, num_inputs: int = 1
) -> list[Any]:
    """No tests: sparse tensors are not sent."""
    return []


def cleanup_temp_dir(tmp_dir: Any) -> None:
    """Removes a temporary directory."""
    if tmp_dir is not None:
        tmp_dir.cleanup()


class MultiProcessTestCase(TestCase):
    """Tests that run in `world_size` processes, each with its `rank`.

    `setUp` of a test class calls `_spawn_processes`; `file_name` is a file that the
    processes share. They are forked: each would otherwise import everything anew.
    """

    MAIN_PROCESS_RANK = -1
    TEST_ERROR_EXIT_CODE = 10
    _context: ClassVar[Any] = multiprocessing.get_context("fork")

    def __init__(
        self, method_name: str = "runTest", methodName: str = "runTest"
    ) -> None:
        super().__init__(method_name, methodName)
        self.rank = self.MAIN_PROCESS_RANK
        self.processes: list[Any] = []
        self.skip_return_code_checks: list[Any] = []
        if self._testMethodName != "runTest":
            test = getattr(self, self._testMethodName)
            setattr(self, self._testMethodName, self._joined(test))

    @property
    def world_size(self) -> int:
        """How many processes run each test."""
        return DEFAULT_WORLD_SIZE

    @property
    def is_master(self) -> bool:
        """Whether this is the first of the processes."""
        return self.rank == 0

    def _joined(self, test: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            if self.rank == self.MAIN_PROCESS_RANK:
                self._join_processes(test)
            else:
                test()

        return run

    def setUp(self) -> None:
        super().setUp()
        self.rank = self.MAIN_PROCESS_RANK
        self.processes, self.skip_return_code_checks = [], []
        handle, self.file_name = tempfile.mkstemp()
        os.close(handle)

    def tearDown(self) -> None:
        super().tearDown()
        for process in self.processes:
            process.kill()
            process.join()
        self.processes = []

    def _spawn_processes(self) -> None:
        for rank in range(self.world_size):
            told, says = self._context.Pipe(duplex=False)
            arguments = rank, self._testMethodName, self.file_name, says
            process = self._context.Process(target=self._run, args=arguments)
            process.start()
            process.told = told
            says.close()
            self.processes.append(process)

    _fork_processes = _start_processes = _spawn_processes

    @classmethod
    def _run(cls, rank: int, test_name: str, file_name: str, pipe: Any) -> None:
        self = cls(test_name)
        self.rank, self.file_name = rank, file_name
        self.run_test(test_name, pipe)

    def run_test(self, test_name: str, parent_pipe: Any) -> None:
        """One process of a test: its exit code says how it went."""
        TestCase.setUp(self)
        code, text = 0, ""
        try:
            self._callTestMethod(getattr(self, test_name))
        except unittest.SkipTest as skipped:
            code, text = TEST_SKIPS["generic"].exit_code, str(skipped)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:
            code, text = self.TEST_ERROR_EXIT_CODE, traceback.format_exc()
        parent_pipe.send(text)
        if dist.is_initialized():
            dist.destroy_process_group()
        sys.stdout.flush()
        os._exit(code)

    def _join_processes(self, fn: Callable[[], Any]) -> None:
        end = time.monotonic() + TIMEOUT_DEFAULT
        while any(process.is_alive() for process in self.processes):
            codes = [process.exitcode for process in self.processes]
            if self.TEST_ERROR_EXIT_CODE in codes or time.monotonic() > end:
                break  # the others may wait for one that failed
            time.sleep(0.01)
        self._check_return_codes(fn)

    def _check_return_codes(self, fn: Any) -> None:
        for rank, process in enumerate(self.processes):
            text = process.told.recv() if process.told.poll() else ""
            code = process.exitcode
            if code == self.TEST_ERROR_EXIT_CODE:
                raise RuntimeError(
                    f"Process {rank} exited with error code {code} and exception:\n"
                    f"{text}"
                )
            if code in [skip.exit_code for skip in TEST_SKIPS.values()]:
                raise unittest.SkipTest(text)
        codes = [process.exitcode for process in self.processes]
        if None in codes:
            raise RuntimeError(f"Process {codes.index(None)} terminated or timed out")
        unchecked = fn in self.skip_return_code_checks
        if not unchecked and len(set(codes)) > 1:
            raise AssertionError(f"processes exited with different codes: {codes}")
        if not unchecked and codes and codes[0] != 0:
            raise AssertionError(f"Expected zero exit code but got {codes[0]}")


class MultiThreadedTestCase(TestCase):
    """Tests of process groups whose members are threads, which are skipped."""

    def setUp(self) -> None:
        raise unittest.SkipTest("members of process groups are processes")

    def _spawn_threads(self) -> None:
        raise unittest.SkipTest("members of process groups are processes")


def verify_ddp_error_logged(model_DDP: Any, err_substr: str | Sequence[str]) -> None:
    """Skips: nothing is logged of a `DistributedDataParallel`."""
    raise unittest.SkipTest("DistributedDataParallel logs no data")
