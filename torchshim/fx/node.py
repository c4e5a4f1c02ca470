"""The nodes of a graph: one call, input or output each.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torchshim
from torchshim import ops
from torchshim._core.device import device
from torchshim._core.dtypes import dtype
from torchshim._core.layout import layout, memory_format
from torchshim._functions.query import typename
from torchshim._questions import SymBool, SymFloat, SymInt
from torchshim._tensor import Tensor
from torchshim.amp import _enter_autocast, _exit_autocast
from torchshim.fx._names import qualified_name as _get_qualified_name
from torchshim.fx._names import type_repr as _type_repr
from torchshim.fx.immutable_collections import immutable_dict, immutable_list
from torchshim.fx.operator_schemas import (
    ArgsKwargsPair,
    normalize_function,
    normalize_module,
)

if TYPE_CHECKING:
    from torchshim.fx.graph import Graph
    from torchshim.nn import Module

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
# What may stand in a graph as it is.
base_types = (
    *(str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout),
    *(ops.OpOverload, SymInt, SymBool, SymFloat),
)

_legal_ops = dict.fromkeys(
    "placeholder call_method call_module call_function get_attr output root".split()
)

_F = TypeVar("_F", bound=Callable[..., Any])

_side_effectful_functions: set[Callable[..., Any]] = {
    torchshim._assert,
    torchshim._assert_async,
    operator.setitem,
    torchshim._C._set_grad_enabled,
    _enter_autocast,
    _exit_autocast,
}
# They change the state of the generators.
_RANDOM = {
    getattr(torchshim, name)
    for name in (
        *("rand", "randn", "randint", "randperm", "rand_like", "randn_like"),
        *("randint_like", "normal", "poisson", "bernoulli", "multinomial"),
    )
}


def has_side_effect(fn: _F) -> _F:
    """Has `Graph.eliminate_dead_code` leave calls of a function: the function.

    https://docs.pytorch.org/docs/2.13/fx.html
    """
    _side_effectful_functions.add(fn)
    return fn


def _is_impure_function(target: Any, impure_random: bool) -> bool:
    if isinstance(target, ops.OpOverload):
        schema = getattr(target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return True
    if impure_random and getattr(target, "_nondeterministic_seeded", False):
        return True
    try:
        return target in _RANDOM or target in _side_effectful_functions
    except TypeError:  # no hash
        return False


# Arguments ----------------------------------------------------------------------------


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Calls a function for everything in nested containers that is none of these.

    Lists and dicts of the result cannot be changed.
    https://docs.pytorch.org/docs/2.13/fx.html

    >>> map_aggregate([1, (2, {"a": 3})], lambda x: x + 1)
    [2, (3, {'a': 4})]
    """
    if isinstance(a, tuple):
        items = [map_aggregate(each, fn) for each in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(s, fn) for s in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """As `map_aggregate`, but the function is called for nodes only.

    Raises AssertionError if it cannot be called.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node

    >>> import torchshim as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> map_arg((x, 1, [x]), lambda node: node.name)
    ('x', 1, ['x'])
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    own = getattr(arg, "_custom_fx_repr_fn", None)
    if own is not None:
        return own()
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{', '.join(shown)}{rest}]"
        return f"({', '.join(shown)}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        inner = ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items())
        return f"{{{inner}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# Nodes --------------------------------------------------------------------------------


class _Linked:
    """A node's place in the list of its graph's nodes."""

    graph: Graph
    _prev: Node
    _next: Node
    # Of two nodes in one graph the earlier one has the smaller key.
    _sort_key: tuple[int, ...]

    def _prepend(self, x: Node) -> None:
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x  # type: ignore[assignment]
        left, right = before._sort_key, self._sort_key
        if len(left) > len(right):
            *start, last = left[: len(right) + 1]
            x._sort_key = (*start, last + 1)
        elif len(left) < len(right):
            *start, last = right[: len(left) + 1]
            x._sort_key = (*start, last - 1)
        else:
            x._sort_key = (*left, 0)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before

    def __lt__(self, other: Any) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Any) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Any) -> bool:
        return self is other or self < other

    def __ge__(self, other: Any) -> bool:
        return self is other or self > other


class Node(_Linked):
    """One step of a graph; made by the graph's methods (`Graph.call_function`, …).

    `op` says what it is: placeholder, get_attr, call_function, call_method, call_module
    or output; `target` what is called or read. Raises ValueError for a target of the
    wrong kind, AssertionError for another `op`.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node

    >>> import torchshim as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> [(node.op, node.name) for node in traced.graph.nodes][1:3]
    [('call_function', 'relu'), ('call_function', 'add')]
    """

    name: str
    op: str
    target: Any
    # The annotation of its value.
    type: Any
    meta: dict[str, Any]
    _args: tuple[Argument, ...]
    _kwargs: dict[str, Argument]
    _erased: bool
    _repr_fn: Callable[[Node], str] | None
    _input_nodes: dict[Node, None]
    users: dict[Node, None]

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op != "call_function" and op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        wanted = "Callable" if op == "call_function" else "str"
        if not (callable(target) if wanted == "Callable" else isinstance(target, str)):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{typename(target)} but a {wanted} is expected"
            )
        self.__dict__.update(
            graph=graph,
            name=name,
            op=op,
            target=target,
            type=return_type,
            _args=(),
            _kwargs={},
            _input_nodes={},
            users={},
            _sort_key=(),
            _erased=False,
            _repr_fn=None,
            meta={},
            _prev=self,
            _next=self,
        )
        self._update_args_kwargs(args, kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def next(self) -> Node:
        """The node behind this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Puts a node of this graph right before this one."""
        self._prepend(x)

    def append(self, x: Node) -> None:
        """Puts a node of this graph right behind this one."""
        self._next._prepend(x)

    def _update_args_kwargs(
        self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
    ) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        inputs: dict[Node, None] = {}

        def use(node: Node) -> Node:
            inputs.setdefault(node)
            node.users.setdefault(self)
            return node

        fields = self.__dict__
        fields["_args"] = map_arg(args, use)
        fields["_kwargs"] = map_arg(kwargs, use)
        fields["_input_nodes"] = inputs

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assigning them updates users."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments; assigning them updates users."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one positional argument; IndexError where there is none."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts a positional argument before another; AssertionError out of range."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        # The order in which other nodes know their users stays.
        self.__dict__["_args"] = (*self.args[:idx], map_arg(arg, use), *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """Where it was traced, if its tracer records that."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: object) -> str:
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        name = getattr(target, "__name__", None)
        if name is not None and module in ("builtins", "_operator"):
            return f"{module.removeprefix('_')}.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node in one line, as `str(graph)` has it.

        The lists are the graph's own: inputs and the type of the result are put there.
        """
        kind = f"{_type_repr(self.type)} " if self.type is not None else ""
        head = f"[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names:
                own = f"{self.target}: {_type_repr(self.type)}" if self.type else ""
                placeholder_names.append(f"{self.target}{own}")
                return None
            kind = kind if self.type else ""
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}{head}[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        target = f"[target={self._pretty_print_target(self.target)}]"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{head}{target}"
        if include_tensor_metadata:
            kind = self._described() or kind
        return (
            f"%{self.name} : {kind}{head}{target}("
            f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _described(self) -> str:
        """What is known of the tensor that it gives; nothing where that is none."""
        known = (k for k in ("val", "tensor_meta", "example_value") if k in self.meta)
        value = self.meta.get(next(known, ""))
        if not isinstance(value, Tensor):
            return ""

        def sizes(of: Iterable[Any]) -> str:
            return f"[{', '.join(map(str, of))}]"

        return (
            f'Tensor "{value.dtype.abbr}{sizes(value.shape)}{sizes(value.stride())}'
            f'{value.device}"'
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Has all users take another node: the users that do now.

        `delete_user_cb(user)`: whether a user is one of them; `propagate_meta`: the
        other node gets this one's `meta`, AssertionError if it has some.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, "
                    "propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [
            user
            for user in list(self.users)
            if delete_user_cb is None or delete_user_cb(user)
        ]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces a node wherever it is an argument of this one."""
        # A tuple of nodes has no name, which only hooks ask for.
        if getattr(self.graph.owning_module, "_replace_hooks", None):
            self._tell_replaced(old_input, new_input.name, self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old_input: Node, new_input: Node) -> None:
        def choose(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(
            map_arg(self._args, choose), map_arg(self._kwargs, choose)
        )

    def _tell_replaced(self, old: Node, new: str, user: Node) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old, new=new, user=user)

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it does more than give a value, so that it stays without users.

        `impure_random`: random functions do, as they change the generators' state.
        AssertionError for a call of a module where the graph has none.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError(
                    "self.graph.owning_module not set for purity check"
                )
            return getattr(owner.get_submodule(self.target), "_is_impure", False)
        if self.op == "call_function":
            return _is_impure_function(self.target, impure_random)
        return False

    def normalized_arguments(
        self,
        root: Module,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments matched with the signature, defaults filled in.

        None where there is no signature, or the node calls neither a function nor a
        module of `root`.
        """
        only = normalize_to_only_use_kwargs
        if self.op == "call_function":
            given = self.args, self.kwargs
            return normalize_function(self.target, *given, arg_types, kwarg_types, only)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, only)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        name = self.graph._graph_namespace.create_name(candidate, None)
        self.name = name
        self.graph._graph_namespace._rename_object(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "name":
            for user in self.users:
                self._tell_replaced(self, value, user)
        table = getattr(self.graph, "_find_nodes_lookup_table", None)
        if table is not None and name in ("op", "target") and self in table:
            table.remove(self)
            object.__setattr__(self, name, value)
            table.insert(self)
        else:
            object.__setattr__(self, name, value)
