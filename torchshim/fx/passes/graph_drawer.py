"""Pictures of graphs: not supported.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = ["FxGraphDrawer"]

FxGraphDrawer = unsupported(
    "fx.passes.graph_drawer.FxGraphDrawer",
    "str(graph) and print_readable() show what a graph is",
)
