"""Which nodes a backend takes: answers that are combined.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchshim._core.dtypes import dtype
from torchshim.fx.node import Node
from torchshim.fx.passes.shape_prop import TensorMetadata
from torchshim.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from torchshim.nn.modules.module import Module

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

# Dtypes of the arguments by position and by name; None for any.
SupportedArgumentDTypes = (
    tuple[Sequence[Sequence[dtype]], dict[str, Sequence[dtype]]] | None
)
SupportDict = Mapping[str, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Answers whether a backend takes a node."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the backend takes a node of a module with these submodules."""
        raise NotImplementedError


def _dtype_of(arg: Node) -> Any:
    """The dtype that `ShapeProp` found, or what else it says of the kind."""
    told = arg.meta.get("tensor_meta")
    return told.dtype if isinstance(told, TensorMetadata) else arg.meta["type"]


class OperatorSupport(OperatorSupportBase):
    """Takes what a table lists, by the names of `get_node_target`.

    A name's value is None, or the dtypes that its arguments may have, by position (None
    for any) and by name. Nodes that call nothing are taken.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the table lists the node, with such arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        listed = self._support_dict[target]
        if listed is None:
            return True
        by_position, by_name = listed
        known = node.kwargs
        given: list[tuple[Any, Any]] = list(zip(node.args, by_position, strict=False))
        given += [
            (known[name], kinds) for name, kinds in by_name.items() if name in known
        ]
        return all(
            kinds is None or not isinstance(arg, Node) or _dtype_of(arg) in kinds
            for arg, kinds in given
        )


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """The answers that a function of submodules and node gives."""
    answer = is_node_supported

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(
            self, submodules: Mapping[str, Module], node: Node
        ) -> bool:
            return answer(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Takes what all of them take."""
    return create_op_support(
        lambda mods, node: all(x.is_node_supported(mods, node) for x in op_support)
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Takes what one of them takes."""
    return create_op_support(
        lambda mods, node: any(x.is_node_supported(mods, node) for x in op_support)
    )


class OpSupports:
    """Answers to combine."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtype) -> OperatorSupportBase:
        """Takes what has no input of a dtype."""
        return create_op_support(
            lambda _, node: all(_dtype_of(x) != dtype for x in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Takes nodes with other names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
