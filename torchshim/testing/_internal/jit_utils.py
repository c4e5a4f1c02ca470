"""`torch.testing._internal.jit_utils`: TorchScript is not here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

from torchshim._errors import Unsupported
from torchshim.testing._internal.common_utils import TestCase

RUN_CUDA = RUN_CUDA_HALF = RUN_CUDA_MULTI_GPU = False
_REASON = "there are no graphs of TorchScript to look at"


def _capture(stream: str) -> Callable[[], Any]:
    """What gives a test the text of a stream, as the item of a list."""

    @contextlib.contextmanager
    def captured() -> Iterator[list[str]]:
        texts = [""]
        with getattr(contextlib, f"redirect_{stream}")(io.StringIO()) as written:
            yield texts
        texts[0] = written.getvalue()

    return captured


class JitTestCase(TestCase):
    """Tests of what `torch.jit` gives; those that look at graphs are skipped."""

    def checkScript(self, script: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        raise Unsupported(f"JitTestCase.checkScript is not supported: {_REASON}")

    def checkTrace(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        raise Unsupported(f"JitTestCase.checkTrace is not supported: {_REASON}")

    def checkModule(self, nn_module: Any, args: Any) -> Any:
        """Refused."""
        raise Unsupported(f"JitTestCase.checkModule is not supported: {_REASON}")

    def assertGraphContains(self, *args: Any, **kwargs: Any) -> Any:
        """Refused."""
        raise Unsupported(f"JitTestCase.assertGraph… is not supported: {_REASON}")

    capture_stdout = staticmethod(_capture("stdout"))
    capture_stderr = staticmethod(_capture("stderr"))
    assertGraphContainsExactly = assertAllFused = assertGraphContains


@contextlib.contextmanager
def disable_autodiff_subgraph_inlining(enabled: bool = True) -> Iterator[None]:
    """Nothing within a block: there are no graphs."""
    yield


enable_profiling_mode_for_profiling_tests = disable_autodiff_subgraph_inlining


def clear_class_registry() -> None:
    """Nothing: no classes were compiled."""
