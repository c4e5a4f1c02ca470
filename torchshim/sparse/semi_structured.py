"""Semi-structured sparse tensors: kernels of NVIDIA's GPUs, not supported."""

from torchshim._errors import unsupported

__all__ = ["SparseSemiStructuredTensor", "to_sparse_semi_structured"]

_REASON = "XLA has no kernels for these"
SparseSemiStructuredTensor = unsupported("sparse.SparseSemiStructuredTensor", _REASON)
to_sparse_semi_structured = unsupported("sparse.to_sparse_semi_structured", _REASON)
