"""Making modules faster for inference: layers that become one, dropout left out.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torchshim import nn
from torchshim._errors import Unsupported
from torchshim.fx import GraphModule, Tracer, Transformer, symbolic_trace
from torchshim.fx.graph import Graph
from torchshim.fx.node import Node, Target
from torchshim.nn import Module
from torchshim.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]

_PATTERNS = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}


def _parent_name(target: str) -> tuple[str, str]:
    """The name of the module that has an attribute, and the attribute's in there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(
    pattern: Iterable[type], node: Node, modules: dict[str, Any]
) -> bool:
    """Whether a node, and the first it takes, call modules of these two classes."""
    if not node.args:
        return False
    return all(
        isinstance(each, Node)
        and each.op == "call_module"
        and type(modules.get(each.target)) is kind
        for kind, each in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(
    node: Node, modules: dict[str, Any], new_module: Module
) -> None:
    """Has a node call another module; AssertionError if it calls none."""
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A module whose convolutions and linear layers do their batch norm's work.

    `inplace`: the module's own layers are changed; `no_trace`: it is traced already.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
    >>> print(fuse(net).code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        return _0
    """
    if not inplace:
        model = copy.deepcopy(model)
    if not (no_trace and isinstance(model, GraphModule)):
        model = symbolic_trace(model)
    modules = dict(model.named_modules())
    graph: Graph = copy.deepcopy(model.graph)
    for pattern, fused in _PATTERNS.items():
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            before = node.args[0]
            norm = modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            layer: Any = modules[before.target]
            replace_node_module(before, modules, fused(layer, norm))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(model, graph)


class _DropoutRemover(Transformer):
    def call_module(
        self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if not isinstance(self.submodules[str(target)], nn.Dropout):
            return super().call_module(target, args, kwargs)
        if len(args) != 1:
            raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
        return args[0]


def remove_dropout(model: Module) -> Module:
    """A module without the other's dropout layers."""
    return _DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module of some nodes of a graph."""
    made = Graph()
    known = {node: made.placeholder(node.name) for node in inputs}
    for node in nodes:
        known[node] = made.node_copy(node, lambda x: known[x])
    made.output([known[node] for node in outputs])
    made.lint()
    return GraphModule(orig_module, made)


def optimize_for_inference(
    model: Module,
    pass_config: dict[str, Any] | None = None,
    tracer: type[Tracer] = Tracer,
) -> Module:
    """A module without dropout, with batch norms fused: `fuse`, `remove_dropout`.

    `pass_config` says which of them is done. The third pass, for layouts of oneDNN,
    must be left out: `{"mkldnn_layout_optimize": False}`; it is what `tracer` is for.
    """
    config = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if config.get("mkldnn_layout_optimize") is not False:
        raise Unsupported(
            f"torch.fx: layouts of oneDNN (for {tracer.__name__}) are not supported: "
            "pass pass_config={'mkldnn_layout_optimize': False}"
        )
    if config["conv_bn_fuse"]:
        model = fuse(model)
    return remove_dropout(model) if config["remove_dropout"] else model
