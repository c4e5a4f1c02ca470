"""Modules whose forward is made of a graph.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.GraphModule
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from torchshim._tensor import Tensor
from torchshim.fx._generated import forward_of, forward_of_text, import_block
from torchshim.fx.graph import Graph, PythonCode, _BoxedCodeGen, _PyTreeCodeGen
from torchshim.nn.modules.module import Module, _addindent
from torchshim.nn.parameter import Parameter

__all__ = ["GraphModule", "reduce_graph_module"]

# The end of what the classes are called that have generated code.
_IMPL = ".GraphModuleImpl"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module with the fields of another, whose graph is made anew of its code."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """What `pickle` calls: the module with these fields, its code traced again."""
    from torchshim.fx._symbolic_trace import Tracer

    source = body.get("_code") or body["code"]

    class CodeModule(_CodeOnlyModule):
        forward = forward_of_text(f"{import_block}{source}")

    tracer_cls: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):
        # Whatever was traced into has no module any more.
        def is_leaf_module(self, _: Module, __: str) -> bool:
            return True

    root = CodeModule(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    name = body.get("_graphmodule_cls_name", "GraphModule")
    made = GraphModule(root, graph, class_name=name)
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


# Attributes by their full names -------------------------------------------------------


def _assign(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Gives a module another's attribute, with empty modules on the way there."""
    *path, field = target.split(".")
    for name in path:
        source: Any = getattr(from_module, name)
        own: Any = getattr(to_module, name, None)
        if source is own:
            return  # its parent is here already
        if own is None:
            own = Module()
            setattr(to_module, name, own)
        from_module, to_module = source, own
    _assign(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Sets an attribute, with empty modules on the way there."""
    *path, field = target.split(".")
    for name in path:
        own: Any = getattr(to_module, name, None)
        if own is None:
            own = Module()
            setattr(to_module, name, own)
        to_module = own
    _assign(to_module, field, from_obj)


def _get_attr(model: Module, attr_name: str) -> Any:
    """An attribute by its full name."""
    found: Any = model
    *path, field = attr_name.split(".")
    for name in path:
        found = getattr(found, name, None)
        if found is None:
            raise AssertionError(f"Attribute '{name}' not found in model")
    return getattr(found, field)


def _has_attr(model: Module, attr_name: str) -> bool:
    """Whether there is an attribute with this full name."""
    found: Any = model
    for name in attr_name.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


# Calls --------------------------------------------------------------------------------


class _WrappedCall:
    """The call of a module that says where in its generated source an error is of."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno, frame_summary.line
        assert number is not None and line is not None
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {number} of the traced Module's "
                "generated forward function:",
                "".join(lines[number - 2 : number]),
                f"{'~' * len(line)}~~~ <--- HERE",
                "\n".join(lines[number : number + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)
            # The innermost line that is not torchshim's own, as PyTorch's is in C++.
            frame = next((f for f in reversed(last) if not _is_ours(f)), last[-1])
            if "eval_with_key" in frame.filename:
                print(self._generate_error_message(frame), file=sys.stderr)
                raise error.with_traceback(None)  # noqa: B904
            raise


_PACKAGE = __file__.rpartition("fx")[0]
# What PyTorch writes in Python, too: layers, and the functions they are made of.
_IN_PYTHON = (f"{_PACKAGE}nn", f"{_PACKAGE}_functions{os.sep}nn_")


def _is_ours(frame: traceback.FrameSummary) -> bool:
    """Whether a frame is of what PyTorch has no frames of."""
    if frame.filename.startswith(_IN_PYTHON):
        return False
    return frame.filename.startswith((_PACKAGE, "<torchshim"))


class GraphModule(Module):
    """A module that does what a graph says; `root` has the attributes it refers to.

    A dict for `root` has them by their full names. Assigning `graph` generates
    `forward` anew; who changes the graph calls `recompile()`. RuntimeError for a `root`
    of another type, or without an attribute that the graph needs.
    https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.GraphModule

    >>> import torchshim as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.neg, (x,)))
    >>> GraphModule(torch.nn.Module(), graph)(torch.tensor(2))
    tensor(-2)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, which gets the generated forward; of a copy that
        # class is made anew.
        own = next(c for c in cls.__mro__ if not c.__qualname__.endswith(_IMPL))

        class GraphModuleImpl(own):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(
        self,
        root: Module | dict[str, Any],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [
            (node, node.target)
            for node in graph.nodes
            if node.op in ("get_attr", "call_module")
        ]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                members = (
                    *(root.named_children(), root.named_buffers()),
                    root.named_parameters(),
                )
                for name, _ in itertools.chain(*members):
                    _copy_attr(root, self, name)
            for _, target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node, target in targets:
                if target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {target} but that target was "
                        "not provided in ``root``!"
                    )
            # What is deeper comes later: a module does not replace what is in it.
            for target in sorted((t for _, t in targets), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        local = tracer is None or "<locals>" in tracer.__qualname__
        self._tracer_cls = None if local else tracer  # what `pickle` finds
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[..., Any]] = []
        self._erase_node_hooks: list[Callable[..., Any]] = []
        self._deepcopy_hooks: list[Callable[..., Any]] = []
        self.shape_env = None

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates `forward` anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The generated source; RuntimeError before there is some."""
        if not hasattr(self, "_code"):
            raise RuntimeError(
                "Code has not been generated! Please report a bug to PyTorch"
            )
        return self._code

    def recompile(self) -> PythonCode:
        """Generates `forward` of the graph as it is now: its source."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = self._graph._codegen.pytree_info.in_spec
            self._out_spec = self._graph._codegen.pytree_info.out_spec
        made = self._graph.python_code(root_module="self")
        self._code = made.src
        self._lineno_map = made._lineno_map
        self._prologue_start = made._prologue_start
        cls: Any = type(self)
        cls.forward = forward_of(self._code, made.globals, self._graph._co_fields)
        # A program's own `__call__` stays in force; `Module`'s is found anew at every
        # call, as tracing replaces it.
        own = cls.__call__ if "__call__" in vars(cls) else None
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, own)
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return made

    # Submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module under a full name, with empty ones on the way.

        Gives whether it could: it cannot where what is on the way is no module.
        """
        *path, field = target.split(".")
        owner: Any = self
        for name in path:
            inner = getattr(owner, name, None)
            if inner is None:
                inner = Module()
                setattr(owner, name, inner)
            if not isinstance(inner, Module):
                return False
            owner = inner
        owner.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes a module away: whether there was one of this full name."""
        *path, field = target.split(".")
        owner: Any = self
        for name in path:
            owner = getattr(owner, name, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, field, None), Module):
            return False
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes the modules away that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(itertools.accumulate(parts, lambda x, y: f"{x}.{y}"))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    inner = self.get_submodule(node.target)
                    used.update(
                        f"{node.target}.{name}" for name, _ in inner.named_modules()
                    )
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # Copies

    def __reduce__(self) -> Any:
        # The source is kept, not the graph: it is traced again.
        fields = self.__dict__.copy()
        block = import_block(self.recompile().globals)
        del fields["_graph"]
        return reduce_graph_module, (fields, block)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied: Any = type(self).__new__(type(self))
        memo[id(self)] = copied
        fake = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(copied, fake, fake.__dict__["_graph"])
        for name in _KEPT_HOOKS:
            if name in self.__dict__:
                setattr(copied, name, copy.deepcopy(self.__dict__[name], memo))
        copied.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = getattr(self, "meta", {})
        return copied

    def _replicate_for_data_parallel(self) -> GraphModule:
        # Another of this class would have no generated forward.
        replica = copy.copy(self)
        replica._is_replica = True
        return replica

    def to_folder(
        self, folder: str | os.PathLike[str], module_name: str = "FxModule"
    ) -> None:
        """Writes the module as a package: `from folder import FxModule`.

        Its state lies beside it; modules that cannot be written as source are pickled,
        with a warning.
        """
        from torchshim.fx._to_folder import write_folder

        write_folder(self, folder, module_name)

    # Text

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The source of a class with what is known of values, printed if wanted.

        `fast_sympy_print` is about shapes that are symbols, of which there are none.
        """
        text = _readable(
            self,
            self._get_name(),
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            additional_meta=additional_meta,
            expanded_def=expanded_def,
        )
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = (
            "# To see more debug info, please use `graph_module.print_readable()`"
        )
        return "\n".join([super().__str__(), self._code, reminder])

    # Hooks that passes of PyTorch's register

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """Within it, `f(old, new, user)` is called where a node is replaced."""
        if not callable(f):
            raise AssertionError("Replace hook must be a callable.")
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        _register(self._replace_hooks, f, "create_node")

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        _register(self._create_node_hooks, f, "create_node")

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        _register(self._erase_node_hooks, f, "erase_node")

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        _register(self._deepcopy_hooks, f, "deepcopy")

    def _unregister_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.remove(f)


# What a copy has besides its graph and members.
_KEPT_HOOKS = (
    *("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    *("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks"),
)


def _register(
    hooks: list[Callable[..., Any]], f: Callable[..., Any], kind: str
) -> None:
    if not callable(f):
        raise AssertionError(f"{kind} hook must be a callable.")
    hooks.append(f)


def _readable(
    module: Any, name: str, *, expanded_def: bool = False, **options: Any
) -> str:
    code = module.graph.python_code(
        root_module="self", verbose=True, expanded_def=expanded_def, **options
    )
    own = f"class {name}(torch.nn.Module):\n{code.src.lstrip(chr(10))}"
    inner = [
        _readable(child, child_name, **options)
        for child_name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    return _addindent(own, 4) + _addindent("\n".join(["", *inner]), 4)
