"""`torch.testing._internal.logging_utils`: PyTorch's own loggers are not there."""

from __future__ import annotations

from typing import Any

from torchshim.testing._internal._conditions import skip_when
from torchshim.testing._internal._test_case import TestCase

_skipped = skip_when(lambda: True, "torchshim has no loggers of PyTorch's names")


class LoggingTestCase(TestCase):
    """A test case whose tests look at what is logged."""


def make_logging_test(**kwargs: Any) -> Any:
    """Skips a test of what is logged."""
    return _skipped


def make_settings_test(settings: str) -> Any:
    """Skips a test of what is logged."""
    return _skipped
