"""Operators that users registered: how a call finds its kernel and its gradient.

In PyTorch a dispatcher goes through keys; here the layers of a call follow one another
in code: autocast, `vmap`, gradients, and then the kernel for the device.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torchshim import _pytree as tree
from torchshim import ops
from torchshim._core.device import device as Device
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._core.threads import keep
from torchshim._derived import fns
from torchshim._errors import triggered, warn
from torchshim._function_modes import mode_enabled
from torchshim._functions.composed import Composed
from torchshim._library.schema import FunctionSchema
from torchshim._library.tags import Tag
from torchshim._overrides import dispatch, overriding
from torchshim.amp._settings import is_autocast_enabled
from torchshim.amp.autocast_mode import autocast
from torchshim.autograd._transformed import forward_of
from torchshim.autograd.function import Function
from torchshim.autograd.grad_mode import no_grad
from torchshim.autograd.graph import increment_version

# Kernels of all devices: composed of operators that have gradients, or not.
COMPOSITE, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
AUTOGRAD, META = "Autograd", "Meta"
_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": META, "xla": "XLA", "mps": "MPS"}
_KEYS |= {"xpu": "XPU", "mtia": "MTIA", "hpu": "HPU", "default": EXPLICIT}

_ALIASED = (
    "{} (with implementation in {}): The output of this custom operator (1) must not "
    "also be an input to this custom operator and (2) may not alias any inputs to this "
    "custom operator or other returns. The most common way to trigger this error is if "
    "we have y = custom_op(x) and y and x are the same Tensor. Please instead return a "
    "clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
    "custom operator to not return y."
)
_NO_KERNEL = (
    "Could not run '{0}' with arguments from the '{1}' backend. This could be because "
    "the operator doesn't exist for this backend, or was omitted during the "
    "selective/custom build process (if using custom build). If you are a Facebook "
    "employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for "
    "possible resolutions. '{0}' is only available for these backends: [{2}]."
)
_NO_FAKE = (
    "{}: attempted to run this operator with Meta tensors, but there was no fake impl "
    "or Meta kernel registered. You may have run into this message while using an "
    "operator with PT2 compilation APIs (torch.compile/torch.export); in order to use "
    "this operator with those APIs you'll need to add a fake impl. Please see the "
    "following for next steps:  "
    "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
)
_NO_GRADIENT = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are "
    "trying to backprop through it. This may lead to silently incorrect behavior. This "
    "behavior is deprecated and will be removed in a future version of PyTorch. If "
    "your operator is differentiable, please ensure you have registered an autograd "
    "kernel to the correct Autograd key (e.g. DispatchKey::Autograd, "
    "DispatchKey::CompositeImplicitAutograd). If your operator is not differentiable, "
    "or to squash this warning and use the previous behavior, please register "
    "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
)


def key_of(device: str) -> str:
    """The dispatch key of a device's kernels; a dispatch key as it is.

    RuntimeError for a device that there is not.
    """
    found = _KEYS.get(device)
    if found is None and device.islower():
        found = Device(device).type.upper()
    return found or device


class Gradient(NamedTuple):
    """What `register_autograd` was given."""

    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None


class _Below(threading.local):
    """How many kernels of the `Autograd` key have gone on below it."""

    depth = 0


_below = keep(_Below())


class AutoDispatchBelowAutograd:
    """Within the block, operators run the kernels that know nothing of gradients."""

    def __enter__(self) -> None:
        _below.depth += 1

    def __exit__(self, *exc_info: object) -> None:
        _below.depth -= 1


def _overriding(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Who overrides a call; kernels get tensors made of others as they are."""
    found = overriding((*args, *kwargs.values()))
    if not found:
        return found
    others = [value for value in found if not isinstance(value, Composed)]
    return others if others or mode_enabled() else None


