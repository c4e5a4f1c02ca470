"""`torch.testing._internal.triton_utils`: there is no Triton."""

import unittest

HAS_CUDA_AND_TRITON = HAS_GPU = HAS_XPU_AND_TRITON = False
requires_cuda_and_triton = unittest.skipUnless(False, "requires cuda and triton")
requires_gpu_and_triton = unittest.skipUnless(False, "requires gpu and triton")
requires_gpu = unittest.skipUnless(False, "requires gpu")
