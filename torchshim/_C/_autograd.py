"""What test files reach of autograd's C++ side."""

from torchshim._errors import unsupported

_unsafe_set_version_counter = unsupported(
    "_C._autograd._unsafe_set_version_counter", "versions count what is written"
)
