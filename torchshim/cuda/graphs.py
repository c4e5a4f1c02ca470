"""CUDA graphs, which are refused: a recording is one compiled program already.

https://docs.pytorch.org/docs/2.13/cuda.html#graphs-beta
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchshim.cuda._devices import is_available

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


def _refuse(name: str, base: str = "") -> NoReturn:
    if not is_available():
        raise RuntimeError(f"Tried to instantiate dummy base class {base or name}")
    raise NotImplementedError(
        f"torch.cuda.{name}: CUDA graphs cannot be captured; what is recorded runs as "
        "one compiled program without them"
    )


def is_current_stream_capturing() -> bool:
    """False. RuntimeError without a GPU, as in PyTorch."""
    if not is_available():
        _refuse("_cuda_isCurrentStreamCapturing")
    return False


def graph_pool_handle() -> Any:
    """Refused."""
    _refuse("graph_pool_handle", "_graph_pool_handle")


class CUDAGraph:
    """Refused."""

    def __init__(self, keep_graph: bool = False) -> None:
        _refuse("CUDAGraph")


class graph:
    """Refused."""

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        _refuse("graph")


def make_graphed_callables(callables: Any, *args: Any, **kwargs: Any) -> Any:
    """The callables themselves: what they record is one program already."""
    return callables
