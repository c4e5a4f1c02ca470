"""What a report of an error says of the machine: `python -m torchshim -m
torch.utils.collect_env`.

The fields are those of ``torch.utils.collect_env``; what only a build of PyTorch has is
"N/A", and JAX's packages are listed with the others.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from collections import namedtuple
from importlib import metadata
from typing import Any

import torchshim

SystemEnv = namedtuple(
    "SystemEnv",
    [
        "torch_version",
        "is_debug_build",
        "cuda_compiled_version",
        "gcc_version",
        "clang_version",
        "cmake_version",
        "os",
        "libc_version",
        "python_version",
        "python_platform",
        "is_cuda_available",
        "cuda_runtime_version",
        "cuda_module_loading",
        "nvidia_driver_version",
        "nvidia_gpu_models",
        "cudnn_version",
        "is_xpu_available",
        "pip_version",
        "pip_packages",
        "conda_packages",
        "hip_compiled_version",
        "hip_runtime_version",
        "miopen_runtime_version",
        "caching_allocator_config",
        "is_xnnpack_available",
        "cpu_info",
    ],
)

_TITLES = (
    ("PyTorch version", "torch_version"),
    ("Is debug build", "is_debug_build"),
    ("CUDA used to build PyTorch", "cuda_compiled_version"),
    ("ROCM used to build PyTorch", "hip_compiled_version"),
    ("", ""),
    ("OS", "os"),
    ("GCC version", "gcc_version"),
    ("Clang version", "clang_version"),
    ("CMake version", "cmake_version"),
    ("Libc version", "libc_version"),
    ("", ""),
    ("Python version", "python_version"),
    ("Python platform", "python_platform"),
    ("Is CUDA available", "is_cuda_available"),
    ("CUDA runtime version", "cuda_runtime_version"),
    ("CUDA_MODULE_LOADING set to", "cuda_module_loading"),
    ("GPU models and configuration", "nvidia_gpu_models"),
    ("Nvidia driver version", "nvidia_driver_version"),
    ("cuDNN version", "cudnn_version"),
    ("Is XPU available", "is_xpu_available"),
    ("HIP runtime version", "hip_runtime_version"),
    ("MIOpen runtime version", "miopen_runtime_version"),
    ("Is XNNPACK available", "is_xnnpack_available"),
    ("Caching allocator config", "caching_allocator_config"),
)
_PACKAGES = re.compile(
    r"torch|jax|numpy|triton|optree|mypy|flake8|onnx|cuda|cudnn|nccl|mkl|ml[-_]dtypes"
)


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The exit status of a command and what it printed."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str))
    coding = locale.getpreferredencoding()
    out, err = (
        text.decode(coding, "replace").strip() for text in (done.stdout, done.stderr)
    )
    return done.returncode, out, err


def _said(command: str, pattern: str = "(.*)") -> str | None:
    """What a pattern finds in what a command prints; None where there is no command."""
    status, out, _ = run(command)
    found = re.search(pattern, out) if status == 0 else None
    return found and found.group(1)


def get_os() -> str:
    """The name of the operating system."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        name = platform.platform(terse=True)
    return f"{name} ({platform.machine()})"


def get_pip_packages() -> tuple[str, str]:
    """Which pip there is, and the packages that matter, as pip lists them."""
    found = {
        f"{each.metadata['Name']}=={each.version}"
        for each in metadata.distributions()
        if _PACKAGES.search(each.metadata["Name"].lower())
    }
    return f"pip{sys.version_info.major}", "\n".join(sorted(found, key=str.lower))


def _gpus() -> str | None:
    count = torchshim.cuda.device_count()
    names = (torchshim.cuda.get_device_name(i) for i in range(count))
    return "\n".join(f"GPU {i}: {name}" for i, name in enumerate(names)) or None


def get_env_info() -> Any:
    """What there is to know, as a `SystemEnv`."""
    pip, packages = get_pip_packages()
    bits = sys.maxsize.bit_length() + 1
    version = sys.version.replace("\n", " ")
    cuda = torchshim.cuda.is_available()
    return SystemEnv(
        torch_version=torchshim.__version__,
        is_debug_build="False",
        cuda_compiled_version="N/A",
        gcc_version=_said("gcc --version", r"gcc (.*)"),
        clang_version=_said("clang --version", r"clang version (.*)"),
        cmake_version=_said("cmake --version", r"cmake (.*)"),
        os=get_os(),
        libc_version="-".join(platform.libc_ver()) or "N/A",
        python_version=f"{version} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(cuda),
        cuda_runtime_version=_said("nvcc --version", r"release .+ V(.*)"),
        cuda_module_loading=os.environ.get("CUDA_MODULE_LOADING", "N/A"),
        nvidia_driver_version=_said(
            "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
        ),
        nvidia_gpu_models=_gpus(),
        cudnn_version=None,
        is_xpu_available=str(torchshim.xpu.is_available()),
        pip_version=pip,
        pip_packages=packages,
        conda_packages=None,
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config="N/A",
        is_xnnpack_available="False",
        cpu_info=run("lscpu")[1] or platform.processor(),
    )


def pretty_str(envinfo: Any) -> str:
    """A `SystemEnv` as text."""
    lines = []
    for title, field in _TITLES:
        value = getattr(envinfo, field) if field else ""
        value = "Could not collect" if value is None else str(value)
        if "\n" in value:
            value = f"\n{value}\n"
        lines.append(f"{title}: {value}" if field else "")
    lines += ["", "CPU:", str(envinfo.cpu_info), "", "Versions of relevant libraries:"]
    packages = envinfo.pip_packages.splitlines() or ["No relevant packages"]
    return "\n".join(
        [*lines, *(f"[{envinfo.pip_version}] {each}" for each in packages)]
    )


def get_pretty_env_info() -> str:
    """What there is to know, as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints what there is to know."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
