"""Running a program with stand-ins for its inputs: the graph of what it does.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.symbolic_trace
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar

import torchshim
from torchshim import _warnings as warnings
from torchshim._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from torchshim._tensor import Tensor
from torchshim.fx._names import torch_module
from torchshim.fx._patching import (
    Patcher,
    _wrapped_fns_to_patch,
    find_proxy,
    patching,
)
from torchshim.fx._patching import (
    _wrapped_methods_to_patch as _wrapped_methods_to_patch,
)
from torchshim.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from torchshim.fx.graph_module import GraphModule
from torchshim.fx.node import Argument, base_types
from torchshim.fx.proxy import (
    ParameterProxy,
    Scope,
    ScopeContextManager,
    TracerBase,
)
from torchshim.nn.modules.container import Sequential
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter

_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_Function = TypeVar("_Function", bound=str | Callable[..., Any])

# What is kept on the root as an attribute when it is met.
_CONSTANTS = {Tensor: "_tensor_constant", TreeSpec: "_tree_spec_constant"}
_proxyable_classes: dict[type, None] = {}
_tracing = [False]


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being traced.

    >>> is_fx_symbolic_tracing()
    False
    """
    return _tracing[0]


def is_fx_tracing() -> bool:
    """Whether a program is being traced: the old name of `is_fx_symbolic_tracing`."""
    return _tracing[0]


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction becomes a node.

    https://docs.pytorch.org/docs/2.13/fx.html

    >>> import torchshim as torch
    >>> class Pair(metaclass=ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> torch.fx.symbolic_trace(lambda x: Pair(x, x)).graph.output_node().args
    (pair,)
    """

    def __init__(
        cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]
    ) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(kwargs, args) if _tracing[0] else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """The type of `PH`: in `concrete_args`, what stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A `PH` whose attributes the input's node gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attributes(source: PHBase, target: object) -> None:
    """Gives a node the attributes of what stood for its input."""
    if source is PH:
        return
    for name in dir(source):
        value = getattr(source, name)
        if not (callable(value) or name.startswith("__") or hasattr(target, name)):
            setattr(target, name, value)


class Tracer(TracerBase):
    """Traces programs; its methods say what becomes a node, and can be overridden.

    `autowrap_modules`, `autowrap_functions`: functions, of these modules too, whose
    calls become nodes; `param_shapes_constant`: shapes of parameters are not traced.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Tracer

    >>> import torchshim as torch
    >>> class Deep(Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> graph = Deep().trace(torch.nn.Linear(2, 2))
    >>> [node.name for node in graph.nodes]
    ['input_1', 'weight', 'bias', 'linear', 'output']
    """

    root: Module

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        members = chain.from_iterable(vars(m).items() for m in autowrap_modules)
        self._autowrap_function_ids = {
            id(value) for name, value in members if name[:1] != "_" and callable(value)
        }
        self._autowrap_function_ids.update(map(id, autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    _qualname_counter: ClassVar[dict[str, int]] = defaultdict(int)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with this beginning that the root has no attribute of."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value in the graph.

        Parameters, buffers and modules of the root are attributes of it, other tensors
        become some. NameError for another module's parameter.
        """
        if isinstance(a, Parameter):
            name = _name_of(a, self.root.named_parameters())
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, (Tensor, Module)):
            of_module = isinstance(a, Module)
            known = (
                self.root.named_modules() if of_module else self.root.named_buffers()
            )
            name = _name_of(a, known)
            if name is not None:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(each) for each in a)
            return self.create_node("call_function", a.__class__, args, {})
        for kind, prefix in _CONSTANTS.items():
            if isinstance(a, kind):
                name = self.tensor_attrs.get(a)
                if not name:
                    name = self.tensor_attrs[a] = self.get_fresh_qualname(prefix)
                    setattr(self.root, name, a)
                return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module's call is one node: PyTorch's own, but for Sequential.

        Scripted modules are ones, too, whose code PyTorch cannot trace either.
        """
        module = torch_module(m.__module__)
        own = module.startswith(("torch.nn", "torch.ao.nn", "torch.jit"))
        return own and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a submodule of the root; NameError if it is none."""
        paths: Any = self.submodule_paths
        if paths:
            path = paths.get(mod)
        else:
            path = _name_of(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """What the call of a module gives: a node's proxy, or what its forward does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = path, scope.module_type
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem(last=True)
        return result

    def getattr(
        self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]
    ) -> Any:
        """What reading an attribute of a module gives: a proxy for a parameter."""
        if isinstance(attr_val, Parameter):
            name = _name_of(attr_val, self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            name = _name_of(attr_val, self.root.named_buffers())
        else:
            return attr_val
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            # Programs override `create_proxy` without parameters that came later.
            options: dict[str, Any] = {}
            if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                options["proxy_factory_fn"] = (
                    functools.partial(self._parameter_proxy, name, attr_val)
                    if self.param_shapes_constant
                    else None
                )
            made = self.create_proxy("get_attr", name, (), {}, **options)
            parameter_proxy_cache[name] = made
        return parameter_proxy_cache[name]

    def _parameter_proxy(self, name: str, value: Any, node: Any) -> ParameterProxy:
        return ParameterProxy(self, node, name, value)

    # Inputs

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """The function that is run, and what stands for its arguments."""
        fn = inspect.unwrap(root_fn)
        code = fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if count == 0:
                raise RuntimeError(
                    "``self`` argument cannot be part of *args expansion!"
                )
            next(names)
            args.append(self.root)
        variadic = code.co_flags & _VARIADIC
        if isinstance(concrete_args, tuple) and concrete_args and variadic:
            if count == 1:
                return root_fn, args + self._flat_inputs(concrete_args)
        given = [next(names) for _ in range(int(is_module), count)]
        if isinstance(concrete_args, tuple):
            if len(given) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(given)} arguments but got "
                    f"{len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(given, concrete_args, strict=True))
        signature = inspect.signature(fn)

        def placeholder(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args, signature, fn)

        args.extend(map(placeholder, given))
        if code.co_kwonlyargcount > 0 or variadic:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(placeholder(f"*{next(names)}"))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(placeholder(f"**{next(names)}"))
            root_fn = _without_variadic(root_fn, len(args))
        leaves, spec = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        codegen = _PyTreeCodeGen(
            _PyTreeInfo(list(code.co_varnames)[:count], spec, None)
        )
        self.graph._codegen = codegen

        def flatten_fn(*args: Any) -> Any:
            result = root_fn(*tree_unflatten(list(args), spec))
            found, out_spec = tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return found

        flatten_fn.__annotations__ = {}  # the result is a list of leaves
        return flatten_fn, leaves

    def _flat_inputs(self, concrete_args: tuple[Any, ...]) -> list[Any]:
        """Inputs of a function that takes just `*args`."""
        made: list[Any] = []
        for i, each in enumerate(concrete_args):
            proxy = self.create_proxy("placeholder", f"input_{i}", (), {})
            if isinstance(each, PHBase):
                _transfer_attributes(each, proxy.node)
            made.append(proxy)
        return made

    def _proxy_placeholder(
        self,
        name: str,
        concrete_args: Any,
        sig: inspect.Signature,
        fn_for_analysis: Callable[..., Any],
    ) -> Any:
        """What stands for one parameter."""
        default: tuple[Any, ...] = ()
        if name[0] != "*":
            value = sig.parameters[name].default
            default = () if value is inspect.Parameter.empty else (value,)
        if concrete_args is None or name not in concrete_args:
            kind = _annotation(fn_for_analysis, name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def replace(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                _transfer_attributes(x, out.node)
                return out
            self._check_specialized(name, out, x)
            return x

        return tree_map(replace, concrete_args[name])

    def _check_specialized(self, name: str, out: Any, x: Any) -> None:
        """Has the graph check that an input is what it was traced with."""
        start = f"{name} has been specialized to have value "
        if type(x) in base_types and type(x) is not Tensor:
            torchshim._assert(out == x, f"{start}{x} but got another value")
        elif x is None:
            args = (out, f"{start}None but got another value")
            self.create_proxy("call_function", _assert_is_none, args, {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to "
                "specialized function. It is up to the user to make sure that your "
                "inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )

    # Tracing

    def trace(
        self,
        root: Module | Callable[..., Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> Graph:
        """The graph of a module's forward, or of a function.

        `concrete_args`: arguments that are known, and not traced; in them `PH` stands
        for those that are not. TraceError, or NotImplementedError, for what cannot be
        traced.
        """
        before = _tracing[0]
        _tracing[0] = True
        try:
            return self._trace(root, concrete_args)
        finally:
            _tracing[0] = before

    def _trace(self, root: Any, concrete_args: Any) -> Graph:
        of_module = isinstance(root, Module)
        if of_module:
            self.root = root
            name = self.traced_func_name
            if not hasattr(type(root), name):
                raise AssertionError(
                    f"traced_func_name={name} doesn't exist in {type(root).__name__}"
                )
            fn = getattr(type(root), name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: path for path, mod in root.named_modules()}
        else:
            self.root = Module()
            fn = root
        self.graph = Graph(tracer_cls=type(self))
        code = getattr(fn, "__code__", None)
        if code is not None:
            fields = ("co_name", "co_filename", "co_firstlineno")
            self.graph._co_fields = {field: getattr(code, field) for field in fields}
        self.tensor_attrs: dict[Any, str] = {}
        self._collect_constants(self.root, [])
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        names = fn.__globals__
        fn, args = self.create_args_for_root(fn, of_module, concrete_args)
        with patching() as patcher:
            self._patch_modules(patcher)
            patcher.wrap_named()
            patcher.wrap_found(names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                patcher.wrap_found(vars(module), self._autowrap_function_ids)
            kind = _annotation(inspect.unwrap(fn), "return")
            result = self.create_arg(fn(*args))
            self.create_node("output", "output", (result,), {}, type_expr=kind)
        self.submodule_paths = None
        return self.graph

    def _collect_constants(self, module: Module, path: list[str]) -> None:
        """Finds the tensors among the attributes of modules."""
        for name, value in vars(module).items():
            if isinstance(value, tuple(_CONSTANTS)):
                self.tensor_attrs[value] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_constants(child, [*path, name])

    def _patch_modules(self, patcher: Patcher) -> None:
        """Has calls of modules, and what is read of them, come to this tracer."""
        read, call = _module_getattr, _module_call
        cache: dict[str, Any] = {}

        @functools.wraps(read)
        def module_getattr(mod: Module, attr: str) -> Any:
            return self.getattr(attr, read(mod, attr), cache)

        @functools.wraps(call)
        def module_call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            patcher.wrap_found(names, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        # Layers find their own parameters faster than by `__getattr__`.
        for name, module in list(sys.modules.items()):
            if name.startswith(_LAYERS) and "weight_and_bias" in vars(module):
                patcher.patch(vars(module), "weight_and_bias", _weight_and_bias)
        patcher.patch_method(Module, "__getattr__", module_getattr)
        patcher.patch_method(Module, "__call__", module_call)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        copied = Tracer.__new__(Tracer)
        for name, value in vars(self).items():
            # Modules of Python cannot be copied.
            shallow = name == "_autowrap_search"
            made = copy.copy(value) if shallow else copy.deepcopy(value, memo)
            copied.__dict__[name] = made
        return copied


_LAYERS = f"{__name__.partition('.')[0]}.nn.modules."
# What layers' annotations mean.
_KINDS = {"Tensor": Tensor, "Tensor | None": Tensor | None}


def _weight_and_bias(module: Module) -> tuple[Any, Any]:
    return module.weight, module.bias


_module_getattr = Module.__getattr__
_module_call = Module.__call__


def _name_of(value: Any, members: Iterable[tuple[str, Any]]) -> str | None:
    return next((name for name, member in members if member is value), None)


def _annotation(fn: Callable[..., Any], name: str) -> Any:
    """The annotation of a parameter, or of the result.

    Those of torchshim's own layers are texts, of which PyTorch has but tensors.
    """
    found = getattr(fn, "__annotations__", {}).get(name)
    if isinstance(found, str) and torch_module(fn.__module__).startswith("torch."):
        return _KINDS.get(found)
    return found


def _without_variadic(fn: Any, count: int) -> FunctionType:
    """A function whose `*args` and `**kwargs` are parameters like others."""
    code = fn.__code__.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~_VARIADIC,
    )
    return FunctionType(
        code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )


def wrap(fn_or_name: _Function) -> _Function:
    """Has calls of a function of the calling module become nodes: the function.

    RuntimeError for what is neither a function nor a name, NotImplementedError where it
    is not called at the top of a module.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.wrap
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string "
            "name"
        )
    function: Any = fn_or_name
    name = function if isinstance(function, str) else function.__name__
    current = inspect.currentframe()
    frame = current and current.f_back
    assert frame is not None
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(
    root: Module | Callable[..., Any],
    concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
) -> GraphModule:
    """A module made of the graph of another, or of a function.

    `concrete_args`: arguments that are known, and not traced; in them `PH` stands for
    those that are not. TraceError where control flow depends on a value.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.symbolic_trace

    >>> import torchshim as torch
    >>> traced = symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)
