"""A module as TensorBoard's graph: the operators of one call, in the modules' scopes.

What PyTorch's tracer finds by TorchScript is read here off the operators that are
recorded. Values are told apart by the tensors that hold them, as its tracer does.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from torchshim import _parser, jit
from torchshim._core.device import device
from torchshim._core.dtypes import dtype
from torchshim._core.op import OPERAND, OPT_OPERAND
from torchshim._tensor import Tensor
from torchshim.autograd import saving
from torchshim.nn import Module

# What PyTorch's tracer calls operators that go by another name here.
_NAMES = {
    **{f"conv{n}d": "_convolution" for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": "_convolution" for n in (1, 2, 3)},
    **{
        f"{n}_norm_{when}": f"{n}_norm"
        for n in ("batch", "instance")
        for when in ("eval", "train")
    },
    "basic_index": "slice",
    "split_pieces": "split",
}
_NOT_TRACED = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output "
    "from traced functions"
)


@dataclass
class _Node:
    """A node of the graph; `shape` is None where the value is no tensor."""

    name: str
    kind: str
    inputs: list[str]
    shape: Sequence[int] | None = None
    attributes: str = "{}"
    dtype: dtype | None = None

    def message(self) -> NodeDef:
        attr = {"attr": AttrValue(s=self.attributes.encode())}
        if self.shape is not None:
            dim = [TensorShapeProto.Dim(size=n) for n in self.shape]
            found = AttrValue.ListValue(shape=[TensorShapeProto(dim=dim)])
            attr["_output_shapes"] = AttrValue(list=found)
        return NodeDef(name=self.name, op=self.kind, input=self.inputs, attr=attr)

    def __str__(self) -> str:
        made = f"%{self.name}"
        if self.dtype is not None and self.shape is not None:
            made += f" : {self.dtype}[{', '.join(map(str, self.shape))}]"
        given = ", ".join(f"%{each}" for each in self.inputs)
        inner = self.attributes.strip("{} ")
        shown = f"[{inner}]" if inner else ""
        return f"  {made} = {self.kind}{shown}({given})"


class _Tracer:
    """Notes the operators that run in the scopes of modules."""

    def __init__(self, model: Module) -> None:
        self.root = getattr(model, "original_name", type(model).__name__)
        self.nodes: list[_Node] = []
        self.scopes = [self.root]
        # The node of a tensor, by its identity; and the tensors, which must live on.
        self.known: dict[int, str] = {}
        self.held: list[Tensor] = []
        self.names = 0
        self.taken: set[str] = set()
        self.members = self._members(model)

    def _members(self, model: Module) -> dict[int, tuple[str, str]]:
        """Scope and name of the parameters and buffers."""
        found: dict[int, tuple[str, str]] = {}
        for path, module in model.named_modules():
            parts, scope, at = path.split(".") if path else [], self.root, model
            for part in parts:
                at = at._modules[part]
                scope += f"/{type(at).__name__}[{part}]"
            for own in (module._parameters, module._buffers):
                for name, value in own.items():
                    if value is not None:
                        found.setdefault(id(value), (f"{scope}/{name}", name))
        return found

    # -- nodes -------------------------------------------------------------------------

    def named(self, scope: str, name: str | None = None) -> str:
        """A name that no other node has."""
        if name is None:
            self.names += 1
            return f"{scope}/{self.names}"
        made, count = f"{scope}/{name}", 0
        while made in self.taken:
            count += 1
            made = f"{scope}/{name}.{count}"
        self.taken.add(made)
        return made

    def add(
        self, kind: str, inputs: Sequence[str] = (), attributes: str = "{}"
    ) -> _Node:
        """A node in the scope of the module that runs."""
        node = _Node(self.named(self.scopes[-1]), kind, list(inputs), None, attributes)
        self.nodes.append(node)
        return node

    def knows(self, value: Tensor, node: str) -> None:
        """That a node made a tensor's value."""
        self.known[id(value)] = node
        self.held.append(value)

    def value(self, value: Any, operand: bool = False) -> str:
        """The name of the node that gives a value."""
        if isinstance(value, Tensor):
            return self.known.get(id(value)) or self.tensor(value)
        if isinstance(value, (tuple, list)):
            inner = [self.value(each) for each in value]
            return self.add("prim::ListConstruct", inner).name
        if value is None:
            return self.add("prim::Constant").name
        if isinstance(value, (str, device, dtype)):
            text = f" {value} "
        else:
            text = str(int(value) if isinstance(value, bool) else value)
        if operand:
            text = f"tensor({text})"
        node = self.add("prim::Constant", (), f"{{ value : {text}}}")
        node.shape = [] if operand else None
        return node.name

    def tensor(self, value: Tensor) -> str:
        """The node of a tensor from outside: a member of a module, or a constant."""
        member = self.members.get(id(value))
        if member is None:
            with saving.unobserved():
                text = str(value.detach()).replace("'", " ")
            node = self.add("prim::Constant", (), f"{{ value : {text}}}")
            node.shape = tuple(value.shape)
        else:
            scope, name = member
            attributes = f"{{ name :  {name} }}"
            node = _Node(self.named(scope, name), "prim::GetAttr", [], None, attributes)
            self.nodes.append(node)
        self.knows(value, node.name)
        return node.name

    def observe(self, state: Any, args: Sequence[Any], outs: list[Any]) -> None:
        """An operator that ran."""
        call = state.call
        inputs = [
            self.value(arg, param.role in (OPERAND, OPT_OPERAND) and arg is not None)
            for param, arg in zip(call.op.params, args, strict=False)
        ]
        for extra in args[len(call.op.params) :]:
            inputs.append(self.value(extra))
        own: str = call.op.public or call.op.name
        name = _NAMES.get(own, own)
        if call.write and not name.endswith("_"):
            name += "_"
        kind = f"aten::{name}" if _known(name) else f"torchshim::{name}"
        for out in outs:
            node = self.add(kind, inputs)
            node.shape, node.dtype = tuple(out._tmeta.shape), out._tmeta.dtype
            self.knows(out, node.name)
        if call.write and isinstance(args[0], Tensor):
            self.knows(args[0], self.nodes[-1].name)

    # -- what goes in and out ----------------------------------------------------------

    def given(self, name: str, value: Any) -> None:
        """An argument of the model: a tensor, or tensors in containers."""
        node = _Node(self.named("input", name), "IO Node", [], [1], "")
        self.nodes.append(node)
        if isinstance(value, Tensor):
            node.shape, node.dtype = tuple(value.shape), value.dtype
            self.knows(value, node.name)
            return
        self.unpack(node.name, value)

    def unpack(self, source: str, value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            inner = value[key]
            if isinstance(value, dict):
                node = self.add("aten::__getitem__", [source, self.value(key)])
            else:
                kind = "Tuple" if isinstance(value, tuple) else "List"
                node = self.add(f"prim::{kind}Unpack", [source])
            if isinstance(inner, Tensor):
                node.shape, node.dtype = tuple(inner.shape), inner.dtype
                self.knows(inner, node.name)
            else:
                self.unpack(node.name, inner)

    def result(self, value: Any, strict: bool, outer: bool = True) -> str:
        """The node of what the model gave; RuntimeError where it cannot be traced."""
        if isinstance(value, Tensor):
            return self.value(value)
        if outer and value is None:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not "
                "captured in traces, so it would be a no-op."
            )
        if isinstance(value, dict):
            if strict:
                raise RuntimeError(
                    "Encountering a dict at the output of the tracer might cause the "
                    "trace to be incorrect, this is only valid if the container "
                    "structure does not change based on the module's inputs. Consider "
                    "using a constant container instead (e.g. for `list`, use a "
                    "`tuple` instead. for `dict`, use a `NamedTuple` instead). If you "
                    "absolutely need this and know the side effects, pass strict=False "
                    "to trace() to allow this behavior."
                )
            inner: list[str] = []
            for key, each in value.items():
                inner += [self.value(key), self.result(each, strict, False)]
            return self.add("prim::DictConstruct", inner).name
        if isinstance(value, (tuple, list)):
            inner = [self.result(each, strict, False) for each in value]
            kind = "Tuple" if isinstance(value, tuple) else "List"
            return self.add(f"prim::{kind}Construct", inner).name
        raise RuntimeError(_NOT_TRACED)


