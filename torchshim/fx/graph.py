"""Graphs of nodes: what a function does, step by step.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torchshim import _warnings as warnings
from torchshim._functions.query import typename
from torchshim.fx._codegen import CodeGen, PythonCode, TransformCodeFunc
from torchshim.fx._codegen import _format_target as _format_target
from torchshim.fx._names import is_from_torch as _is_from_torch
from torchshim.fx._names import short_name
from torchshim.fx._namespace import _custom_builtins as _custom_builtins
from torchshim.fx._namespace import _is_magic, _Namespace, _snake_case
from torchshim.fx._node_list import FindNodesTable, InsertPoint, NodeList
from torchshim.fx._pytree_codegen import _BoxedCodeGen as _BoxedCodeGen
from torchshim.fx._pytree_codegen import _PyTreeCodeGen as _PyTreeCodeGen
from torchshim.fx._pytree_codegen import _PyTreeInfo as _PyTreeInfo
from torchshim.fx._source import inplace_methods as inplace_methods
from torchshim.fx._source import magic_methods as magic_methods
from torchshim.fx._source import parse_stack_trace as _parse_stack_trace
from torchshim.fx._source import (
    reflectable_magic_methods as reflectable_magic_methods,
)
from torchshim.fx.immutable_collections import immutable_dict
from torchshim.fx.node import Argument, Node, Target, _legal_ops, map_arg
from torchshim.fx.node import _get_qualified_name as _get_qualified_name
from torchshim.fx.node import _type_repr as _type_repr
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter

if TYPE_CHECKING:
    from torchshim.fx.graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

assert _is_from_torch and _parse_stack_trace  # which programs import from here


class Graph:
    """A list of nodes that is a function: inputs, calls, and what is returned.

    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph

    >>> import torchshim as torch
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.neg, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %neg : [num_users=1] = call_function[target=torch.neg](args = (%x,), \
kwargs = {})
        return neg
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._find_nodes_lookup_table = FindNodesTable()

    @property
    def owning_module(self) -> Any:
        """The module whose attributes the targets are."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> NodeList:
        """The nodes in order; the graph may be changed while they are iterated over."""
        return NodeList(self)

    def output_node(self) -> Node:
        """The node that returns; AssertionError if the last one does not."""
        last = next(iter(reversed(self.nodes)))
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(
        self, *, op: str, target: Target | None = None, sort: bool = True
    ) -> list[Any]:
        """The nodes of one kind, and with one target, in order unless not `sort`.

        AssertionError for functions without a target.
        """
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    # Making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node at the place where the graph inserts, by default the end.

        `name`: what its name is made of, by default the target's; `type_expr`: the
        annotation of its value.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(
            self, name, op, target, args or (), kwargs or immutable_dict(), type_expr
        )
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    def placeholder(
        self,
        name: str,
        type_expr: Any = None,
        default_value: Any = inspect.Signature.empty,
    ) -> Node:
        """An input: a parameter of the function."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module; warns without one."""
        owner = self.owning_module
        if owner is not None and not _has_attribute(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in "
                "the owning GraphModule! Call GraphModule.add_submodule to add the "
                "necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a submodule; AttributeError where the graph's module has none."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node(
            "call_module", module_name, args, kwargs, type_expr=type_expr
        )

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node(
            "call_method", method_name, args, kwargs, type_expr=type_expr
        )

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node(
            "call_function", the_function, args, kwargs, name=name, type_expr=type_expr
        )

    def output(self, result: Argument, type_expr: Any = None) -> Any:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            return _snake_case(short_name(target))
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return _snake_case(target[2:-2] if _is_magic(target) else target)

    # Copying

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copies the nodes of another graph here: what that returns, of these nodes.

        `val_map`: nodes there -> here, which is added to; `return_output_node`: give
        the node that returns there, too. None if that graph returns nothing.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Copies one node; `arg_transform` gives what stands for its arguments here."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copied = self.create_node(
            node.op, node.target, args, kwargs, node.name, node.type
        )
        copied.meta = copy.copy(node.meta)
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        # Node by node: a chain of references would be as deep as the graph is long.
        # The memo is told of the nodes, as modules may refer to some.
        known: Any = memo or {}
        copied = Graph(tracer_cls=self._tracer_cls)
        found = copied.graph_copy(self, known, return_output_node=True)
        copied._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            value, old = found
            copied.output(value, type_expr=old.type).meta = copy.copy(old.meta)
        return copied

    # Changing

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out; RuntimeError if it has users, or is of another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had "
                f"{len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(
                f"erase_node({to_erase}) on an already erased node", stacklevel=2
            )
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        # An iterator may still stand at it.
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(
            map_arg(to_erase._args, lambda n: None),
            map_arg(to_erase._kwargs, lambda n: None),
        )

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Nodes are made before another from now on; as a context, within it only.

        Without a node: at the beginning. AssertionError for one of another graph.
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Nodes are made behind another from now on; as a context, within it only.

        Without a node: at the end. AssertionError for one of another graph.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return InsertPoint(self, n.append)

    def eliminate_dead_code(
        self, is_impure_node: Callable[[Node], bool] | None = None
    ) -> bool:
        """Takes out what nobody uses and what has no effect: whether there was some.

        `is_impure_node(node)`: whether a node has one, instead of `Node.is_impure`.
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            read = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                graph = getattr(child, "graph", None)
                if name in read and isinstance(graph, Graph):
                    changed |= graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    # Source

    def process_inputs(self, *args: Any) -> Any:
        """What the inputs are for these arguments of the function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the function returns for this result of the graph."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The graph as the source of a function, and what the names in it stand for.

        `root_module`: the name of the module in it. Options, all False: `verbose`
        (lines of the traced program, dtypes and shapes), `include_stride`,
        `include_device`, `colored`, `expanded_def` (each parameter in a line of its
        own); and `additional_meta`, keys of `Node.meta` to show. `record_func` is
        refused.

        >>> import torchshim as torch
        >>> graph = torch.fx.symbolic_trace(lambda x: x * 2).graph
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            mul = x * 2;  x = None
            return mul
        """
        namespace = _Namespace()
        before = {node: node._repr_fn for node in self.nodes}
        for node in before:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._python_code(root_module, namespace, **options)
        finally:
            for node, own in before.items():
                node._repr_fn = own

    def _python_code(
        self, root_module: str, namespace: _Namespace, **options: Any
    ) -> PythonCode:
        return self._codegen._gen_python_code(
            self.nodes, root_module, namespace, **options
        )

    def set_codegen(self, codegen: CodeGen) -> None:
        """Has the source made by another object."""
        self._codegen = codegen

    def on_generate_code(
        self,
        make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc],
    ) -> contextlib.AbstractContextManager[None]:
        """Has a function change the lines of the source; as a context, within it only.

        `make_transformer` gets the function that does so now, or None.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def within() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return within()

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names, [""]) for node in self.nodes]
        start = f"graph({', '.join(names)}):"
        return "\n    ".join([start, *filter(None, lines)])

    def print_tabular(self) -> None:
        """Prints the nodes as a table; ImportError without the package `tabulate`."""
        try:
            from tabulate import tabulate  # pyright: ignore
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be "
                "found on this machine. Run `pip install tabulate` to install the "
                "library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # Checking

    def lint(self) -> None:
        """Raises RuntimeError where the graph is not in order.

        Nodes are of this graph, used behind where they are made, and called
        differently; targets are what they should be, and the owning module has them.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in _legal_ops or node.op == "root":
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node not in self._find_nodes_lookup_table:
                raise RuntimeError(f"Node '{node}' is not added to the side table")
            for arg in node._input_nodes:
                self._check_argument(arg, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                self._check_target(node)

    def _check_argument(self, arg: Node, node: Node, seen: set[Node]) -> None:
        start = f"Argument '{arg}' of Node '{node}' "
        if arg.graph is not self:
            raise RuntimeError(
                f"{start}does not belong to this Graph, but was used as an argument! "
                "If you are copying nodes from another graph, make sure to use "
                f"``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if arg not in seen:
            raise RuntimeError(
                f"{start}was used before it has been defined! Please check that Nodes "
                f"in the graph are topologically ordered\n{self}"
            )

    def _check_target(self, node: Node) -> None:
        target: Any = node.target
        wanted = "Callable" if node.op == "call_function" else "str"
        if not (callable(target) if wanted == "Callable" else isinstance(target, str)):
            raise ValueError(
                f"Node {node} target {target} has type {typename(target)} but a "
                f"{wanted} is expected"
            )
        if node.op not in ("get_attr", "call_module"):
            return
        found = self.owning_module
        parts = target.split(".")
        for i, part in enumerate(parts):
            found = getattr(found, part, None)
            path = ".".join(parts[:i])
            if found is None:
                raise RuntimeError(
                    f"Node {node} target {target} references nonexistent attribute "
                    f"{part} of {path}"
                )
            if node.op == "call_module" and not isinstance(found, Module):
                raise RuntimeError(
                    f"Node {node} target {target} {part} of {path} does not reference "
                    "an nn.Module"
                )


def _has_attribute(module: Module, qualified_name: str) -> bool:
    """Whether a module has a parameter, buffer or submodule of this name."""
    path, _, name = qualified_name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=4)
        return False
    found = getattr(owner, name, None)
    return isinstance(found, (Module, Parameter)) or name in owner._buffers
