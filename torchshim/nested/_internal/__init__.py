"""What PyTorch keeps private of nested tensors."""

from torchshim._lazy import submodules as _submodules

__getattr__ = _submodules(__name__, "nested_int", "nested_tensor")