def _known(name: str) -> bool:
    """Whether PyTorch has an operator of this name."""
    return name in _NAMES.values() or any(
        _parser.signatures(space, each)
        for space in _parser.spaces()
        for each in (name, name.removesuffix("_"))
    )


def _copied(value: Any) -> Any:
    """Arguments whose tensors are objects of their own."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map(_copied, value))
    return value.detach().clone().requires_grad_(value.requires_grad)


def _traceable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_traceable, value.values()))
    if isinstance(value, (tuple, list)):
        return all(map(_traceable, value))
    return isinstance(value, Tensor)


def _arguments(args: Any) -> tuple[Any, ...]:
    if args is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    given = (args,) if isinstance(args, (Tensor, dict)) else tuple(args)
    for value in given:
        if not _traceable(value):
            kinds = ", ".join(type(each).__name__ for each in given)
            raise RuntimeError(
                f"Type 'Tuple[{kinds}]' cannot be traced. Only Tensors and (possibly "
                "nested) Lists, Dicts, and Tuples of Tensors can be traced"
            )
    return tuple(map(_copied, given))


@contextmanager
def _scoped(tracer: _Tracer, model: Module) -> Iterator[None]:
    """Within it the tracer knows which module runs."""
    handles: list[Any] = []
    for path, module in model.named_modules():
        if path:
            name = f"{type(module).__name__}[{path.rpartition('.')[2]}]"
            handles += _hooks(tracer, module, name)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hooks(tracer: _Tracer, module: Module, name: str) -> list[Any]:
    def enter(*_: Any) -> None:
        tracer.scopes.append(f"{tracer.scopes[-1]}/{name}")

    def leave(*_: Any) -> None:
        tracer.scopes.pop()

    return [
        module.register_forward_pre_hook(enter, prepend=True),
        module.register_forward_hook(leave, always_call=True),
    ]


@contextmanager
def _set_model_to_eval(model: Any) -> Iterator[None]:
    """Within it the model evaluates."""
    if isinstance(model, jit.ScriptFunction):
        yield
        return
    training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(training)


def _trace(model: Any, args: Any, strict: bool) -> list[_Node]:
    if not isinstance(model, Module):
        raise RuntimeError(f"add_graph: expected a module, got {type(model).__name__}")
    model = getattr(model, "_original", model)
    given = _arguments(args)
    tracer = _Tracer(model)
    for name, value in zip(_parameter_names(model.forward), given, strict=False):
        tracer.given(name, value)
    with _scoped(tracer, model), saving.observing(tracer.observe):
        result = model(*given)
        made = tracer.result(result, strict)
    used = {name for node in tracer.nodes for name in node.inputs} | {made}
    inputs = [n for n in tracer.nodes if n.kind == "IO Node" and n.name in used]
    others = [n for n in tracer.nodes if n.kind != "IO Node"]
    shape = tuple(result.shape) if isinstance(result, Tensor) else [1]
    output = _Node("output/output.1", "IO Node", [made], shape, "")
    return [*inputs, output, *others]


def _parameter_names(forward: Callable[..., Any]) -> Iterator[str]:
    """Names of the parameters, without end."""
    for name, parameter in inspect.signature(forward).parameters.items():
        while parameter.kind is parameter.VAR_POSITIONAL:
            yield name
        yield name


def graph(
    model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True
) -> tuple[GraphDef, RunMetadata]:
    """The graph of one call of `model`, which evaluates, with the arguments `args`.

    A node is an operator (`aten::linear`), a parameter or a constant; scopes are the
    modules. `verbose` prints the nodes. Raises RuntimeError, which is printed as well,
    for arguments and results that are no tensors, and with `use_strict_trace` for a
    dict as the result.
    """
    with _set_model_to_eval(model):
        try:
            nodes = _trace(model, args, use_strict_trace)
        except RuntimeError as error:
            print(error)
            print("Error occurs, No graph saved")
            raise
    if verbose:
        print("graph:", *nodes, sep="\n")
    stats = StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")])
    messages = [node.message() for node in nodes]
    definition = GraphDef(node=messages, versions=VersionDef(producer=22))
    return definition, RunMetadata(step_stats=stats)
