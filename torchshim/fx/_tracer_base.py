"""What every tracer does: nodes of arguments, and facts about where they are made."""

from __future__ import annotations

import copy
import enum
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torchshim.fx.traceback as fx_traceback
from torchshim.fx.graph import Graph
from torchshim.fx.node import Argument, Node, Target, base_types, map_arg
from torchshim.fx.operator_schemas import check_for_mutable_operation

if TYPE_CHECKING:
    from torchshim.fx.proxy import Proxy

# `torchshim.fx.proxy` puts its class here.
proxies: list[type] = []


class TraceError(ValueError):
    """What cannot be traced: a decision that depends on a value."""


class Scope:
    """The module whose forward is running: its path and class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Within it, a scope is another; then what it was."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        self._scope = scope
        self._set(current_scope)

    def _set(self, other: Scope) -> None:
        self._scope.module_path = other.module_path
        self._scope.module_type = other.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._set(self._before)


_PACKAGE = str(Path(__file__).parent.parent)


class TracerBase:
    """Makes nodes and proxies; `Tracer` traces programs by it.

    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Tracer
    """

    graph: Graph
    # Nodes know the lines of `forward` that they are of.
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    # Functions that write to their arguments are refused.
    check_mutable_operations: bool = False
    # An `assert` of a proxy becomes a node.
    trace_asserts: bool = False
    # Buffers that are read become nodes.
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node to the graph; what is done with all of them is done here."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = self.scope
        self.node_name_to_scope[node.name] = scope.module_path, scope.module_type
        if fx_traceback.has_preserved_node_meta():
            current = fx_traceback.get_current_meta()
            if current.get("stack_trace"):
                node.stack_trace = current["stack_trace"]
            for field in fx_traceback.COPIED:
                if field in current:
                    node.meta[field] = copy.copy(current[field])
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            stack = self._filter_traceback_frames(traceback.extract_stack())
            if stack:
                node.stack_trace = "".join(stack.format()).strip()
        return node

    def _filter_traceback_frames(
        self, user_stack_summary: traceback.StackSummary
    ) -> traceback.StackSummary:
        """The lines of a stack that are the program's, from its `forward` on."""
        frames = list(user_stack_summary)
        names = [frame.name for frame in frames]
        start = names.index("forward") if "forward" in names else len(frames)
        only = self._record_forward_stack_traces_only
        return traceback.StackSummary.from_list(
            [
                frame
                for frame in frames[start:]
                if not frame.filename.startswith(_PACKAGE)
                and (not only or frame.name == "forward")
            ]
        )

    def proxy(self, node: Node) -> Proxy:
        """The stand-in for a node's value."""
        return proxies[0](node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """Adds a node with these arguments, proxies among them: its stand-in."""
        node = self.create_node(
            kind,
            target,
            self.create_arg(args),
            self.create_arg(kwargs),
            name,
            type_expr,
        )
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value in the graph.

        NotImplementedError for what no graph can hold, RuntimeError for dicts with keys
        that are computed.
        """
        if isinstance(a, proxies[0]):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._create_key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        if is_dataclass(a):
            given = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> None:
            raise RuntimeError(
                "Keys for dictionaries used as an argument cannot contain a Node. Got "
                f"key: {node}"
            )

        key = self.create_arg(key)
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a value is true: TraceError, as it is not known."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Iterates over a value: TraceError, as its length is not known."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is "
            "used in a loop or as a *args or **kwargs function argument. See the "
            "torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring "
            "for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a value, as `**` asks for them: a call of its method."""
        return self.create_proxy("call_method", "keys", (obj,), {})


class GraphAppendingTracer(TracerBase):
    """Adds to a graph what is done with proxies, while nothing is traced."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}
