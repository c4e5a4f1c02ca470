"""Several products with one matrix become one product."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.fx._symbolic_trace import symbolic_trace
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Node
from torchshim.fx.passes.tools_common import legalize_graph
from torchshim.fx.proxy import Proxy
from torchshim.nn.modules.module import Module

# How far the inputs of a node are followed.
_DEPTH = 6


def split_result_tensors(result: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """The rows of a product that belong to each of the factors."""
    traced = isinstance(result, Proxy)
    return torchshim.split(result, [0 if traced else len(x) for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = _DEPTH) -> bool:
    """Whether a node may need another's value; True, too, where that is too far away.

    >>> import torchshim as torch
    >>> x, y, total, _ = torch.fx.symbolic_trace(lambda x, y: x + y).graph.nodes
    >>> may_depend_on(total, x), may_depend_on(x, y)
    (True, False)
    """
    if a is b:
        return True
    inputs = a.all_input_nodes
    if search_depth == 0:
        return bool(inputs)
    return any(may_depend_on(each, b, search_depth - 1) for each in inputs)


def are_nodes_independent(nodes: Sequence[Node]) -> bool:
    """Whether none of the nodes may need another's value."""
    pairs = ((a, b) for a in nodes for b in nodes if a is not b)
    return not any(may_depend_on(a, b) for a, b in pairs)


def merge_matmul(in_mod: Module) -> GraphModule:
    """The module traced, with one `matmul` for all those with one right operand.

    Their left operands are put one below the other, and the result is split again.
    """
    module = symbolic_trace(in_mod)
    graph = module.graph
    by_right: dict[Any, list[Node]] = defaultdict(list)
    for node in graph.find_nodes(op="call_function", target=torchshim.matmul):
        by_right[_operand(node.args[1])].append(node)
    for right, products in by_right.items():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        lefts = [_operand(product.args[0]) for product in products]
        lefts = [graph.get_attr(x) if isinstance(x, str) else x for x in lefts]
        if isinstance(right, str):
            right = graph.get_attr(right)
        stacked = graph.call_function(torchshim.cat, (lefts,))
        merged = graph.call_function(torchshim.matmul, (stacked, right))
        pieces = graph.call_function(split_result_tensors, (merged, lefts))
        for i, product in enumerate(products):
            piece = graph.call_function(operator.getitem, (pieces, i))
            product.replace_all_uses_with(piece)
            graph.erase_node(product)
    # What was made stands at the end, behind those that use it.
    legalize_graph(module)
    module.graph.lint()
    return module


def _operand(node: Node) -> Node | str:
    """What stands for an operand: all nodes that read one attribute are the same."""
    return node.target if node.op == "get_attr" else node
