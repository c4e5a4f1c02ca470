"""`torch.testing._internal.inductor_utils`: there is no Inductor."""

import unittest

HAS_CPU = HAS_GPU = HAS_CUDA_AND_TRITON = HAS_XPU_AND_TRITON = HAS_MPS = False
HAS_TRITON = HAS_MULTIGPU = HAS_PALLAS = False
GPU_TYPE = "cuda"
GPU_TYPES = ["cuda", "mps", "xpu", "mtia"]
requires_gpu = unittest.skipUnless(HAS_GPU, "requires gpu")
requires_triton = unittest.skipUnless(HAS_TRITON, "requires triton")
