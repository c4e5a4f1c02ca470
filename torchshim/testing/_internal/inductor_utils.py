"""`torch.testing._internal.inductor_utils`: there is no Inductor."""

import unittest

from torchshim._errors import refused

globals().update(
    refused(__name__, "maybe_skip_size_asserts", "programs are compiled by XLA")
)
HAS_CPU = HAS_GPU = HAS_CUDA_AND_TRITON = HAS_XPU_AND_TRITON = HAS_MPS = False
HAS_TRITON = HAS_MULTIGPU = HAS_PALLAS = False
GPU_TYPE = "cuda"
GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]
requires_gpu = unittest.skipUnless(HAS_GPU, "requires gpu")
requires_triton = unittest.skipUnless(HAS_TRITON, "requires triton")
