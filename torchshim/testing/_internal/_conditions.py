"""What tests ask about the machine, and the decorators that skip by it.

Conditions that can never hold here (ROCm, Dynamo, MPS) are False, and the decorators
that skip for them leave a test as it is.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import sys
import unittest
from collections.abc import Callable
from typing import Any

import torchshim as torch


def _flag(name: str) -> bool:
    return os.environ.get(name, "0") == "1"


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_PPC = platform.machine() == "ppc64le"
IS_X86 = platform.machine() in ("x86_64", "i386")
IS_ARM64 = platform.machine() in ("arm64", "aarch64", "ARM64")
IS_S390X = platform.machine() == "s390x"
IS_JETSON = IS_SANDCASTLE = IS_FBCODE = IS_REMOTE_GPU = IN_RE_WORKER = False
IS_CI = bool(os.environ.get("CI"))
IS_FILESYSTEM_UTF8_ENCODING = sys.getfilesystemencoding() == "utf-8"

TEST_NUMPY = True
TEST_SCIPY = _exists("scipy")
TEST_NUMBA = _exists("numba")
TEST_DILL = _exists("dill")
TEST_LIBROSA = _exists("librosa")
TEST_OPT_EINSUM = _exists("opt_einsum")
TEST_TRANSFORMERS = _exists("transformers")
TEST_Z3 = TEST_FAIRSEQ = False
TEST_MKL = torch.backends.mkl.is_available()
TEST_CUDA = torch.cuda.is_available()
TEST_MULTIGPU = TEST_CUDA and torch.cuda.device_count() > 1
TEST_MPS = TEST_XPU = TEST_HPU = TEST_ONEDNN = TEST_ACL = TEST_PRIVATEUSE1 = False
TEST_PRIVATEUSE1_DEVICE_TYPE = False
TEST_CUDNN = TEST_TRITON_DSL = TEST_CUTEDSL = TEST_NVMATH = False
TEST_ACCELERATOR, TEST_MULTIACCELERATOR = TEST_CUDA, TEST_MULTIGPU
TEST_CUDA_CUDSS = TEST_CUDA_GRAPH_CONDITIONAL_NODES = False
TEST_CUDA_PYTHON_BINDINGS = TEST_WITH_TV = TEST_SKIP_CUDAGRAPH = False
TEST_WITHOUT_COMPILED_AUTOGRAD = True
IS_CPU_CAPABILITY_SVE = IS_CPU_CAPABILITY_SVE256 = IS_CPU_EXT_SVE_SUPPORTED = False
IS_AVX512_VNNI_SUPPORTED = EXPANDABLE_SEGMENTS = False
MACOS_VERSION = -1.0
MI200_ARCH, MI300_ARCH, MI350_ARCH = ("gfx90a",), ("gfx942",), ("gfx950",)
NAVI3_ARCH = ("gfx1100", "gfx1101")
NAVI4_ARCH = ("gfx1200", "gfx1201")
NAVI_ARCH = (*NAVI3_ARCH, *NAVI4_ARCH)
TEST_CUDA_GRAPH = TEST_WITH_ROCM = TEST_WITH_MTIA = TEST_WITH_MIOPEN_SUGGEST_NHWC = (
    False
)
TEST_WITH_ASAN = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_WITH_DEV_DBG_ASAN = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = TEST_WITH_AOT_EAGER = False
TEST_WITH_CROSSREF = TEST_CUDA_MEM_LEAK_CHECK = NOTEST_CPU = False
TEST_WITH_SLOW = _flag("PYTORCH_TEST_WITH_SLOW")
TEST_SKIP_FAST = _flag("PYTORCH_TEST_SKIP_FAST")
TEST_WITH_SLOW_GRADCHECK = _flag("PYTORCH_TEST_WITH_SLOW_GRADCHECK")
# Processes are started without `fork` only where there is none.
NO_MULTIPROCESSING_SPAWN = False
GRADCHECK_NONDET_TOL = 1e-12
NATIVE_DEVICES = ("cpu", "cuda", "xpu", "meta", "mps", "mtia", "privateuseone")


def skip_when(condition: Callable[[], bool], reason: str) -> Callable[[Any], Any]:
    """Skips a test, or all tests of a class, if the condition holds when it is run."""

    def decorate(found: Any) -> Any:
        if isinstance(found, type):
            set_up = found.setUp

            @functools.wraps(set_up)
            def checked(self: Any) -> None:
                if condition():
                    raise unittest.SkipTest(reason)
                set_up(self)

            found.setUp = checked
            return found

        @functools.wraps(found)
        def run(*args: Any, **kwargs: Any) -> Any:
            if condition():
                raise unittest.SkipTest(reason)
            return found(*args, **kwargs)

        return run

    return decorate


lazy_skip_if = skip_when


def never_skipped(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that leaves tests as they are."""
    if callable(func) and not args and not kwargs:
        return func
    return lambda found: found


