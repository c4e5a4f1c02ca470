"""Helpers that PyTorch's own test files import, under PyTorch's names.

Only what test files use: `common_utils`, `common_device_type`, `common_dtype` and
`common_cuda`. The databases (`op_db`, `module_db`) are not here: `compat_suite` runs
them where PyTorch is installed.
"""

from torchshim._lazy import submodules as _submodules

__getattr__ = _submodules(__name__, "common_dtype", "logging_tensor")