class Operator(ops.OpOverload):
    """One form of an operator that a user registered."""

    def __init__(
        self, packet: OperatorPacket, schema: FunctionSchema, tags: Sequence[Tag]
    ) -> None:
        super().__init__(packet, schema.overload_name or "default")
        self._schema = schema
        self.tags = list(tags)
        # Dispatch key -> implementation.
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.gradient: Gradient | None = None
        # Whether calls are one node of the graph: `custom_op`, `register_autograd`.
        self.opaque = False
        # Whether a backward warns if there is no gradient (see `_without_gradient`).
        self.tells_of_no_gradient = True
        self.vmap: Callable[..., Any] | None = None
        # Device type -> what autocast casts to there.
        self.casts: dict[str, Any] = {}
        self._node: type[Any] | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = _overriding(args, kwargs)
        if found is not None:
            return dispatch(self, found, args, kwargs)
        given, keywords = self._schema.bound(args, kwargs)
        for device, dtype in self.casts.items():
            if is_autocast_enabled(device):
                given = [_cast(value, device, dtype) for value in given]
                with autocast(device, enabled=False):
                    return self._mapped(given, keywords)
        return self._mapped(given, keywords)

    def _mapped(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Beside `vmap`, if it maps over an argument."""
        leaves = list(tensors_in((args, kwargs)))
        if COMPOSITE in self.kernels or not any(t._tmeta.batch for t in leaves):
            return self._differentiated(args, kwargs, leaves)
        if local.rec.grad and any(t._tmeta.requires_grad for t in leaves):
            return self._differentiated(args, kwargs, leaves)
        return forward_of(_Rule(self, kwargs), tuple(args))

    def _differentiated(
        self, args: list[Any], kwargs: dict[str, Any], leaves: Sequence[Any]
    ) -> Any:
        rec = local.rec
        wanted = rec.grad and any(t._tmeta.requires_grad for t in leaves)
        if _below.depth:
            with no_grad():
                return self.run(args, kwargs)
        if AUTOGRAD in self.kernels:
            return self.kernels[AUTOGRAD](*args, **kwargs)
        if self.opaque:
            if wanted and Tag.out in self.tags:
                raise RuntimeError(
                    f"{self.overloadpacket.__name__}(): functions with out=... "
                    "arguments don't support automatic differentiation, but one of the "
                    "arguments requires grad."
                )
            if wanted:
                return _apply(self, args, kwargs)
            with no_grad():
                return self.run(args, kwargs)
        result = self.run(args, kwargs)
        if not wanted or COMPOSITE in self.kernels or not self.tells_of_no_gradient:
            return result
        return _without_gradient(self, result, leaves)

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls the kernel for the arguments' device."""
        schema = self._schema
        if schema.is_mutable and self.opaque:
            for argument, value in self.written(args, kwargs):
                if argument.type.of_tensors:
                    increment_version(tuple(tensors_in(value)))
        kernel = self.kernel_for(args, kwargs)
        return schema.returned(kernel(*args, **kwargs))

    def written(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """The arguments that the operator writes to, and what they were given."""
        values = iter(args)
        for argument in self._schema.arguments:
            value = kwargs[argument.name] if argument.kwarg_only else next(values)
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield argument, value

    def kernel_for(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Callable[..., Any]:
        """The kernel for a call. Raises: NotImplementedError."""
        found = [t.device.type for t in tensors_in((args, kwargs))]
        device = "meta" if "meta" in found else found[0] if found else None
        if device is None:
            for argument, value in zip(self._schema.arguments, args, strict=False):
                if argument.type.base == "Device" and value is not None:
                    device = value.type
        for key in (key_of(device or "cpu"), EXPLICIT, COMPOSITE):
            if key in self.kernels:
                return self.kernels[key]
        backend = key_of(device or "cpu")
        if backend == META:
            raise NotImplementedError(_NO_FAKE.format(self.name()))
        known = ", ".join(self.kernels)
        raise NotImplementedError(_NO_KERNEL.format(self.name(), backend, known))

    @property
    def node(self) -> type[Any]:
        """The custom function that calls with gradients go through."""
        if self._node is None:
            self._node = _node_of(self)
        return self._node


class OperatorPacket(ops.OpOverloadPacket):
    """A registered operator with its forms."""

    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(name, namespace)
        self._forms: dict[str, Operator] = {}

    def overloads(self) -> list[str]:
        return list(self._forms)

    def __getattr__(self, overload: str) -> ops.OpOverload:
        if overload.startswith("_"):
            raise AttributeError(overload)
        if overload in self._forms:
            return self._forms[overload]
        raise AttributeError(
            f"The underlying op of '{self}' has no overload name '{overload}'"
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        found = _overriding(args, kwargs)
        if found is not None:
            return dispatch(self, found, args, kwargs)
        if len(self._forms) == 1:
            return next(iter(self._forms.values()))(*args, **kwargs)
        failed = []
        for operator in self._forms.values():
            try:
                operator._schema.bound(args, kwargs)
            except RuntimeError as error:
                failed.append(f"{error}\n\n")
                continue
            return operator(*args, **kwargs)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:"
            f"\n{''.join(failed)}"
        )


def define(namespace: str, schema: FunctionSchema, tags: Sequence[Tag]) -> Operator:
    """Registers an operator. Raises: RuntimeError if there is one of that name."""
    space = getattr(ops, namespace)
    packet = space.__dict__.get(schema.name.rpartition(":")[2])
    if packet is None:
        packet = OperatorPacket(schema.name.rpartition(":")[2], namespace)
        setattr(space, packet.__name__, packet)
    if not isinstance(packet, OperatorPacket):
        raise RuntimeError(f"{namespace} is the namespace of PyTorch's own operators")
    operator = Operator(packet, schema, tags)
    if operator._overloadname in packet._forms:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload "
            "name multiple times. Each overload's schema should only be registered "
            "with a single call to def()."
        )
    packet._forms[operator._overloadname] = operator
    return operator


def forget(operator: Operator) -> None:
    """Takes a registration back."""
    packet = operator.overloadpacket
    assert isinstance(packet, OperatorPacket)
    packet._forms.pop(operator._overloadname, None)
    if not packet._forms:
        getattr(ops, packet._namespace).__dict__.pop(packet.__name__, None)


def find(name: Any) -> Operator:
    """The operator of a qualified name, or that something stands for."""
    if isinstance(name, Operator):
        return name
    if not isinstance(name, str):
        return find(name._opoverload)
    namespace, _, rest = name.partition("::")
    short, _, overload = rest.partition(".")
    packet = getattr(getattr(ops, namespace), short)
    found = getattr(packet, overload or "default")
    if not isinstance(found, Operator):
        raise RuntimeError(f"{name} is one of PyTorch's own operators")
    return found


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors among arguments or results, and in lists of these."""
    if isinstance(values, TensorBase):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))


def check_aliases(
    name: str, kernel: Any, args: Any, kwargs: dict[str, Any], result: Any
) -> None:
    """Raises where a result shares memory with an argument or another result."""
    seen = {_memory(t) for t in tensors_in((args, kwargs))}
    for tensor in tensors_in(result):
        if _memory(tensor) in seen:
            raise RuntimeError(_ALIASED.format(name, inspect.getmodule(kernel)))
        seen.add(_memory(tensor))


def _memory(tensor: Any) -> int:
    return id(tensor if tensor._storage is None else tensor._storage)


def _cast(value: Any, device: str, dtype: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(each, device, dtype) for each in value)
    if not isinstance(value, TensorBase) or value._tmeta.device.type != device:
        return value
    kind = value._tmeta.dtype
    if not kind.is_floating_point or kind.itemsize == 8:
        return value
    return value.to(dtype)  # type: ignore[attr-defined]


# -- `vmap` ----------------------------------------------------------------------------


class _Rule:
    """An operator as `vmap` calls custom functions: by its rule, or one by one."""

    generate_vmap_rule = False
    _missing_vmap = None

    def __init__(self, operator: Operator, kwargs: dict[str, Any]) -> None:
        self.operator, self.kwargs = operator, kwargs
        self.__name__ = str(operator)

    def forward(self, *args: Any) -> Any:
        return self.operator.run(args, self.kwargs)

    def vmap(self, info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        rule = self.operator.vmap
        if rule is not None:
            return rule(info, in_dims, *args, **self.kwargs)
        found = []
        for i in range(info.batch_size):
            one = [
                arg if dim is None else arg.select(dim, i)
                for arg, dim in zip(args, in_dims, strict=True)
            ]
            found.append(self.operator(*one, **self.kwargs))
        if not isinstance(found[0], tuple):
            return fns.stack(found), 0
        columns = [fns.stack(list(column)) for column in zip(*found, strict=True)]
        return tuple(columns), (0,) * len(columns)


# -- gradients -------------------------------------------------------------------------


class _Call:
    """What one call leaves for its backward: the structure of inputs and outputs."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        self.kwargs = kwargs
        self.spec: Any = None
        self.out_spec: Any = None


def _of_tensors(value: Any) -> bool:
    """What is one leaf: anything but lists of tensors, and tuples of arguments."""
    if isinstance(value, tuple):
        return False
    if isinstance(value, list):
        return any(not (v is None or isinstance(v, TensorBase)) for v in value)
    return True


def _apply(operator: Operator, args: list[Any], kwargs: dict[str, Any]) -> Any:
    call = _Call(kwargs)
    args = args[: operator._schema.n_given(args)]
    leaves, call.spec = tree.tree_flatten((*args, call), is_leaf=_of_tensors)
    found = operator.node.apply(*leaves)
    return tree.tree_unflatten(list(found), call.out_spec)


# What comes of a gradient through an operator that has none: "warn" or "nothing".
_fallback = ["warn"]


def get_autograd_fallback_mode() -> str:
    """Whether backward warns of operators without a gradient, "warn" or "nothing"."""
    return _fallback[0]


def set_autograd_fallback_mode(mode: str) -> None:
    """Sets it. Raises: RuntimeError."""
    if mode == "error":
        raise RuntimeError("NYI: mode='error'")
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _fallback[0] = mode


def _warning_of(operator: Operator) -> Callable[..., None]:
    where = "torch/csrc/autograd/autograd_not_implemented_fallback.cpp:76"
    text = triggered(_NO_GRADIENT.format(operator.name()), where)
    return lambda grad=None: warn(text, UserWarning)


class _NoGradient(Function):
    """Results of an operator without a gradient: backward warns, and gives none."""

    @staticmethod
    def forward(ctx: Any, tell: Callable[[], None], result: Any, *leaves: Any) -> Any:
        ctx._tell = tell
        ctx.set_materialize_grads(False)
        return tuple(result)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx._tell()
        return (None,) * len(ctx.needs_input_grad)


_NoGradient._backward_cls.__name__ = "WarnNotImplemented"


def _without_gradient(operator: Operator, result: Any, leaves: Sequence[Any]) -> Any:
    """The results, of which a backward tells that they lead nowhere.

    What the kernel left a history is only watched. What the operator writes to gets
    none: a program may have a view of it. Within a transform results are constants.
    """
    if _fallback[0] == "nothing":
        return result
    tell = _warning_of(operator)
    outs, spec = tree.tree_flatten(result, is_leaf=_of_tensors)
    aliases = [r.alias_info for r in operator._schema.returns]
    writes = [alias is not None and alias.is_write for alias in aliases]
    told: list[int] = []
    for i, out in enumerate(outs):
        if not isinstance(out, TensorBase):
            continue
        written = len(writes) == len(outs) and writes[i]
        if out._tmeta.requires_grad:
            tensors: list[Any] = [out]
            base = out._base if written else None  # type: ignore[attr-defined]
            if base is not None and base.requires_grad:
                tensors.append(base)
            for tensor in tensors:
                tensor.register_hook(tell)
            continue
        dtype = out._tmeta.dtype
        if not written and (dtype.is_floating_point or dtype.is_complex):
            told.append(i)
    if told and not local.rec.levels:
        given = tuple(outs[i] for i in told)
        for i, out in zip(told, _NoGradient.apply(tell, given, *leaves), strict=True):
            outs[i] = out
    return tree.tree_unflatten(outs, spec)


def _node_of(operator: Operator) -> type[Any]:
    schema = operator._schema
    keywords = any(argument.kwarg_only for argument in schema.arguments)
    lists = any(a.type.list and a.type.of_tensors for a in schema.arguments)
    lists = lists or any(r.type.list for r in schema.returns)

    def forward(ctx: Any, *leaves: Any) -> Any:
        ctx._call = call = leaves[-1]
        given = tree.tree_unflatten(list(leaves), call.spec)[:-1]
        args = tuple(operator._schema.bound(given, call.kwargs)[0])
        result = operator.run(args, call.kwargs)
        gradient = operator.gradient
        if gradient is not None and gradient.setup_context is not None:
            told: dict[str, Any] = {"ctx": ctx, "inputs": args, "output": result}
            if keywords:
                told["keyword_only_inputs"] = call.kwargs
            gradient.setup_context(**told)
        outs, call.out_spec = tree.tree_flatten(result, is_leaf=_of_tensors)
        return tuple(outs)

    def backward(ctx: Any, *grads: Any) -> Any:
        gradient, call = operator.gradient, ctx._call
        if gradient is None:
            raise RuntimeError(
                f"Trying to backward through {operator} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        needs = ctx._needs
        given = tree.tree_unflatten(list(grads), call.out_spec)
        if not isinstance(given, tuple):
            given = (given,)
        try:
            ctx._needs = tree.tree_unflatten(list(needs), call.spec)[:-1]
            result = gradient.backward(ctx, *given)
        finally:
            ctx._needs = needs
        if not isinstance(result, tuple):
            result = (result,)
        result = *result, None
        if not lists:
            return result
        flat, spec = tree.tree_flatten(result, is_leaf=_of_tensors)
        if spec != call.spec:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the "
                f"inputs. Got: {spec} (return from backward), {call.spec} (inputs)"
            )
        return tuple(flat)

    name = f"{operator.namespace}_{operator.overloadpacket.__name__}"
    return type(
        f"GeneratedBackwardFor_{name}_{operator._overloadname}",
        (Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
