"""Which samples of an operator a test skips, or expects to fail."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass
class SampleRule(ABC):
    """A rule for the operators and samples that two functions say yes to.

    They get the device, and then the operator or the sample; without the second, the
    rule is for all samples.
    """

    op_match_fn: Callable[[str, Any], bool] | None = None
    sample_match_fn: Callable[[Any, Any], bool] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.op_match_fn is None:
            raise ValueError("must have op_match_fn set to be useful")
        if self.sample_match_fn is None:
            self.sample_match_fn = lambda device, sample: True

    @property
    @abstractmethod
    def type(self) -> str:
        """How the rule is called."""

    @abstractmethod
    def get_context(self, test_case: Any) -> AbstractContextManager[Any]:
        """The context in which a test runs the sample."""


@dataclass
class XFailRule(SampleRule):
    """The sample has to fail."""

    error_type: Any = Exception
    error_msg: str = ".*"

    @property
    def type(self) -> str:
        return "xfail"

    def get_context(self, test_case: Any) -> AbstractContextManager[Any]:
        return test_case.assertRaisesRegex(self.error_type, self.error_msg)


@dataclass
class SkipRule(SampleRule):
    """The test is skipped from this sample on."""

    @property
    def type(self) -> str:
        return "skip"

    @contextlib.contextmanager
    def get_context(self, test_case: Any) -> Iterator[None]:
        test_case.skipTest("Skipped!")
        yield


class sample_skips_and_xfails:
    """A decorator that gives a test its rules."""

    def __init__(self, rules: Sequence[SampleRule]) -> None:
        self.rules = rules

    def __call__(self, fn: Any) -> Any:
        if getattr(fn, "sample_skips_and_xfails", None) is not None:
            raise RuntimeError("Multiple sets of sample_skips_and_xfails defined")
        fn.sample_skips_and_xfails = self.rules
        return fn
