"""Running a graph node by node.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Interpreter
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torchshim.fx.traceback as fx_traceback
from torchshim.fx._codegen import last_uses
from torchshim.fx._symbolic_trace import Tracer
from torchshim.fx.graph import Graph
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Argument, Node, Target, map_aggregate, map_arg
from torchshim.fx.proxy import Proxy
from torchshim.nn.modules.module import Module

__all__ = ["Interpreter", "Transformer"]

_HINT = (
    "\nUse tlparse to see full graph. (https://github.com/pytorch/tlparse?tab=readme-ov-"
    "file#tlparse-parse-structured-pt2-logs)"
)


class Interpreter:
    """Runs a graph node by node; its methods, one for each kind, can be overridden.

    `garbage_collect_values`: values are let go of after their last use; `graph`:
    another than the module's.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Interpreter

    >>> import torchshim as torch
    >>> class Shown(Interpreter):
    ...     def run_node(self, n):
    ...         print(n.op, n.name)
    ...         return super().run_node(n)
    >>> Shown(torch.fx.symbolic_trace(lambda x: x + 1)).run(1)
    placeholder x
    call_function add
    output output
    2
    """

    def __init__(
        self,
        module: Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(self.module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(self.graph.nodes)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """What the graph gives for these arguments.

        `initial_env`: values of nodes that are known; `enable_io_processing`: nested
        arguments are taken apart. Errors say at which node they were raised.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._tell(error, node)
                raise
            if self.garbage_collect_values:
                for unused in self.user_to_last_uses.get(node, []):
                    del self.env[unused]
            if node.op == "output":
                result = self.env[node]
                if enable_io_processing:
                    return self.graph.process_outputs(result)
                return result
        return None

    def _tell(self, error: Exception, node: Node) -> None:
        """Has an error say where it was raised."""
        text = f"While executing {node.format_node()}"
        if error.args:
            text = f"{error.args[0]}\n\n{text}"
        text += f"\nOriginal traceback:\n{node.stack_trace}{_HINT}"
        error.args = (text, *error.args[1:])
        if isinstance(error, KeyError):  # its text is shown as a key
            raise RuntimeError(*error.args) from error

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`, of a list that is emptied; RuntimeError for one of wrong length."""
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(args_list) != len(inputs):
            more = len(args_list) > len(inputs)
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for "
                f"placeholders but received {len(args_list)} "
                f"({'extra' if more else 'missing'} arguments)"
            )
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        name = f"Interpreter_{self.__class__.__name__}"
        with fx_traceback.set_current_meta(node, name):
            yield

    def run_node(self, n: Node) -> Any:
        """Runs one node, by the method of its kind: its value."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The next argument, or all that are left; RuntimeError if there is none."""
        assert isinstance(target, str)
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as stop:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not "
                "passed in!"
            ) from stop

    def get_attr(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """An attribute of the module."""
        assert isinstance(target, str)
        return self.fetch_attr(target)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a function gives."""
        assert not isinstance(target, str)
        return target(*args, **kwargs)

    def call_method(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a method of the first argument gives."""
        assert isinstance(target, str)
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a submodule gives."""
        assert isinstance(target, str)
        return self.fetch_attr(target)(*args, **kwargs)

    def output(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute by its full name; RuntimeError if the module has none."""
        found: Any = self.module
        parts = target.split(".")
        for i, name in enumerate(parts, 1):
            if not hasattr(found, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(parts[:i])}"
                )
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(
        self, n: Node
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return (
            self.map_nodes_to_values(n.args, n),
            self.map_nodes_to_values(n.kwargs, n),
        )

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Arguments of a node with values for nodes; RuntimeError for unknown ones."""

        def load(arg: Node) -> Any:
            if arg not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {arg}! Run Graph.lint() to "
                    "diagnose such issues"
                )
            return self.env[arg]

        return map_arg(args, load)


class _TransformerTracer(Tracer):
    """Every module is one node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, _: Module, __: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph with proxies: `transform()` gives the module of what that does.

    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Transformer

    >>> import torchshim as torch
    >>> class Negated(Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return -super().call_function(target, args, kwargs)
    >>> Negated(torch.fx.symbolic_trace(lambda x: x + 1)).transform()(1)
    -2
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Proxy:
        """An input of the new graph."""
        assert isinstance(target, str)
        default = args[0] if args else inspect.Signature.empty
        made = self.new_graph.placeholder(target, default_value=default)
        return Proxy(made, self.tracer)

    def get_attr(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """An attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A module's call in the new graph, if its tracer takes it for one."""
        assert isinstance(target, str)
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A function's call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            made = self.new_graph.output(map_aggregate(result, strip))
            made.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
