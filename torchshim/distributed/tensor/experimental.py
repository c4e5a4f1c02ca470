"""Plain tensors as if they lay on all processes: not supported."""

from torchshim._errors import unsupported

__all__ = ["implicit_replication"]

implicit_replication = unsupported(
    "distributed.tensor.experimental.implicit_replication", "tensors are whole"
)
