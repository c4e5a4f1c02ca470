"""Extensions in C++ and CUDA: they need PyTorch's own libraries, and are refused.

Setup scripts can be read, and what they ask about the machine is answered.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

from torchshim._errors import refused, unsupported

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "load", "load_inline"]

_REASON = "extensions written against PyTorch's libraries cannot be loaded"
BuildExtension = unsupported("utils.cpp_extension.BuildExtension", _REASON)
CUDAExtension = unsupported("utils.cpp_extension.CUDAExtension", _REASON)
CppExtension = unsupported("utils.cpp_extension.CppExtension", _REASON)
load = unsupported("utils.cpp_extension.load", _REASON)
load_inline = unsupported("utils.cpp_extension.load_inline", _REASON)

globals().update(
    refused(
        __name__,
        "SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform "
        "get_compiler_abi_compatibility_and_version get_cxx_compiler "
        "get_default_build_root include_paths library_paths "
        "_get_build_directory _get_cuda_arch_flags _import_module_from_library "
        "_jit_compile _prepare_ldflags _write_ninja_file",
        _REASON,
    )
)

# No toolkit of a GPU's maker is of use.
CUDA_HOME = ROCM_HOME = CUDNN_HOME = HIP_HOME = SYCL_HOME = ROCM_VERSION = None
IS_HIP_EXTENSION = False
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform.startswith("darwin")
IS_LINUX = sys.platform.startswith("linux")
LIB_EXT = ".pyd" if IS_WINDOWS else ".so"
EXEC_EXT = ".exe" if IS_WINDOWS else ""
CLIB_EXT = ".dll" if IS_WINDOWS else ".so"
CLIB_PREFIX = "" if IS_WINDOWS else "lib"
COMMON_NVCC_FLAGS = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
]


def _find_cuda_home() -> None:
    """Where the CUDA toolkit is: it is not asked for."""


def is_ninja_available() -> bool:
    """Whether the program ninja is installed."""
    ninja: Any = shutil.which("ninja")
    if ninja is None:
        return False
    asked = [ninja, "--version"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def verify_ninja_availability() -> None:
    """RuntimeError unless the program ninja is installed."""
    if not is_ninja_available():
        raise RuntimeError(
            "Ninja is required to load C++ extensions (pip install ninja to get it)"
        )
