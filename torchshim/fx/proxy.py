"""Stand-ins for values: what is done with them is added to a graph.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Proxy
"""

from __future__ import annotations

import copy
import dis
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torchshim._pytree import tree_map_
from torchshim.fx._names import short_name
from torchshim.fx._source import magic_methods, reflectable_magic_methods
from torchshim.fx._tracer_base import (
    GraphAppendingTracer,
    Scope,
    ScopeContextManager,
    TraceError,
    TracerBase,
    proxies,
)
from torchshim.fx.node import Node
from torchshim.nn.parameter import Parameter
from torchshim.overrides import is_tensor_method_or_property

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


# What PyTorch calls methods of tensors that are operators with a proxy.
_CALLED = {"__eq__": "eq", "__pow__": "pow", "__ipow__": "pow_"}


def assert_fn(x: object) -> None:
    """What a traced `assert` calls: AssertionError for what is false."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """A value that is not known: operators, methods and functions of it make nodes.

    Iterating over one, or taking it for a condition, raises TraceError unless its
    tracer says otherwise; `len` of one is a RuntimeError.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Proxy

    >>> import torchshim as torch
    >>> graph = torch.fx.Graph()
    >>> x = Proxy(graph.placeholder("x"))
    >>> torch.relu(x + 1).node.args[0].target
    <built-in function add>
    """

    node: Node

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # No node yet: it may be a method that is called.
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        # Otherwise `copy` would find an attribute of this name, as of any.
        copied = Proxy.__new__(Proxy)
        for name, value in self.__dict__.items():
            try:
                copied.__dict__[name] = copy.deepcopy(value, memo)
            except Exception:  # a tracer may hold what cannot be copied
                copied.__dict__[name] = copy.copy(value)
        return copied

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy(
            "call_method", "__call__", (self, *args), kwargs
        )

    def __iter__(self) -> Iterator[Proxy]:
        frame = sys._getframe(1)
        running = _instruction(frame)
        if running.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(running.argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _in_assertion(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What the tracer says its keys are: `**x` asks for them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this "
            "call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find_tracer(a: Any) -> None:
            if isinstance(a, cls):
                tracers[a.tracer] = None

        tree_map_(find_tracer, (args, kwargs))
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to "
                f"trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        if is_tensor_method_or_property(orig_method):
            method = _CALLED.get(orig_method.__name__, orig_method.__name__)
            return tracer.create_proxy("call_method", method, args, kwargs)
        name = tracer.graph._target_to_str(short_name(orig_method))
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=name
        )


proxies.append(Proxy)


class Attribute(Proxy):
    """An attribute of a value: its method if it is called, else `getattr` of it."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads it, made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        assert self._node is not None
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy(
            "call_method", self.attr, (self.root, *args), kwargs
        )


class ParameterProxy(Proxy):
    """A parameter whose shape is known while it is traced."""

    def __init__(
        self, tracer: TracerBase, node: Node, name: str, param: Parameter
    ) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's."""
        return self.param.shape

    def size(self) -> Any:
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.nelement()


def _instruction(frame: Any) -> dis.Instruction:
    """What a frame is at."""
    code = dis.get_instructions(frame.f_code)
    return next(each for each in code if each.offset == frame.f_lasti)


def _in_assertion(frame: Any) -> bool:
    """Whether a frame asks for a condition of an `assert`."""
    code = iter(dis.get_instructions(frame.f_code))
    for each in code:
        if each.offset == frame.f_lasti:
            jumps = [each, *(e for e, _ in zip(code, range(3), strict=False))]
            names = [e.opname for e in jumps if e.opname not in ("CACHE", "TO_BOOL")]
            at = next((i for i, n in enumerate(names) if n.startswith("POP_JUMP")), 9)
            return "LOAD_ASSERTION_ERROR" in names[at + 1 : at + 2] or (
                names[at + 1 : at + 2] == ["LOAD_COMMON_CONSTANT"]
            )
    return False


def _operator(name: str) -> Callable[..., Any]:
    def impl(*args: Any, **kwargs: Any) -> Proxy:
        target = getattr(operator, name)
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    impl.__name__ = name
    return impl


def _reflected(name: str) -> Callable[..., Any]:
    def impl(self: Proxy, rhs: Any) -> Proxy:
        target = getattr(operator, name)
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    impl.__name__ = impl.__qualname__ = f"__r{name.strip('_')}__"
    return impl


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