# About compilers, sanitizers and hardware that have no part in torchshim.
skipIfTorchDynamo = skipIfTorchInductor = xfailIfTorchDynamo = never_skipped
xpassIfTorchDynamo_np = skipIfNNModuleInlined = runWithoutCompiledAutograd = (
    never_skipped
)
markDynamoStrictTest = unMarkDynamoStrictTest = skipIfLegacyJitExecutor = never_skipped
skipIfRocm = skipIfRocmArch = skipIfRocmVersionLessThan = never_skipped
skipRocmIfTorchInductor = skipIfMPS = skipIfHpu = skipIfXpu = skipIfCrossRef = (
    never_skipped
)
skipIfWindowsXPU = xfailIfACL = xfailIfROCm = gcIfJetson = never_skipped
skipIfFreeThreaded = skipIfSlowGradcheckEnv = serialTest = never_skipped
skipCUDAMemoryLeakCheckIf = skipCUDANonDefaultStreamIf = never_skipped
skipIfNoLapack = skipIfCompiledWithoutNumpy = never_skipped
skipIfCachingAllocatorDisabled = make_dynamo_test = never_skipped
skipIfRocm_BUGGY = skipIfXpu_BUGGY = skipIfHpu_BUGGY = never_skipped
skipIfNotMiopenSuggestNHWC = xfailIfNoAcceleratorTriton = never_skipped
skipIfPythonVersionMismatch = never_skipped


def _always(reason: str) -> Callable[[Any], Any]:
    return skip_when(lambda: True, reason)


skipIfNoXPU = _always("test required PyTorch built with XPU")
skipIfNoXNNPACK = _always("XNNPACK must be enabled for these tests. ")
skipIfNoNvmath = _always("test requires nvmath")
requires_mkl = _always("MKL is not available")
requires_onednn = _always("oneDNN is not available")
requires_cuda = skip_when(lambda: not TEST_CUDA, "Requires CUDA")
scoped_load_inline = _always("extensions in C++ cannot be loaded")
skipIfNoDill = skip_when(lambda: not TEST_DILL, "no dill")


def runOnRocm(fn: Any) -> Any:
    """Skips: there is no ROCm."""
    return _always("test currently only works on the ROCm stack")(fn)


def runOnRocmArch(arch: Any) -> Callable[[Any], Any]:
    """A decorator that leaves tests as they are: the condition is about ROCm alone."""
    return never_skipped


def requires_cuda_p2p_access() -> Any:
    """Skips: there is no access from one GPU to another."""
    return unittest.skip("cuda p2p access is not available")


def skipIfNotRegistered(op_name: str, message: str) -> Any:
    """Skips: there is no Caffe2."""
    return unittest.skip("Pytorch is compiled without Caffe2")


def skipIfNoSciPy(fn: Any) -> Any:
    """Skips a test that needs SciPy where it is missing."""
    return skip_when(lambda: not TEST_SCIPY, "test require SciPy, but SciPy not found")(
        fn
    )


def skip_if_pytest(fn: Any) -> Any:
    """Skips a test under pytest."""
    under = lambda: "PYTEST_CURRENT_TEST" in os.environ  # noqa: E731
    return skip_when(under, "does not work under pytest")(fn)


def skipIfWindows(
    func: Any = None, *, msg: str = "test doesn't currently work on the Windows stack"
) -> Any:
    """Skips a test on Windows."""
    decorate = skip_when(lambda: IS_WINDOWS, msg)
    return decorate(func) if func is not None else decorate


def xfailIf(condition: bool) -> Callable[[Any], Any]:
    """Expects a test to fail if the condition holds."""
    return unittest.expectedFailure if condition else never_skipped


def xfailIfLinux(func: Any) -> Any:
    """Expects a test to fail on Linux."""
    return xfailIf(IS_LINUX)(func)


def xfailIfWindows(func: Any) -> Any:
    """Expects a test to fail on Windows."""
    return xfailIf(IS_WINDOWS)(func)


def xfailIfS390X(func: Any) -> Any:
    """Expects a test to fail on this machine's kind."""
    return xfailIf(IS_S390X)(func)


def xfailIfPy312Plus(func: Any) -> Any:
    """Expects a test to fail on newer Pythons."""
    return xfailIf(sys.version_info >= (3, 12))(func)


def skip_but_pass_in_sandcastle(reason: str) -> Any:
    """Skips a test."""
    return unittest.skip(reason)


def skip_but_pass_in_sandcastle_if(condition: bool, reason: str) -> Any:
    """Skips a test if the condition holds."""
    return unittest.skipIf(condition, reason)


def slowTest(fn: Any) -> Any:
    """Skips a test unless the environment has PYTORCH_TEST_WITH_SLOW=1."""
    reason = "test is slow; run with PYTORCH_TEST_WITH_SLOW to enable test"
    made = skip_when(lambda: not TEST_WITH_SLOW, reason)(fn)
    made.slow_test = True
    return made


def slowTestIf(condition: bool) -> Callable[[Any], Any]:
    """`slowTest` if the condition holds."""
    return slowTest if condition else never_skipped


def isRocmArchAnyOf(arch: tuple[str, ...]) -> bool:
    """Whether the GPU is an AMD of one of these kinds: no."""
    return False
