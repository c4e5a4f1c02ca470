"""What a pass is: a function of a module, with what holds before and after it."""

from __future__ import annotations

import abc
from typing import NamedTuple

from torchshim.fx.graph_module import GraphModule
from torchshim.nn.modules.module import Module

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """A pass's module, and whether it was changed."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call(graph_module)` between checks that can be overridden."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the pass cannot be run."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises where the pass did not do what it should."""
