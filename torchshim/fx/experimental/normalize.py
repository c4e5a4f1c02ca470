"""Calls in one form: arguments by their names, operators for functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import torchshim
from torchshim.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.interpreter import Transformer
from torchshim.fx.node import Node, map_aggregate
from torchshim.fx.operator_schemas import (
    create_type_hint,
    normalize_function,
    normalize_module,
)
from torchshim.fx.proxy import Proxy


class NormalizeArgs(Transformer):
    """Passes all arguments by name, defaults among them, in the signature's order.

    `normalize_to_only_use_kwargs=False`: those that were given by position stay so. Of
    several forms of an operator that fit, the one is taken that takes the types of
    numbers, and of nodes those that `ShapeProp` has found. RuntimeError if it has not.
    https://docs.pytorch.org/docs/2.13/fx.html

    >>> import torchshim as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.flatten(x, 1))
    >>> print(NormalizeArgs(traced).transform().code.strip().splitlines()[1].strip())
    flatten = torch.flatten(input = x, start_dim = 1, end_dim = -1);  x = None
    """

    def __init__(
        self, module: GraphModule, normalize_to_only_use_kwargs: bool = True
    ) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """What stands for a node in the new graph, with its `meta` and type."""
        if n.op == "call_function":
            args, kwargs = self.fetch_args_kwargs_from_env(n)

            def kind_of(arg: Any) -> Any:
                return n.meta.get("type") if isinstance(arg, Node) else type(arg)

            kinds = tuple(map(create_type_hint, map_aggregate(n.args, kind_of)))
            named = {name: kind_of(value) for name, value in kwargs.items()}
            made = self.call_function(n.target, args, kwargs, kinds, named)
        else:
            made = super().run_node(n)
        if n.op != "output":
            self.node_map[made] = n
            made.node.meta = n.meta
            made.node.type = n.type
        return made

    def call_function(
        self,
        target: Any,
        args: Any,
        kwargs: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
    ) -> Proxy:
        """The call in its new form, or as it is where no signature is known."""
        only = self.normalize_to_only_use_kwargs
        found = normalize_function(target, args, kwargs, arg_types, kwarg_types, only)
        if found is None:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", target, *found)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The call of a layer in its new form, of another module as it is."""
        only = self.normalize_to_only_use_kwargs
        found = normalize_module(self.module, target, args, kwargs, only)
        return super().call_module(target, *(found or (args, kwargs)))


class NormalizeOperators(AnnotateTypesWithSchema):
    """Replaces functions of two operands by Python's operators, and notes types.

    >>> import torchshim as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.mul(x, 2))
    >>> made = NormalizeOperators(traced).transform()
    >>> print(made.code.strip().splitlines()[1].strip())
    mul = x * 2;  x = None
    """

    binary_magic_method_remap: ClassVar[dict[Any, Callable[[Any, Any], Any]]] = {
        getattr(torchshim, name): getattr(operator, own or name)
        for name, own in {
            **dict.fromkeys("add mul sub eq ne lt le gt ge".split(), ""),
            **{"div": "truediv", "floor_divide": "floordiv", "remainder": "mod"},
        }.items()
    }

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The operator, where there is one and two operands are given."""
        found = self.binary_magic_method_remap.get(target)
        if found is None or len(args) != 2:
            return super().call_function(target, args, kwargs)
        return super().call_function(found, args, {})
