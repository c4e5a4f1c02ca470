"""What a graph computes twice is computed once."""

from __future__ import annotations

from typing import Any

from torchshim import _pytree as tree
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node
from torchshim.fx.passes.infra.pass_base import PassBase, PassResult
from torchshim.ops import aten

# What draws, and what writes: never done once instead of twice. (PyTorch also names
# `_fused_dropout`, which only its GPUs have.)
_RANDOM = (
    "dropout _standard_gamma bernoulli multinomial native_dropout normal "
    "poisson binomial rrelu rand_like rand randint randn randperm"
)
_IN_PLACE = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_"
rand_ops = {getattr(aten, name) for name in _RANDOM.split()}
inplace_ops = {getattr(aten, name) for name in _IN_PLACE.split()}


def get_CSE_banned_ops() -> set[Any]:
    """The operators that draw or write."""
    return rand_ops | inplace_ops


class CSEPass(PassBase):
    """Calls of one function with the same arguments become one call.

    `banned_ops` are left alone. The result is a new module, unless nothing changes.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module without what it computes twice."""
        made = Graph()
        known: dict[Node, Node] = {}
        # What is called with what -> the node; the structure is compared beside the
        # leaves, as it cannot be hashed.
        calls: dict[Any, tuple[Any, Node]] = {}
        modified = False
        for node in graph_module.graph.nodes:
            called = getattr(node.target, "overloadpacket", node.target)
            kept = node.op in ("placeholder", "output", "get_attr")
            if kept or called in self.banned_ops:
                known[node] = made.node_copy(node, known.__getitem__)
                continue
            leaves, structure = tree.tree_flatten((node.args, node.kwargs))
            inner = tuple(
                known.get(leaf, leaf) if isinstance(leaf, Node) else leaf
                for leaf in leaves
            )
            key = node.target, inner
            first = calls.get(key)
            if first is not None and first[0] == structure:
                known[node] = first[1]
                modified = True
                continue
            known[node] = made.node_copy(node, known.__getitem__)
            calls.setdefault(key, (structure, known[node]))
        if not modified:
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, made), True)
