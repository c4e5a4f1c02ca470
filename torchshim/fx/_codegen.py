"""The source of a graph: one statement for each node.

https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph.python_code
"""

from __future__ import annotations

import enum
import inspect
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchshim._core.device import device as device_type
from torchshim._errors import Unsupported
from torchshim._tensor import Tensor
from torchshim.fx._names import is_from_torch as _is_from_torch
from torchshim.fx._namespace import _custom_builtins, _Namespace
from torchshim.fx._source import (
    colors,
    inplace_methods,
    magic_methods,
    parse_stack_trace,
    tensor_annotation,
)
from torchshim.fx.node import Node, _get_qualified_name, _type_repr
from torchshim.fx.tensor_type import TensorType
from torchshim.ops import OpOverload

TransformCodeFunc = Callable[[list[str]], list[str]]


@dataclass
class PythonCode:
    """The source of a graph, and what its names stand for.

    https://docs.pytorch.org/docs/2.13/fx.html
    """

    src: str
    globals: dict[str, Any]
    # Line of the function -> place of the node in the graph.
    _lineno_map: dict[int, int | None] | None
    # The line of `def` in `src`.
    _prologue_start: int = 0


def _format_target(base: str, target: str) -> str:
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class CodeGen:
    """Makes Python of a graph; its methods can be overridden.

    https://docs.pytorch.org/docs/2.13/fx.html

    >>> import torchshim as torch
    >>> class Named(CodeGen):
    ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
    ...         return f"def forward(self, *, {', '.join(free_vars)}):"
    >>> traced = torch.fx.symbolic_trace(lambda x: x + 1)
    >>> traced.graph.set_codegen(Named())
    >>> _ = traced.recompile()
    >>> traced(x=1)
    2
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The line with `def`; `expanded_def`: each parameter in a line of its own."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        given = ", ".join(free_vars)
        if expanded_def:
            given = "\n" + "".join(_on_own_line(each) for each in free_vars)
        return f"def {self._func_name}({given}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The `return` statement; `descs`: a comment for each of several results."""
        text = repr_fn or repr
        if descs is not None and isinstance(output_args, (list, tuple)):
            return self._format_multiline_container(
                output_args, descs, "return ", repr_fn=text
            )
        return f"return {text(output_args)}"

    def _format_multiline_container(
        self,
        items: Sequence[object],
        descs: Sequence[str] | None = None,
        prefix: str = "",
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        text = repr_fn or repr
        left, right = "()" if isinstance(items, tuple) else "[]"
        notes = [""] * len(items) if descs is None else [f"  # {d}" for d in descs]
        lines = [
            f"    {text(item)},{note}\n"
            for item, note in zip(items, notes, strict=False)
        ]
        return f"{prefix}{left}\n{''.join(lines)}{right}"

    def process_inputs(self, *args: Any) -> Any:
        """What the graph's inputs are for these arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function returns for this result of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the source uses besides those of the nodes, and their objects."""
        return []

    def _call_method_with_signature_check(
        self, method: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Calls a method that may lack parameters which came later."""
        known = inspect.signature(method).parameters
        return method(*args, **{k: v for k, v in kwargs.items() if k in known})

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        if record_func:
            raise Unsupported(
                "torch.fx: record_func is not supported: what runs within a program is "
                "told by JAX's profiler only"
            )
        options = _Options(
            verbose,
            include_stride or os.environ.get("FX_GRAPH_SHOW_STRIDE") == "1",
            include_device or os.environ.get("FX_GRAPH_SHOW_DEVICE") == "1",
            os.environ.get("FX_GRAPH_SHOW_META") == "1",
            colored,
            expanded_def,
            tuple(additional_meta or ()),
        )
        return _Writer(self, root_module, namespace, options).write(nodes)


def _on_own_line(parameter: str) -> str:
    name, hash_sign, comment = parameter.partition("#")
    if hash_sign:
        return f"    {name.rstrip()},  # {comment.lstrip()}\n"
    return f"    {parameter},\n"


@dataclass(frozen=True)
class _Options:
    verbose: bool
    stride: bool
    device: bool
    meta: bool
    colored: bool
    expanded_def: bool
    additional_meta: tuple[str, ...]


_COUNTER = re.compile(r"# COUNTER: (\d+)")
# Classes of `typing` are told as such, the built-in ones as what they are.
_TYPING = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


class _Writer:
    """Writes the source of one graph."""

    def __init__(
        self,
        codegen: CodeGen,
        root_module: str,
        namespace: _Namespace,
        options: _Options,
    ) -> None:
        self.codegen = codegen
        self.root = root_module
        self.namespace = namespace
        self.options = options
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.returned = ""
        self.summary: str | None = None
        self.paint = colors(options.colored)
        for name, (_, obj) in _custom_builtins.items():
            self.add_global(name, obj)

    # Names and values

    def add_global(self, hint: str, obj: Any) -> str:
        """The name by which the source finds an object."""
        if _is_from_torch(obj) and obj is not device_type:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(hint, obj)
        known = self.globals.setdefault(name, obj)
        if known is not obj and known != obj:
            raise AssertionError(
                f"Global name {name} already assigned to different object"
            )
        return name

    def type_repr(self, kind: Any) -> str:
        if isinstance(kind, tuple) and kind == ():
            return "()"  # of `Tuple[()]`
        name = _type_repr(kind)
        if isinstance(kind, types.UnionType) and "|" in name:
            return "|".join(self.type_repr(arg) for arg in typing.get_args(kind))
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.add_global(name, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _TYPING.get(origin, origin)
        shown = self.add_global(_type_repr(origin), origin)
        inner = kind.dims if isinstance(kind, TensorType) else typing.get_args(kind)
        if not inner:
            return shown
        return f"{shown}[{','.join(self.type_repr(arg) for arg in inner)}]"

    def value(self, arg: Any) -> str:
        """An argument as source."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            cls = type(arg)
            return f"{self.add_global(_get_qualified_name(cls), cls)}{tuple(arg)!r}"
        if isinstance(arg, OpOverload):
            return self.add_global(_get_qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            cls = arg.__class__
            return f"{self.add_global(cls.__name__, cls)}.{arg.name}"
        if isinstance(arg, Tensor):
            dtype = str(arg.dtype).rpartition(".")[2]
            return f"torch.Tensor(size={list(arg.size())}, dtype={dtype})"
        if isinstance(arg, tuple):
            if len(arg) == 1:
                return f"({self.value(arg[0])},)"
            return f"({', '.join(map(self.value, arg))})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, slice):
            parts = map(self.value, (arg.start, arg.stop, arg.step))
            return f"slice({', '.join(parts)})"
        return self.paint("blue", repr(arg))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        given = [self.value(a) for a in args]
        return ", ".join(given + [f"{k} = {self.value(v)}" for k, v in kwargs.items()])

    # Nodes

    def write(self, nodes: Any) -> PythonCode:
        unused = last_uses(nodes)
        for i, node in enumerate(nodes):
            if self.options.verbose:
                self.summarize(node)
            # Told apart again behind the body's transformer.
            self.body.append(f"# COUNTER: {i}\n")
            self.emit(node)
            self.delete_unused(node, unused.get(node, []))
        return self.finish()

    def delete_unused(self, user: Node, unused: list[Node]) -> None:
        """What nothing uses any more is let go of."""
        if user.op == "placeholder":
            return
        if user.op != "output":
            if not user.users:
                unused = [*unused, user]
            if unused:
                text = " = ".join([*map(repr, unused), "None"])
                self.body.append(f";  {self.paint('dim', text)}\n")
                return
        self.body.append("\n")

    def emit(self, node: Node) -> None:
        kind = "" if node.type is None else f" : {self.type_repr(node.type)}"
        if self.options.verbose:
            kind = tensor_annotation(node, self.options, self.paint) or kind
        desc = node.meta.get("desc") if self.options.expanded_def else None
        if self.options.meta and node.meta:
            self.body.append('"""\n')
            for key, value in node.meta.items():
                text = pprint.pformat(str(value), width=80, compact=True)
                self.body.append(f"{key}: {text}\n")
            self.body.append('"""\n')
        if node.op == "placeholder":
            self.emit_placeholder(node, kind, desc)
        elif node.op == "output":
            self.emit_output(node, desc)
        elif node.op == "call_function":
            self.body.append(self.function_call(node, kind))
        else:
            self.body.append(f"{node!r}{kind} = {self.found(node)}")

    def emit_placeholder(self, node: Node, kind: str, desc: str | None) -> None:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        comment = "" if desc is None else f"  # {desc}"
        self.free_vars.append(f"{node.target}{kind}{default}{comment}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def emit_output(self, node: Node, desc: Any) -> None:
        if node.type is not None:
            self.returned = f" -> {self.type_repr(node.type)}"
        self.body.append(
            self.codegen._call_method_with_signature_check(
                self.codegen.generate_output,
                node.args[0],
                descs=desc,
                repr_fn=self.value,
            )
        )

    def found(self, node: Node) -> str:
        """What a method, a module or an attribute gives."""
        target: Any = node.target
        if node.op == "get_attr":
            return _format_target(self.root, target)
        if node.op == "call_method":
            called = _format_target(self.value(node.args[0]), target)
            return f"{called}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            called = _format_target(self.root, target)
            return f"{called}({self.arguments(node.args, node.kwargs)})"
        raise NotImplementedError(f"node: {node.op} {target}")

    def function_call(self, node: Node, kind: str) -> str:
        target: Any = node.target
        if getattr(target, "__module__", "") == "_operator":
            args = [self.value(a) for a in node.args]
            if target.__name__ in magic_methods:
                text = magic_methods[target.__name__].format(*args)
                return f"{node!r}{kind} = {text}"
            if target.__name__ in inplace_methods:
                text = inplace_methods[target.__name__].format(*args)
                return f"{text};  {node!r}{kind} = {args[0]}"
        name = self.add_global(_get_qualified_name(target), target)
        args = node.args
        if name == "getattr" and len(args) == 2:
            if isinstance(args[1], str) and args[1].isidentifier():
                read = _format_target(self.value(args[0]), args[1])
                return f"{node!r}{kind} = {read}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{node!r}{kind} = {name}({self.arguments(args, node.kwargs)})"

    def summarize(self, node: Node) -> None:
        """A comment with the line that a node is of, where that changes."""
        if node.op in ("placeholder", "output"):
            return
        meta = node.meta
        shown = [k for k in self.options.additional_meta if k in meta]
        before = f"# {', '.join(f'{k}: {meta[k]}' for k in shown)} " if shown else ""
        notes = {
            k: v if len(str(v)) <= 40 else f"{str(v)[:40]}..."
            for k, v in meta.get("custom", {}).items()
        }
        note = f" Annotation: {notes}" if notes else ""
        where = "No stacktrace found for following nodes"
        found = parse_stack_trace(node.stack_trace) if node.stack_trace else None
        if found is not None:
            where = found.get_summary_str()
        summary = f"\n{self.paint('dim', f'{before}#{note} {where}')}\n"
        if summary != self.summary:
            self.summary = summary
            self.body.append(summary)

    def finish(self) -> PythonCode:
        if not self.body:
            self.body.append("pass\n")
        wraps = ""
        if self.wrapped:
            from torchshim.fx._symbolic_trace import wrap

            name = self.add_global("wrap", wrap)
            wraps = "\n".join(f'{name}("{each}")' for each in self.wrapped)
        body = self.body
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body)
        for name, obj in self.codegen.additional_globals():
            self.add_global(name, obj)
        prologue = self.codegen._call_method_with_signature_check(
            self.codegen.gen_fn_def,
            self.free_vars,
            self.returned,
            expanded_def=self.options.expanded_def,
        )
        numbers: dict[int, int | None] = {}
        lines: list[str] = []
        current = None
        for line in "".join(body).split("\n"):
            counter = _COUNTER.search(line)
            if counter is not None:
                current = int(counter.group(1))
                continue
            numbers[len(lines) + prologue.count("\n") + 1] = current
            lines.append(line)
        code = "\n".join(lines).lstrip("\n")
        code = "\n".join(f"    {line}" for line in code.split("\n"))
        source = f"\n{wraps}\n\n{prologue}\n{code}"
        return PythonCode(source, self.globals, numbers, wraps.count("\n") + 4)


def last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """Node -> the nodes that it is the last one to use."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(user, []).append(used)
    return found
