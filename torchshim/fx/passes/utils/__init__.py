"""What passes find parts of graphs with, and make modules of them."""

from torchshim.fx.passes.utils.common import (
    HolderModule,
    compare_graphs,
    lift_subgraph_as_module,
)

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
