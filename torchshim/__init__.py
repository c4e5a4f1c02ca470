"""PyTorch's API on JAX, with no torch installed: `import torchshim as torch`."""

from torchshim import _functions, autograd
from torchshim._alias import install, uninstall
from torchshim._core.device import device
from torchshim._core.dtypes import NAMES as _DTYPES
from torchshim._core.dtypes import (
    dtype,
    get_default_dtype,
    set_default_dtype,
)
from torchshim._core.meta import Size
from torchshim._derived import namespace as _namespace
from torchshim._tensor import Tensor
from torchshim._version import torch_version as __version__
from torchshim.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

assert _functions.__all__
globals().update(_DTYPES)
globals().update(_namespace("torch"))

__all__ = [
    "Size",
    "Tensor",
    "__version__",
    "autograd",
    "device",
    "dtype",
    "enable_grad",
    "get_default_dtype",
    "inference_mode",
    "install",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_default_dtype",
    "set_grad_enabled",
    "uninstall",
]
