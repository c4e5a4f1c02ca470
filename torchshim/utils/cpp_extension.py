"""Extensions in C++ and CUDA: they need PyTorch's own libraries, and are refused."""

from torchshim._errors import unsupported

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "load", "load_inline"]

_REASON = "extensions written against PyTorch's libraries cannot be loaded"
BuildExtension = unsupported("utils.cpp_extension.BuildExtension", _REASON)
CUDAExtension = unsupported("utils.cpp_extension.CUDAExtension", _REASON)
CppExtension = unsupported("utils.cpp_extension.CppExtension", _REASON)
load = unsupported("utils.cpp_extension.load", _REASON)
load_inline = unsupported("utils.cpp_extension.load_inline", _REASON)
CUDA_HOME = ROCM_HOME = None
