"""`torch.testing._internal.logging_utils`: what is logged, as a text.

PyTorch's compiler is not here, so that nothing of what it logs is: tests that expect it
are skipped.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from torchshim import _logging
from torchshim.testing._internal._conditions import skip_when
from torchshim.testing._internal._test_case import TestCase

_skipped = skip_when(lambda: True, "torchshim does not log what a compiler does")


class LoggingTestCase(TestCase):
    """A test case whose tests look at what is logged."""


def make_logging_test(**kwargs: Any) -> Any:
    """Skips a test of what is logged."""
    return _skipped


def make_settings_test(settings: str) -> Any:
    """Skips a test of what is logged."""
    return _skipped


def log_api(**kwargs: Any) -> contextlib.ExitStack:
    """A context with these settings, those of `torch._logging.set_logs`."""
    stack = contextlib.ExitStack()
    stack.callback(_logging.set_logs)
    _logging.set_logs(**kwargs)
    return stack


def logs_to_string(
    module: str, log_option: str
) -> tuple[io.StringIO, Callable[[], AbstractContextManager[Any]]]:
    """What a module logs of an artifact, and the context in which it is taken down."""
    (stream,), context = multiple_logs_to_string(module, log_option)
    return stream, context


def multiple_logs_to_string(
    module: str, *log_options: str
) -> tuple[list[io.StringIO], Callable[[], AbstractContextManager[Any]]]:
    """The same for several artifacts, each with a text of its own."""
    streams = [io.StringIO() for _ in log_options]
    handlers = [logging.StreamHandler(stream) for stream in streams]

    @contextlib.contextmanager
    def context() -> Iterator[None]:
        loggers = [_logging.getArtifactLogger(module, name) for name in log_options]
        with log_api(**dict.fromkeys(log_options, True)):
            for logger, handler in zip(loggers, handlers, strict=True):
                logger.addHandler(handler)
            try:
                yield
            finally:
                for logger, handler in zip(loggers, handlers, strict=True):
                    logger.removeHandler(handler)

    return streams, context
