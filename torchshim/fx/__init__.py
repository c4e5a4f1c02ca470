"""Graphs of programs (`torch.fx`): traced, changed, and made Python again.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from torchshim._lazy import submodules as _submodules
from torchshim.fx import experimental as experimental
from torchshim.fx import immutable_collections as immutable_collections
from torchshim.fx._symbolic_trace import PH as PH
from torchshim.fx._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from torchshim.fx._symbolic_trace import Tracer, symbolic_trace, wrap
from torchshim.fx.graph import CodeGen as CodeGen
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.interpreter import Interpreter, Transformer
from torchshim.fx.node import Node, has_side_effect, map_arg
from torchshim.fx.proxy import Proxy
from torchshim.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

__getattr__ = _submodules(__name__, "_compatibility")
