"""What programs that use dispatch modes import: nothing is dispatched here."""

from torchshim._C import _DisableTorchDispatch as no_dispatch

__all__ = ["no_dispatch"]
