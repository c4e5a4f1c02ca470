"""Fake tensors need `__torch_dispatch__`, which is not supported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torchshim._errors import unsupported

__all__ = ["FakeTensor", "FakeTensorConverter", "FakeTensorMode", "is_fake"]

_REASON = "tensors on the device meta take their place"
FakeTensor = unsupported("_subclasses.fake_tensor.FakeTensor", _REASON)
FakeTensorConverter = unsupported(
    "_subclasses.fake_tensor.FakeTensorConverter", _REASON
)
FakeTensorMode = unsupported("_subclasses.fake_tensor.FakeTensorMode", _REASON)


def is_fake(x: Any) -> bool:
    """Whether something is a fake tensor: nothing is."""
    return False


def maybe_get_fake_mode(t: Any) -> Any:
    """The mode that a fake tensor is of: None, as nothing is one."""
    return None


@contextmanager
def unset_fake_temporarily() -> Iterator[Any]:
    """A block without the mode that makes fake tensors: there never is one."""
    yield None


# What programs that fake tensors themselves raise and catch.


@dataclass
class UnsupportedFakeTensorException(RuntimeError):
    """A tensor cannot be faked."""

    reason: str


class FakeTensorDeviceMismatchError(RuntimeError):
    """Fake tensors are on two devices."""


@dataclass
class MetadataMismatchError(RuntimeError):
    """A fake tensor is unlike the real one."""

    reason: str


@dataclass
class UnsupportedMutationAliasingException(RuntimeError):
    """There are writes to memory that fake tensors share."""

    reason: str


@dataclass
class DynamicOutputShapeException(RuntimeError):
    """The shape of an operator's result depends on values."""

    func: Any


@dataclass
class DataDependentOutputException(RuntimeError):
    """The result of an operator depends on values."""

    func: Any


@dataclass
class UnsupportedOperatorException(RuntimeError):
    """An operator has no form for fake tensors."""

    func: Any
